"""The documents that the programs write with `--json`, a module for each program: its schemas, and its commands without one."""
