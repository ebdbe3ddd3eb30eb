"""Upkeep: lost work is ended, removed repositories leave the tables, unused bodies leave the store."""
