"""The whole system on one machine, as `gctd up` runs it: its plan, its supervisor, its demonstration."""
