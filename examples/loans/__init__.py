"""A library: books and their loans."""
