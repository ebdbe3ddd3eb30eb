"""The part of PromQL that the alert rules use, evaluated on series of a test as Prometheus would.

Sources: prometheus.io/docs/prometheus/latest/querying/{basics,operators,functions}. A series has one value a minute. `rate` and
`increase` do not extrapolate to the borders of their range.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import attrs

Labels = frozenset[tuple[str, str]]
Vector = Mapping[Labels, float]
Value = float | Vector

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?(?![\w.]))|(\[\w+\])|(\{[^}]*\})|([A-Za-z_]\w*)|(==|!=|>=|<=|[()<>/,]))")
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
_UNITS = {"s": 1 / 60, "m": 1, "h": 60}
_STALE = 5
"""Minutes after which a value is not used any more."""
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_FOLD: Mapping[str, Callable[[Sequence[float]], float]] = {"sum": sum, "max": max, "min": min}


@attrs.frozen
class Series:
    """The values of a metric with labels, one for each minute."""

    name: str
    labels: Mapping[str, str]
    values: Sequence[float]

    @classmethod
    def parse(cls, text: str, values: str) -> Series:
        """Read `name{label="value"}`, and values as promtool writes them: `0+1x10`, `5x3`, `nan 1`."""
        name, _, rest = text.partition("{")
        found: list[float] = []
        for part in values.split():
            match = re.fullmatch(r"([\d.]+|nan)(?:\+([\d.]+))?(?:x(\d+))?", part)
            assert match is not None, part
            found += [float(match[1]) + float(match[2] or 0) * i for i in range(int(match[3] or 0) + 1)]
        return cls(name, {key: value for key, _, value in _MATCHER.findall(rest)}, found)

    def between(self, begin: float, end: float) -> list[tuple[int, float]]:
        """Minutes and values after `begin`, up to `end`."""
        return [(minute, value) for minute, value in enumerate(self.values) if begin < minute <= end]


def fires(expression: str, minutes: float, series: Sequence[Series], until: int) -> bool:
    """Whether an alert with this expression, held for `minutes`, fires for some labels up to the minute `until`."""
    since: dict[Labels, int] = {}
    for now in range(until + 1):
        found = evaluate(expression, series, now)
        assert not isinstance(found, float), "an alert needs a vector"
        since = {labels: since.get(labels, now) for labels in found}
        if any(now - began >= minutes for began in since.values()):
            return True
    return False


def evaluate(expression: str, series: Sequence[Series], now: int) -> Value:
    """Return the value of an expression at a minute. Raises ValueError or TypeError for a text that it does not understand."""
    reader = _Reader(list(_tokens(expression)), series, now)
    value = reader.alternatives()
    if reader.tokens:
        raise ValueError(f"unexpected {reader.tokens[0]!r} in {expression}")
    return value


def minutes(duration: str) -> float:
    """Return a duration such as `10m` in minutes."""
    return float(duration[:-1]) * _UNITS[duration[-1]]


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        if (match := _TOKEN.match(text, at)) is None:
            raise ValueError(f"not understood: {text[at:]!r}")
        yield match[0].strip()
        at = match.end()


@attrs.define
class _Reader:
    """Reads and evaluates by recursive descent: one method for each level of precedence."""

    tokens: list[str]
    series: Sequence[Series]
    now: int

    def alternatives(self) -> Value:
        left = self.conjunction()
        while self._take("or"):
            left = {**_vector(self.conjunction()), **_vector(left)}
        return left

    def conjunction(self) -> Value:
        left = self.comparison()
        while self._take("and"):
            right = _vector(self.comparison())
            left = {labels: value for labels, value in _vector(left).items() if labels in right}
        return left

    def comparison(self) -> Value:
        left = self.quotient()
        while self.tokens and self.tokens[0] in _COMPARE:
            holds = _COMPARE[self.tokens.pop(0)]
            right = self.quotient()
            left = {
                labels: value
                for labels, value in _vector(left).items()
                if (isinstance(right, float) or labels in right)
                and holds(value, right if isinstance(right, float) else right[labels])
            }
        return left

    def quotient(self) -> Value:
        left = self.operand()
        while self._take("/"):
            right = _vector(self.operand())
            left = {key: _divided(value, right[key]) for key, value in _vector(left).items() if key in right}
        return left

    def operand(self) -> Value:
        token = self.tokens.pop(0)
        if token == "(":
            value = self.alternatives()
            self._expect(")")
            return value
        if token[0].isdigit():
            return float(token)
        if token in _FOLD:
            return self._aggregation(_FOLD[token])
        if token in {"rate", "increase"}:
            return self._change(token)
        if token == "histogram_quantile":
            return self._quantile()
        return self._selected(token)

    def _aggregation(self, fold: Callable[[Sequence[float]], float]) -> Vector:
        by: list[str] = []
        if self._take("by"):
            self._expect("(")
            while not self._take(")"):
                by.append(self.tokens.pop(0))
                self._take(",")
        self._expect("(")
        groups: defaultdict[Labels, list[float]] = defaultdict(list)
        for labels, value in _vector(self.alternatives()).items():
            groups[frozenset((key, text) for key, text in labels if key in by)].append(value)
        self._expect(")")
        return {labels: fold(values) for labels, values in groups.items()}

    def _change(self, function: str) -> Vector:
        self._expect("(")
        chosen = self._chosen(self.tokens.pop(0))
        span = minutes(self.tokens.pop(0).strip("[]"))
        self._expect(")")
        found = {}
        for one in chosen:
            window = one.between(self.now - span, self.now)
            if len(window) > 1:
                grown = sum(max(after - before, 0) if after >= before else after for (_, before), (_, after) in pairwise(window))
                found[_labels(one)] = grown / ((window[-1][0] - window[0][0]) * 60) if function == "rate" else grown
        return found

    def _quantile(self) -> Vector:
        self._expect("(")
        share = float(self.tokens.pop(0))
        self._expect(",")
        buckets: defaultdict[Labels, list[tuple[float, float]]] = defaultdict(list)
        for labels, value in _vector(self.alternatives()).items():
            bound = dict(labels)["le"]
            rest = frozenset((key, text) for key, text in labels if key != "le")
            buckets[rest].append((float("inf") if bound == "+Inf" else float(bound), value))
        self._expect(")")
        return {labels: _within(sorted(found), share) for labels, found in buckets.items() if max(found)[1] > 0}

    def _selected(self, name: str) -> Vector:
        found = {}
        for one in self._chosen(name):
            if window := one.between(self.now - _STALE, self.now):
                found[_labels(one)] = window[-1][1]
        return found

    def _chosen(self, name: str) -> list[Series]:
        matchers = _MATCHER.findall(self.tokens.pop(0)) if self.tokens and self.tokens[0].startswith("{") else []
        return [one for one in self.series if one.name == name and all(_matches(one.labels, *each) for each in matchers)]

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise ValueError(f"{token!r} is missing before {self.tokens[:1]}")


def _vector(value: Value) -> Vector:
    if isinstance(value, float):
        raise TypeError("a vector is needed, not a number")
    return value


def _labels(series: Series) -> Labels:
    return frozenset(series.labels.items())


def _matches(labels: Mapping[str, str], name: str, sign: str, text: str) -> bool:
    value = labels.get(name, "")
    same = value == text if sign in {"=", "!="} else re.fullmatch(text, value) is not None
    return same == (sign in {"=", "=~"})


def _divided(value: float, by: float) -> float:
    return value / by if by else float("nan")


def _within(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """Interpolate in the bucket that holds the rank, as Prometheus does; the last finite bound for the open bucket."""
    rank = share * buckets[-1][1]
    before, count = 0.0, 0.0
    for bound, upto in buckets:
        if upto >= rank:
            if bound == float("inf"):
                return before
            return before + (bound - before) * (rank - count) / (upto - count)
        before, count = bound, upto
    return before


def parsed(text: str) -> list[Series]:
    """Read series from lines of names and values, `name{label="value"}  0+1x10`; each belongs to the job `gctd`."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, values = re.split(r"\s{2,}", line, maxsplit=1)
        one = Series.parse(name, values)
        found.append(attrs.evolve(one, labels={"job": "gctd", "instance": "one", **one.labels}))
    return found
