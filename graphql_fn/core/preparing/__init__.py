"""From the text of a query to an operation that may be run: its limits, its document and its cost."""
