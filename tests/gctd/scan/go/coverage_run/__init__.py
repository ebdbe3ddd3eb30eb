"""Tests of runs of go test with coverage."""
