"""Shared parts of control plane and workers: the broker, policies, credentials, the stream of attempt logs."""
