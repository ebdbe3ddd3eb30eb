"""Repositories that attack the worker: each is one harmless probe. No canary is touched, no other job harmed."""
