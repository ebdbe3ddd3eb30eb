"""Damage to a stream's files that no kill causes: flipped bits, in the blocks of a stopped server."""

from __future__ import annotations

from pathlib import Path


def flip(data_dir: Path, stream: str, needle: bytes) -> None:
    """Flip one bit in the last record of a stream that contains `needle`. The server must be stopped."""
    blocks = sorted(data_dir.glob(f"**/streams/{stream}/msgs/*.blk"), key=lambda path: int(path.stem))
    for block in reversed(blocks):
        data = bytearray(block.read_bytes())
        at = data.rfind(needle)
        if at >= 0:
            data[at] ^= 0x04
            block.write_bytes(data)
            return
    raise AssertionError(f"no block of {stream} contains {needle!r}")


def cut(data_dir: Path, stream: str, left: int) -> None:
    """Cut the first block of a stream to `left` bytes. The server must be stopped."""
    block = next(data_dir.glob(f"**/streams/{stream}/msgs/1.blk"))
    block.write_bytes(block.read_bytes()[:left])
