"""Requests of users: registration, tasks, settings, uploads and rescoring, as commands on aggregates."""
