"""Counts of unnatural prose in the repository, per package and pattern, and the ratchet that keeps them from rising."""
