"""The answers of the APIs, kept on disk, so that scans of one repository do not use up the rate limit of its host.

Each question has a file, `<digest>.json`. Each API that asked for a pause has a file, `<digest>.pause`. The workers of a host
share them; the last writer is right. An unreadable file counts as missing.
"""

from __future__ import annotations

import os
import secrets
import time
from hashlib import sha256
from pathlib import Path

import attrs
import msgspec
import structlog

from gctd.scan.hosts.facts import NOTHING, Facts

FRESH = 3600.0
"""Seconds for which an answer is used without a check."""
_KEPT = 30 * 86_400.0

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class KeptAnswer:
    """An answer: its facts, the time when it was last true (seconds since the epoch), and the ETag for the next question."""

    facts: Facts = NOTHING
    at: float
    etag: str | None = None

    def is_fresh(self) -> bool:
        """Whether the answer needs no new request."""
        return 0 <= time.time() - self.at < FRESH


class Answers:
    """The answers in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def tidy(self) -> None:
        """Remove answers without a request for a long time."""
        for path in self._directory.iterdir():
            try:
                if time.time() - path.stat().st_mtime > _KEPT:
                    path.unlink()
            except FileNotFoundError:  # another worker was quicker
                continue

    def get(self, url: str) -> KeptAnswer | None:
        """The answer to a question."""
        try:
            return msgspec.json.decode(self._path(url, "json").read_bytes(), type=KeptAnswer)
        except (OSError, ValueError):
            return None

    def put(self, url: str, answer: KeptAnswer) -> None:
        """Keep an answer."""
        self._write(self._path(url, "json"), msgspec.json.encode(answer))

    def paused_until(self, api: str) -> float:
        """Return the end of an API's pause, in seconds since the epoch."""
        try:
            return float(self._path(api, "pause").read_text())
        except (OSError, ValueError):
            return 0.0

    def pause(self, api: str, until: float) -> None:
        """Send no request to an API until then."""
        self._write(self._path(api, "pause"), str(until).encode())

    def _path(self, name: str, suffix: str) -> Path:
        return self._directory / f"{sha256(name.encode()).hexdigest()[:32]}.{suffix}"

    def _write(self, path: Path, content: bytes) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            new.write_bytes(content)
            new.replace(path)
        except OSError as error:  # for example a full disk: then the next scan repeats the request
            _log.warning("the answer of a git host's API is not kept", reason=str(error))
