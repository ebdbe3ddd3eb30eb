"""Several servers of a kind, in one system."""
