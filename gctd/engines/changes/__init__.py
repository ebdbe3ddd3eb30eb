"""The changes between two reports, and their judgement by the gate."""
