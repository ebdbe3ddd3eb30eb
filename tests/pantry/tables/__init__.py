"""Tests of the tables: new versions, and databases of the first program."""
