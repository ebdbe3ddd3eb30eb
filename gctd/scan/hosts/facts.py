"""Facts about a repository, as far as one source knows them."""

from __future__ import annotations

import attrs

from gctd.domain.analysis import Metadata


@attrs.frozen(kw_only=True)
class Facts:
    """Facts; None: unknown to this source. `language` is a name as hosts show it, `license` an SPDX identifier or expression."""

    stars: int | None = None
    forks: int | None = None
    language: str | None = None
    license: str | None = None

    def or_else(self, other: Facts) -> Facts:
        """Return these facts, with the facts of `other` for missing values."""
        mine = {name: value for name, value in attrs.asdict(self).items() if value is not None}
        return attrs.evolve(other, **mine)

    def metadata(self) -> Metadata:
        """Return the facts in the form of an analysis: unknown values are zero or empty."""
        return Metadata(stars=self.stars or 0, forks=self.forks or 0, language=self.language or "", license=self.license or "")


NOTHING = Facts()
