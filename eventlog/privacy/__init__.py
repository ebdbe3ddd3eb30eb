"""Personal fields of events: which they are, and their encryption with one key per person."""
