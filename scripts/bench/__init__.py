"""Benchmarks, and long checks that no test has the time for."""
