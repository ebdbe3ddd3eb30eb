"""Tests of Go: projects of a checkout, toolchains, runs of tests."""
