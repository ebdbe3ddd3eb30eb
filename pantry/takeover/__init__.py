"""Taking over the data of the first pantry program: its rows, a plan made from them, and the events that carry it out."""
