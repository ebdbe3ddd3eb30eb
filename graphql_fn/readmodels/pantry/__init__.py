"""The function `pantry`: its schema, its fields."""
