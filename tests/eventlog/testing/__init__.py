"""Tests of the kits for the tests of services."""
