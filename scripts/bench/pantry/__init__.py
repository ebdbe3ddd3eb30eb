"""The pantry: movements, and the page of the kitchen."""
