"""Compatibility with go-crap 0.5.1: its rules."""
