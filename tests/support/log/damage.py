"""What no kill does to a stream's files: flipped bits, in the blocks of a server that is stopped."""

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
