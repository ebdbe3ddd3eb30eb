"""Functions over the read models of the other services: their schemas and resolvers. They only read."""
