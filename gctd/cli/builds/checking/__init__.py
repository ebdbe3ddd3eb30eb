"""The gate in a working copy, without a server: measure the tree and its base, compare, judge."""
