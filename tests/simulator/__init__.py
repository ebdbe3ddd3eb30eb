"""A simulator: processes with commands, log, projector and lease on a virtual clock, against models of broker and database."""
