"""Serving HTTP: the protocol, deadlines, access guards, replies."""
