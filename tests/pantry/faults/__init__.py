"""Tests of the pantry while its parts are killed."""
