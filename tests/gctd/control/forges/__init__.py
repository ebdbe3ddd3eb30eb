"""Tests of forges."""
