"""The ways in which function platforms call a function in Python."""
