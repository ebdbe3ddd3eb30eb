"""Functions over the read models of the other services: their schemas, and what resolves them. They only read."""
