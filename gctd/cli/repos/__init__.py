"""The commands `gctd repo`."""
