"""Comparing analyses: the base of a comparison, pairs of analyses, verdicts of the gate."""
