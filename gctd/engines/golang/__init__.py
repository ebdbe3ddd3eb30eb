"""Reading Go: sources, syntax, complexity, cover profiles."""
