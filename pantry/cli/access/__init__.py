"""`pantry pair`, `pantry person` and `pantry token`."""
