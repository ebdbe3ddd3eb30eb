"""Tests of the evaluation core."""
