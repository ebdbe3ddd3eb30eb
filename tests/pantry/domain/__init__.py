"""Tests of the rules of the ledger."""
