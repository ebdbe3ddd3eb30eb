"""The event log on NATS JetStream: `log.JetStreamLog`, over a `connection.Connection`."""
