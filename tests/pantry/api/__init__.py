"""Tests of the API on a running server."""
