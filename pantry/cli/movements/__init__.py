"""The commands `pantry movement`."""
