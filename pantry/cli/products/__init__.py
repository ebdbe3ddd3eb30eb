"""`pantry product`, `pantry category` and `pantry code`."""
