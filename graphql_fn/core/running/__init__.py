"""How operations are run: by plans, or by the engine of graphql-core, in turns with other requests."""
