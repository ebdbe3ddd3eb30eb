"""Killed processes, flipped bits, and simulated runs with faults."""
