"""What a worker does with a repository: clone it, find its Go projects, run their tests. Nothing in a repository is trusted."""
