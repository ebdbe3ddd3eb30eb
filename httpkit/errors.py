"""The root of the package's errors, and the errors of single fields. This module does not import the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from http import HTTPStatus

import attrs


@attrs.frozen
class FieldError:
    """One thing that is wrong with a request.

    `pointer` is the JSON pointer of a member of the body as a URI fragment (`#/quantity`), `parameter` the name of a path,
    query or header parameter; neither where the request as a whole is wrong.
    """

    detail: str
    pointer: str | None = None
    parameter: str | None = None

    def __str__(self) -> str:
        name = self.parameter or (self.pointer or "").removeprefix("#/").replace("/", ".")
        return f"{name}: {self.detail}" if name else self.detail

    def document(self) -> dict[str, str]:
        """The item of `errors` in a problem document."""
        return {key: value for key, value in attrs.asdict(self).items() if value is not None}


class HttpkitError(Exception):
    """Root of the package's errors: `status` and `headers` of the answer, `errors` of single fields, `str(error)` for a user."""

    status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR
    headers: Mapping[str, str] = {}
    errors: Sequence[FieldError] = ()


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """The end of a message on a wrong word: `; did you mean X?` with the closest of the known words, or nothing."""
    close = get_close_matches(wrong, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
