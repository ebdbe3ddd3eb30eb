"""What the APIs have answered, kept on disk: so that scans of one repository do not use up the rate limit of its host.

One file per question, `<digest>.json`, and one per API that wants to be left alone for a while, `<digest>.pause`. Workers of
a host share them; whichever writes last is right. A file that cannot be read counts as missing.
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
"""Seconds for which an answer is taken as it is."""
_KEPT = 30 * 86_400.0

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class Answer:
    """An answer: what it said, when it was last true (seconds since the epoch), and the ETag to ask again with."""

    facts: Facts = NOTHING
    at: float
    etag: str | None = None

    def is_fresh(self) -> bool:
        """Whether it need not be asked for again."""
        return 0 <= time.time() - self.at < FRESH


class Answers:
    """The answers in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def tidy(self) -> None:
        """Remove what nobody has asked for in a long time."""
        for path in self._directory.iterdir():
            try:
                if time.time() - path.stat().st_mtime > _KEPT:
                    path.unlink()
            except FileNotFoundError:  # another worker was quicker
                continue

    def get(self, url: str) -> Answer | None:
        """The answer to a question."""
        try:
            return msgspec.json.decode(self._path(url, "json").read_bytes(), type=Answer)
        except (OSError, ValueError):
            return None

    def put(self, url: str, answer: Answer) -> None:
        """Keep an answer."""
        self._write(self._path(url, "json"), msgspec.json.encode(answer))

    def paused_until(self, api: str) -> float:
        """When an API may be asked again, in seconds since the epoch."""
        try:
            return float(self._path(api, "pause").read_text())
        except (OSError, ValueError):
            return 0.0

    def pause(self, api: str, until: float) -> None:
        """Let an API alone until then."""
        self._write(self._path(api, "pause"), str(until).encode())

    def _path(self, name: str, suffix: str) -> Path:
        return self._directory / f"{sha256(name.encode()).hexdigest()[:32]}.{suffix}"

    def _write(self, path: Path, content: bytes) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            new.write_bytes(content)
            new.replace(path)
        except OSError as error:  # a full disk, say: then it is asked for again
            _log.warning("the answer of a git host's API is not kept", reason=str(error))
