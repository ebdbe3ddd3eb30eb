"""Copies of a read model: rebuild, verification, upgrade, recovery."""
