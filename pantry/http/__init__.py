"""The edge of the pantry: routes, bodies, events."""
