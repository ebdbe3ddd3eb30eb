"""Many products or movements with one request, as a table, NDJSON or a JSON list, with a preview."""
