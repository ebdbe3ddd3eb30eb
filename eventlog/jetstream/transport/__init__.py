"""The connection to NATS: client, options, replies, messages straight from the wire."""
