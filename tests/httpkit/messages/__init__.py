"""Tests of requests and answers as messages."""
