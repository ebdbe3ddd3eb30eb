"""The nats-server of a service: looks at it, and the figures of its monitoring port."""
