"""Support for tests of services: given/when/then, a log in memory, the conformance suite of logs."""
