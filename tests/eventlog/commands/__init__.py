"""Tests of the executor of commands."""
