"""One function of an analysis: its key, its source, its blocks, and the tests that it needs."""
