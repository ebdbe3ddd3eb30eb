"""Server-Sent Events: one hub for all clients, frames, single streams."""
