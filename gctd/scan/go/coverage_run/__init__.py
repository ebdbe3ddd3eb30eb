"""A run of `go test` with coverage: its plan, its steps with their rights, its progress and its outcome."""
