"""`gctd serve`, `gctd worker`, and `gctd config`."""
