"""Declarations of `streams.yaml`: streams, durable consumers and buckets, read, checked and translated to the server's terms."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import yaml

from eventlog.errors import EventLogError

FILE = "streams.yaml"

_DURATIONS = frozenset({"max_age", "duplicate_window", "ack_wait", "inactive_threshold", "ttl"})
_SIZES = frozenset({"max_bytes", "max_msg_size"})
_STREAM_FIELDS = frozenset(
    {
        *("description", "subjects", "storage", "retention", "discard", "duplicate_window", "compression"),
        *("max_age", "max_msgs", "max_msgs_per_subject", "max_msg_size", "max_bytes"),
        *("deny_delete", "deny_purge", "allow_rollup_hdrs", "allow_msg_ttl", "allow_direct", "allow_atomic"),
        *("sealed", "no_ack", "subject_transform", "sources"),
    }
)
_CONSUMER_FIELDS = frozenset(
    {
        *("description", "filter_subjects", "deliver_policy", "ack_policy", "ack_wait"),
        *("max_deliver", "max_ack_pending", "max_waiting", "inactive_threshold"),
    }
)
_BUCKET_FIELDS = frozenset({"description", "ttl", "max_bytes", "storage"})

_SECOND = 1_000_000_000
_UNITS = {"ms": _SECOND // 1000, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_BINARY_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}

Kind = Literal["stream", "key-value bucket", "object bucket"]


class DeclarationInvalid(EventLogError):
    """The file of declarations, or an override of it, is invalid."""


@attrs.frozen
class Stream:
    """A stream that shall exist: its name, its configuration in the server's fields (nanoseconds, bytes), its purpose.

    With `incarnation` it gets a random id in its metadata when it is created. With `keys_of` it has the keys of sealed events:
    `stream` has these events, and the category `erased` an aggregate for each erased key. It is never copied together with the
    others (`eventlog.admin.backup`), nor created while it has to be restored. `aim` is its declared size, if its size is fitted
    to a disk (`eventlog.admin.reconcile`).
    """

    name: str
    config: Mapping[str, Any]
    kind: Kind = "stream"
    incarnation: bool = False
    keys_of: Mapping[str, str] | None = None
    aim: int | None = None

    @property
    def apart(self) -> bool:
        """Whether it is never copied together with the others."""
        return self.keys_of is not None


@attrs.frozen
class Consumer:
    """A durable consumer that shall exist on a stream, with its configuration in the server's fields."""

    name: str
    stream: str
    config: Mapping[str, Any]


@attrs.frozen
class Declarations:
    """All that shall exist on the server."""

    streams: tuple[Stream, ...]
    consumers: tuple[Consumer, ...] = ()

    def only(self, *streams: str) -> Declarations:
        """These streams and buckets (by their names in the file), and the consumers on them."""
        chosen = tuple(stream for stream in self.streams if _short(stream) in streams)
        if missing := set(streams) - set(map(_short, chosen)):
            raise DeclarationInvalid(f"not declared: {', '.join(sorted(missing))}")
        names = {stream.name for stream in chosen}
        return Declarations(chosen, tuple(consumer for consumer in self.consumers if consumer.stream in names))

    @property
    def names(self) -> frozenset[str]:
        """The names in the file of all streams, buckets and consumers: the ones that can be overridden."""
        return frozenset((*map(_short, self.streams), *(consumer.name for consumer in self.consumers)))

    @property
    def lasting(self) -> tuple[Stream, ...]:
        """The streams that are copied together: the irreplaceable ones, except for each that is apart."""
        return tuple(stream for stream in self.irreplaceable if not stream.apart)

    @property
    def irreplaceable(self) -> tuple[Stream, ...]:
        """The streams that cannot be rebuilt from others: logs and keys, then the objects that their events refer to."""
        logs = [stream for stream in self.streams if stream.incarnation]
        return (*logs, *(stream for stream in self.streams if stream.kind == "object bucket"))


