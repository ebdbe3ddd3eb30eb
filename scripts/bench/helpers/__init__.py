"""Shared by the benchmarks: peers in private environments, logs of the tracker, waiting for a port."""
