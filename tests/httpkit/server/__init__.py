"""Tests of the server: limits, guards, proxies."""
