"""Git: commands, checkouts, trees, submodules."""
