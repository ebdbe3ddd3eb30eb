"""Options that users may give for a scan: durations, flags of `go`, flags of `go-crap`. All others are refused.

Flags are an allowlist because several of Go's run programs or write files (`-exec`, `-toolexec`, `-o`, `-coverprofile`,
`-overlay`, `-ldflags`, …).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast, get_args

import attrs
import re2

from gctd.domain.errors import BadInput

MAX_TEXT = 2000
MAX_VALUE = 500

SHORTEST = 1.0
LONGEST = 86400.0

# Durations

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|h|m|s))+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def parse_duration(text: str, *, field: str = "timeout", shortest: float = SHORTEST, longest: float = LONGEST) -> float:
    """Parse a duration in Go's notation (`30m`, `1h30m`, `90s`, `500ms`). Return seconds.

    Raises BadInput(field, reason) if the text has another form, or if the value is not between `shortest` and `longest` seconds.
    """
    if len(text) > 40 or not _DURATION.fullmatch(text):
        raise BadInput(field, "not a duration: a number and a unit (h, m, s, ms), as in 30m or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    if not shortest <= seconds <= longest:
        raise BadInput(field, f"must be between {format_duration(shortest)} and {format_duration(longest)}")
    return seconds


def format_duration(seconds: float) -> str:
    """A duration as Go reads it, to the millisecond: `1h30m`, `90s` as `1m30s`, `1.5s`."""
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{rest / 1000:.10g}s" if rest else ""]
    return "".join(parts) or "0s"


# Flags

Missing = Literal["pessimistic", "optimistic", "skip"]

_Check = Callable[[str], bool]


def _matching(pattern: str) -> _Check:
    return lambda value: re.fullmatch(pattern, value) is not None


def _number(lowest: int, highest: int) -> _Check:
    return lambda value: re.fullmatch(r"[0-9]{1,9}", value) is not None and lowest <= int(value) <= highest


def _one_of(*values: str) -> _Check:
    return lambda value: value in values


def _decimal(value: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value) is not None


def _duration(value: str) -> bool:
    try:
        parse_duration(value)
    except BadInput:
        return False
    return True


def _test_pattern(value: str) -> bool:
    return value.isprintable()


_PACKAGES = _matching(r"(?:all|(?:\./|[A-Za-z0-9_])[A-Za-z0-9_.~/-]*(?:,(?:\./|[A-Za-z0-9_])[A-Za-z0-9_.~/-]*)*)")


def _packages(value: str) -> bool:
    return _PACKAGES(value) and not any(part == ".." for item in value.split(",") for part in item.split("/"))


GO_FLAGS: Mapping[str, _Check | None] = {
    "count": _number(1, 100),
    "covermode": _one_of("set", "count", "atomic"),
    "coverpkg": _packages,
    "cpu": _matching(r"[0-9]{1,3}(?:,[0-9]{1,3})*"),
    "failfast": None,
    "fullpath": None,
    "mod": _one_of("readonly", "vendor", "mod"),
    "p": _number(1, 256),
    "parallel": _number(1, 1024),
    "race": None,
    "run": _test_pattern,
    "short": None,
    "shuffle": lambda value: value in ("on", "off") or _number(0, 999_999_999)(value),
    "skip": _test_pattern,
    "tags": _matching(r"[A-Za-z0-9_.]+(?:,[A-Za-z0-9_.]+)*"),
    "timeout": _duration,
    "trimpath": None,
    "v": None,
    "vet": _matching(r"off|all|[a-z]+(?:,[a-z]+)*"),
}
"""Flags of `go test` that users may give, with the check of the value; None: a flag without one."""

_CRAP_FLAGS: Mapping[str, _Check | None] = {
    "threshold": _decimal,
    "min": _decimal,
    "top": _number(0, 1_000_000),
    "missing": _one_of(*get_args(Missing)),
    "exclude": lambda value: value.isprintable() and len(value) <= 200,
    "include-tests": None,
}
_CRAP_SHORT = {"t": "threshold"}


def parse_test_args(text: str, *, field: str = "test_args") -> tuple[str, ...]:
    """Parse flags for `go test`, separated by spaces. Values with spaces are quoted: `-short -run 'TestA|TestB'`.

    Returns each flag as one argument: `-short`, `-run=TestA|TestB`. Raises BadInput(field, reason); the reason names the flag.
    """
    return tuple(_written(flag, "-") for flag in _flags(_words(text, field), GO_FLAGS, field))


def parse_go_flags(text: str, *, field: str = "go_flags") -> tuple[str, ...]:
    """Parse flags for every `go` command. GOFLAGS passes them on, so values have no spaces or quotes.

    Returns each flag as one argument. Raises BadInput(field, reason); the reason names the flag.
    """
    flags = _flags(_words(text, field), GO_FLAGS, field)
    for name, value in flags:
        if value is not None and re.search(r"[\s'\"]", value):
            raise BadInput(field, f"-{name}: the value must not have spaces or quotes in it")
    return tuple(_written(flag, "-") for flag in flags)


@attrs.frozen(kw_only=True)
class CrapOptions:
    """Options of the count, the score and the report of functions (the flags of `go-crap scan` that change them).

    `threshold` is the CRAP value above which a function counts as exceeding. `missing` selects the score of a function with
    unknown
    coverage: as with 0 %, as with 100 %, or its complexity alone. `exclude` are regular expressions (RE2), searched in file
    paths and function names. `include_tests` adds `_test.go` files. A report shows the `top` worst of the counted functions with
    a score of `least` or more; 0: no limit.
    """

    threshold: float = 30.0
    missing: Missing = "pessimistic"
    exclude: tuple[str, ...] = ()
    include_tests: bool = False
    least: float = 0.0
    top: int = 0

    def unshortened(self) -> CrapOptions:
        """Return the same options for a report of all counted functions."""
        return attrs.evolve(self, least=0.0, top=0)

    def argv(self) -> tuple[str, ...]:
        """Return the differences from the defaults, as arguments of `go-crap scan`."""
        return (
            *((f"--threshold={_plain(self.threshold)}",) if self.threshold != DEFAULTS.threshold else ()),
            *((f"--missing={self.missing}",) if self.missing != DEFAULTS.missing else ()),
            *(f"--exclude={pattern}" for pattern in self.exclude),
            *(("--include-tests",) if self.include_tests else ()),
            *((f"--min={_plain(self.least)}",) if self.least else ()),
            *((f"--top={self.top}",) if self.top else ()),
        )

    def excludes(self) -> Callable[[str], bool] | None:
        """Whether `exclude` is found in a text: all of it as one expression, put together as go-crap does; None if it is empty.

        Raises BadInput.
        """
        return _searched("|".join(self.exclude), "crap_args") if self.exclude else None


DEFAULTS = CrapOptions()


def parse_crap_args(arguments: Sequence[str], *, field: str = "crap_args") -> CrapOptions:
    """Flags of `go-crap scan`: threshold, missing, exclude, include-tests, min, top. Raises BadInput(field, reason)."""
    if len(arguments) > 100 or sum(map(len, arguments)) > MAX_TEXT:
        raise BadInput(field, f"more than 100 arguments or {MAX_TEXT} characters")
    options: dict[str, str] = {}
    exclude: list[str] = []
    for name, value in _flags(arguments, _CRAP_FLAGS, field, short=_CRAP_SHORT):
        if name == "exclude":
            exclude.append(value or "")
            _searched(exclude[-1], field)
        else:
            options[name] = value or "true"
    if exclude:
        _searched("|".join(exclude), field)
    return CrapOptions(
        threshold=float(options.get("threshold", 30)),
        missing=cast("Missing", options.get("missing", "pessimistic")),
        exclude=tuple(exclude),
        include_tests=options.get("include-tests") == "true",
        least=float(options.get("min", 0)),
        top=int(options.get("top", 0)),
    )


def covers_others(flags: Sequence[str]) -> bool:
    """Return whether flags of `go test` make the tests of a package count for other packages too."""
    return any(flag.startswith("-coverpkg=") for flag in flags)


def threshold_of(flags: Sequence[str]) -> float:
    """The CRAP value above which a function was to be fixed, by the flags of its analysis: the options are among them."""
    return parse_crap_args([flag for flag in flags if flag.startswith("--threshold=")]).threshold


_QUIET = re2.Options()
_QUIET.log_errors = False


def _searched(pattern: str, field: str) -> Callable[[str], bool]:
    """The search for an expression. RE2, as in go-crap: its time is linear in the text, whatever the expression."""
    try:
        compiled = re2.compile(pattern, _QUIET)
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if error.args else "too large"
        raise BadInput(field, f"--exclude: not a regular expression (RE2): {said}") from None
    return lambda text: compiled.search(text) is not None


def _plain(value: float) -> str:
    """Format a number in the form that `_decimal` accepts: digits, and a fraction unless it is zero."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")


