"""Reading tables: statements, lists in parts, one moment for several queries, and the state of passes over the log."""
