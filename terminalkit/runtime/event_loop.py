"""Running a program that has much to do, as one that serves or goes through a log: a faster loop, memory in its own way."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

_COLLECT = (10_000, 20, 20)
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""Parameters of glibc's mallopt (malloc.h)."""
_LARGE = 128 * 1024


def run_busy(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's coroutine on uvloop.

    Requests and commits are freed by reference counting. The cycle collector finds nothing in them and costs time, so it runs ten
    times less often than by default.
    """
    gc.set_threshold(*_COLLECT)
    _give_memory_back()
    return uvloop.run(main)


def _give_memory_back() -> None:
    """Make glibc return large free blocks to the system, and make all threads share two heaps.

    Otherwise each thread keeps a heap as large as it ever was, and pieces up to 32 MiB stay in it once one of that
    size was freed.
    """
    with suppress(OSError, AttributeError):  # another C library: it has its own ways
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 2)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
