"""The commands `gctd task`, and following tasks to their end."""
