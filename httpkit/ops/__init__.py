"""Operation of a server: health and metrics."""
