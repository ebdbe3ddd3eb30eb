"""A process that serves: its parts, its background work, and its end."""
