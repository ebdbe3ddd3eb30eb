"""Output of a command: texts, tables, bars of progress."""
