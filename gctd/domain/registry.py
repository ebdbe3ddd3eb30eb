"""The event and state types of the stream GCTD."""

from eventlog import Registry

REGISTRY = Registry()
