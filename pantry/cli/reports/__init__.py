"""The commands `pantry report` and `pantry stock`."""
