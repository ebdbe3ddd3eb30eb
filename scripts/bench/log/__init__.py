"""The event log: appends, commands, reading."""
