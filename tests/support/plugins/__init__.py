"""Plugins of pytest."""
