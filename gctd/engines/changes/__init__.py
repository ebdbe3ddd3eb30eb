"""What changed between two reports, and whether that passes the gate."""
