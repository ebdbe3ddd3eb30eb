"""The command `pantry scan`."""
