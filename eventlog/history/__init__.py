"""Stored events for people: search, and events as they are stored."""
