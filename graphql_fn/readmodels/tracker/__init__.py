"""The function `tracker`: its schema, its fields, its queries."""
