"""Hits of the patterns of unnatural prose in the texts of the repository."""
