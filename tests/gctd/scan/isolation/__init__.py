"""Tests of processes with few rights."""
