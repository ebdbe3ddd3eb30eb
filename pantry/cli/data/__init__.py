"""`pantry migrate` and `pantry takeover`: the tables, and the data of the first program."""