def load_declarations(
    path: Path | None = None, *, replicas: int = 1, overrides: Mapping[str, Mapping[str, Any]] | None = None
) -> Declarations:
    """The declarations of a file, by default the `streams.yaml` that this package came with.

    `replicas` is the number of servers that hold each stream: 1, or 3 on a cluster. `overrides` replaces single fields, by the
    name of the stream, consumer or bucket and in the notation of the file: `{"workers": {"ack_wait": "3s"}}`.
    Raises DeclarationInvalid.
    """
    return parse(read(path or default_file()), replicas=replicas, overrides=overrides)


def read(file: Path) -> Mapping[str, Any]:
    """The sections of a file. Raises DeclarationInvalid."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DeclarationInvalid(f"{file} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise DeclarationInvalid(f"{file} has no sections")
    return content


EVENT_STREAM: Mapping[str, Any] = {
    "incarnation": True,
    "storage": "file",
    "retention": "limits",
    "discard": "new",
    "max_age": 0,
    "max_msgs": -1,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "deny_delete": True,
    "deny_purge": True,
    "allow_rollup_hdrs": False,
    "allow_msg_ttl": False,
    "sealed": False,
    "no_ack": False,
    "subject_transform": None,
    "sources": [],
    "allow_direct": True,
    "allow_atomic": True,
    "duplicate_window": "2m",
}
"""The fields of a stream of events, in the notation of the file: nothing in it changes, goes or expires; a full one refuses.

