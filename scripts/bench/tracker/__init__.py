"""The tracker: jobs, the engine, the pages."""
