"""The event and state types of the stream PANTRY."""

from eventlog import Registry

REGISTRY = Registry()
