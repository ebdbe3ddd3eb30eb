"""Personal tokens of a service and the sessions of browsers: events in its log, hashed secrets, and their check at requests."""
