"""`pantry serve`, `pantry up`, and `pantry config`."""
