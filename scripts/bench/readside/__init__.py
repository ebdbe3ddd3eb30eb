"""From an append to its rows: replays, rebuilds, delays."""
