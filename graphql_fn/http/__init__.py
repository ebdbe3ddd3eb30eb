"""The edge of the gateway."""
