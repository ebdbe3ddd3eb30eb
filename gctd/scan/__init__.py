"""The work of a worker on a repository: clone it, find its Go projects, run their tests. No file of a repository is trusted."""
