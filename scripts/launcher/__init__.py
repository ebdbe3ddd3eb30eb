"""The parts of `scripts/up` and `scripts/test` that set the checkout up. Standard library only."""
