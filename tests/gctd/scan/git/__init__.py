"""Tests of git: commands, checkouts, mirrors, submodules."""
