"""One way to make a service: log, read model and HTTP put together."""
