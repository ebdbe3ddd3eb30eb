"""Whole servers: set-up, size, parts of the time, event streams."""
