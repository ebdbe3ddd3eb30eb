"""Go: projects in a repository, the toolchain, test runs with coverage."""
