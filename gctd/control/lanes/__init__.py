"""Lanes: which queue a job goes to, and when (docs/explanation/tracker.md)."""