def _words(text: str, field: str) -> list[str]:
    if len(text) > MAX_TEXT:
        raise BadInput(field, f"longer than {MAX_TEXT} characters")
    if any((character < " " and character != "\t") or character == "\x7f" for character in text):
        raise BadInput(field, "has control characters in it")
    if re.search(r"['\"]", _QUOTED.sub("", text)):
        raise BadInput(field, "has a quotation mark that is not closed")
    return [_QUOTED.sub(lambda match: match[1] if match[1] is not None else match[2], word) for word in _WORD.findall(text)]


def _flags(
    words: Sequence[str], allowed: Mapping[str, _Check | None], field: str, *, short: Mapping[str, str] = {}
) -> list[tuple[str, str | None]]:
    """Flag by flag its name and its value; None for one without a value."""
    found: list[tuple[str, str | None]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        match = re.fullmatch(r"--?([A-Za-z][A-Za-z0-9.-]*)(?:=(.*))?", word, re.DOTALL)
        if not match:
            raise BadInput(field, f"{_shown(word)} is not a flag: only flags can be given")
        name = short.get(match[1], match[1])
        if name not in allowed:
            raise BadInput(field, f"the flag {_shown(word.partition('=')[0])} is not allowed")
        check, value = allowed[name], match[2]
        if check is None:
            if value not in (None, "true", "false"):
                raise BadInput(field, f"the flag -{name} takes no value")
            found.append((name, None if value == "true" else value))
            continue
        if value is None:
            if not rest:
                raise BadInput(field, f"the flag -{name} needs a value")
            value = rest.pop(0)
        if len(value) > MAX_VALUE or not check(value):
            raise BadInput(field, f"the flag -{name} cannot have the value {_shown(value)}")
        found.append((name, value))
    return found


def _written(flag: tuple[str, str | None], dash: str) -> str:
    name, value = flag
    return dash + name if value is None else f"{dash}{name}={value}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
