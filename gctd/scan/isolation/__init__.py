"""Running programs that are not trusted: sandbox, limits, supervision of processes."""
