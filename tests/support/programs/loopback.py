"""A network with nothing but a loopback: all ports are free in it, and no other host can be reached."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

_UP = """
import fcntl, socket, struct, sys
with socket.socket() as any:  # SIOCSIFFLAGS, IFF_UP and IFF_RUNNING
    fcntl.ioctl(any, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
print("up", flush=True)
sys.stdin.read()
"""


@contextmanager
def own_loopback() -> Iterator[Sequence[str]]:
    """Make the network, a namespace of Linux. The value is the begin of a command line that runs in it."""
    is_root = os.geteuid() == 0
    user = [] if is_root else ["--user", "--map-current-user", "--keep-caps"]
    command = ["unshare", *user, "--net", sys.executable, "-c", _UP]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != b"up\n":
                pytest.skip(f"this machine permits no network namespace: {holder.stderr.read().decode()}")
            same_user = [] if is_root else ["--user", "--preserve-credentials"]
            yield ["nsenter", "--target", str(holder.pid), *same_user, "--net"]
        finally:
            holder.stdin.close()
            holder.wait(20)