A service compares them with the fields on the server every few seconds (`eventlog.admin.reconcile.danger_of`).
"""


def event_stream(
    name: str, categories: Iterable[str], *, file: Path | None = None, replicas: int = 1, max_bytes: str | None = None
) -> Declarations:
    """The declaration of a stream of events: from the file if it has that name, else for these categories.

    `categories` name kinds of aggregates (`bank.account`). `file` is by default the one that this package came with, if any.
    `max_bytes` is the size that the stream may have, as in `1GiB`, where not what the file says; without both 1 GiB. Raises
    DeclarationInvalid.
    """
    overrides = {} if max_bytes is None else {name: {"max_bytes": max_bytes}}
    if (declared_in := file or _default_file()) is not None and name in read(declared_in).get("streams", {}):
        return load_declarations(declared_in, replicas=replicas, overrides=overrides).only(name)
    subjects = sorted(f"{category}.*" for category in categories)
    fields = {**EVENT_STREAM, "description": f"Events of {name}", "subjects": subjects, "max_bytes": max_bytes or "1GiB"}
    return parse({"streams": {name: fields}}, replicas=replicas)


def default_file() -> Path:
    """The path of `streams.yaml`: at the top of a checkout, or where the installed distribution put it.

    Raises DeclarationInvalid without one.
    """
    if (file := _default_file()) is None:
        raise DeclarationInvalid(f"{FILE} is neither next to the package nor installed with it")
    return file


def _default_file() -> Path | None:
    checkout = Path(__file__).parents[2] / FILE
    if checkout.is_file():
        return checkout
    for distribution in importlib.metadata.packages_distributions().get(__name__.partition(".")[0], ()):
        for file in importlib.metadata.files(distribution) or ():
            if file.name == FILE:
                return Path(str(file.locate())).resolve()
    return None


def parse(
    content: Mapping[str, Any], *, replicas: int = 1, overrides: Mapping[str, Mapping[str, Any]] | None = None
) -> Declarations:
    """Return the declarations of the content of a file. Parameters and errors as in `load`."""
    unused = dict(overrides or {})
    sections = {
        section: [(name, dict(fields) | dict(unused.pop(name, {}))) for name, fields in content.get(section, {}).items()]
        for section in ("streams", "consumers", "key_value", "objects")
    }
    if unknown := set(content) - set(sections) - {"templates"}:
        raise DeclarationInvalid(f"unknown sections: {', '.join(sorted(unknown))}")
    if unused:
        raise DeclarationInvalid(f"overridden but not declared: {', '.join(sorted(unused))}")
    streams = [
        *(_stream(name, fields) for name, fields in sections["streams"]),
        *(_key_value(name, fields) for name, fields in sections["key_value"]),
        *(_objects(name, fields) for name, fields in sections["objects"]),
    ]
    consumers = [_consumer(name, fields) for name, fields in sections["consumers"]]
    names = {stream.name for stream in streams}
    for consumer in consumers:
        if consumer.stream not in names:
            raise DeclarationInvalid(f"consumer {consumer.name}: the stream {consumer.stream!r} is not declared")
    return Declarations(
        tuple(attrs.evolve(stream, config={**stream.config, "num_replicas": replicas}) for stream in streams), tuple(consumers)
    )


def _stream(name: str, fields: dict[str, Any]) -> Stream:
    incarnation, keys_of = fields.pop("incarnation", False), fields.pop("keys_of", None)
    return Stream(name, _checked(name, fields, _STREAM_FIELDS), incarnation=incarnation, keys_of=keys_of)


def _consumer(name: str, fields: dict[str, Any]) -> Consumer:
    stream = fields.pop("stream", "")
    return Consumer(name, stream, {"durable_name": name} | _checked(name, fields, _CONSUMER_FIELDS))


def _key_value(name: str, fields: dict[str, Any]) -> Stream:
    """The stream behind a key-value bucket (ADR-8), with a history of one."""
    fields = _checked(name, fields, _BUCKET_FIELDS)
    ttl = fields.pop("ttl", 0)
    config = fields | {
        "subjects": [f"$KV.{name}.>"],
        "max_age": ttl,
        "max_msgs_per_subject": 1,
        "discard": "new",
        "deny_delete": True,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "duplicate_window": min(ttl or _UNITS["m"] * 2, _UNITS["m"] * 2),
    }
    return Stream(f"KV_{name}", {"storage": "file"} | config, "key-value bucket")


def _objects(name: str, fields: dict[str, Any]) -> Stream:
    """The stream behind an object bucket (ADR-20)."""
    fields = _checked(name, fields, _BUCKET_FIELDS)
    config = fields | {
        "subjects": [f"$O.{name}.C.>", f"$O.{name}.M.>"],
        "max_age": fields.pop("ttl", 0),
        "max_msgs": -1,
        "max_msgs_per_subject": -1,
        "discard": "new",
        "allow_rollup_hdrs": True,
        "allow_direct": True,
    }
    return Stream(f"OBJ_{name}", {"storage": "file"} | config, "object bucket")


def _checked(name: str, fields: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    if unknown := set(fields) - known:
        raise DeclarationInvalid(f"{name}: unknown fields {', '.join(sorted(unknown))}")
    plain = {field: _plain(f"{name}.{field}", field, value) for field, value in fields.items()}
    if "max_bytes" in known and plain.get("max_bytes", -1) <= 0:
        raise DeclarationInvalid(f"{name}: max_bytes has to be given, or one stream can take all of the disk")
    return plain


def _plain(where: str, field: str, value: Any) -> Any:
    if isinstance(value, str) and field in _DURATIONS:
        return _quantity(where, value, _UNITS)
    if isinstance(value, str) and field in _SIZES:
        return int(value) if value.isdecimal() else _quantity(where, value, _BINARY_UNITS)
    return value


def _quantity(where: str, text: str, units: Mapping[str, int]) -> int:
    quantity = re.fullmatch(r"([0-9]+) ?([A-Za-z]+)", text)
    if quantity is None or quantity[2] not in units:
        raise DeclarationInvalid(f"{where}: {text!r} is not a number with one of the units {', '.join(units)}")
    return int(quantity[1]) * units[quantity[2]]


def _short(stream: Stream) -> str:
    return stream.name if stream.kind == "stream" else stream.name.partition("_")[2]
