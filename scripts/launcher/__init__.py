"""The parts of `scripts/up` and `scripts/cluster`: options, services, the system they make up, the demonstration."""
