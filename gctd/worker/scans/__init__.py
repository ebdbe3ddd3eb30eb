"""The work on a repository: discovery, tests, scores, and the storage of the result."""
