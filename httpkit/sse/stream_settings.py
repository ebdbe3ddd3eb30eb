"""The bounds of a hub."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class StreamSettings:
    """Bounds of a hub. Times in seconds.

    `heartbeat`: the longest time between two events `heartbeat`. `retry`: the time that clients wait before they reconnect.
    `write_deadline`: the time in which a client has to take a write. `ahead`: the longest wait for a client whose last event this
    process has not reached yet. `send_buffer` in bytes bounds the data that the kernel holds for one client.
    """

    heartbeat: float = 15.0
    retry: float = 2.0
    write_deadline: float = 3.0
    ahead: float = 2.0
    max_clients: int = 200
    max_replays: int = 4
    max_frames: int = 10_000
    max_bytes: int = 32 * 1024**2
    send_buffer: int = 128 * 1024
