"""The directories of a system on one machine."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
from platformdirs import user_cache_path, user_data_path, user_state_path

from terminalkit import checkout_root

_APP = "gctd"


@attrs.frozen
class Places:
    """The directories of a system.

    `data` has events, tables and passwords, `logs` a file for each part, `cache` clones and builds.
    """

    data: Path
    logs: Path
    cache: Path

    @classmethod
    def below(cls, directory: Path) -> Places:
        """All of them in one directory."""
        return cls(directory, directory / "logs", directory / "cache")

    @classmethod
    def chosen(cls, directory: Path | None, *, cluster: bool) -> Places:
        """Return the places in a directory, else `.data` of a checkout, else the directories of this user's platform.

        A cluster has separate data, because it stores them in another form.
        """
        name = "cluster" if cluster else ""
        if directory is not None:
            return cls.below(directory.absolute())
        if (root := checkout_root()) is not None:
            return cls.below(root / ".data" / name)
        return cls(user_data_path(_APP) / name, user_state_path(_APP) / name / "log", user_cache_path(_APP) / name)

    def make_private(self, *, passable: bool) -> None:
        """Make the directories, closed to other users.

        With `passable` others can enter the data, as a Postgres does that root has started.
        """
        for directory in (self.data, self.logs, self.cache):
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o700)
        if passable and os.geteuid() == 0:
            self.data.chmod(0o711)
