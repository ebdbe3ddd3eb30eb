"""A program and its commands: their options, completion, and the commands that all services have."""
