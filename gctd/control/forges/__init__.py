"""Forges: webhooks in, commit statuses and comments out (docs/explanation/tracker.md)."""
