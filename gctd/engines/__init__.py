"""Engines: from a module's sources and its cover profile to a scored function each."""
