"""Tests of the projector on a log in memory whose faults can be chosen."""
