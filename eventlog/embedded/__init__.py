"""A private nats-server as a child process."""
