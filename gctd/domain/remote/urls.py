"""The address of a repository: the accepted forms, and the canonical form, which is the repository's identity.

The accepted forms are `https://host/path`, and the same without `https://`. If the operator allows them, also `http://`,
`ssh://`, the scp form `user@host:path`, `file://` and absolute paths. The text is handed to git, so the rules are strict: any
text that git, curl or ssh could read as an option, a helper's name, a credential or another host than the visible one is refused.
"""

from __future__ import annotations

import re
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address
from typing import Literal
from urllib.parse import quote, unquote_to_bytes

import attrs

from gctd.domain.errors import BadInput
from gctd.domain.remote.addresses import PUBLIC_ONLY, AddressPolicy

MAX_LENGTH = 2048

Kind = Literal["https", "http", "ssh", "local"]

_DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SCP = re.compile(r"((?:[^@/:]*@)?(?:\[[^\]]*\]|[^/:\[\]]+)):(?!//)(.*)", re.DOTALL)
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SEGMENT = re.compile(r"(?:[A-Za-z0-9._~+@:,=-]|%[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NEVER_ESCAPED = frozenset(b"/\\%?#")


@attrs.frozen(kw_only=True)
class RepoUrl:
    """A repository's address. `canonical` is its identity, `clone_url` what git is given; `host` is empty for a local one."""

    canonical: str
    clone_url: str
    host: str
    path: str
    kind: Kind
    port: int | None = None


def repo_id(canonical: str) -> str:
    """The id of a repository: 32 hex digits that its canonical URL determines."""
    return sha256(canonical.encode()).hexdigest()[:32]


def parse_repo_url(
    text: str,
    *,
    allow_local: bool = False,
    allow_ssh: bool = False,
    allow_http: bool = False,
    addresses: AddressPolicy = PUBLIC_ONLY,
    field: str = "repo_url",
) -> RepoUrl:
    """The repository that a text names. `addresses` lists hosts outside the public internet that the operator allows.

    Raises BadInput(field, reason); the reason never repeats a credential.
    """
    parser = _Parser(field, allow_local=allow_local, allow_ssh=allow_ssh, allow_http=allow_http, addresses=addresses)
    return parser.parse(text)


@attrs.frozen
class _Parser:
    field: str
    allow_local: bool
    allow_ssh: bool
    allow_http: bool
    addresses: AddressPolicy

    def parse(self, text: str) -> RepoUrl:
        if not text:
            raise self._bad("must not be empty")
        if len(text) > MAX_LENGTH:
            raise self._bad(f"longer than {MAX_LENGTH} characters")
        if any(character < " " or "\x7f" <= character < "\xa0" or "\ud800" <= character <= "\udfff" for character in text):
            raise self._bad("has control characters in it")
        if text.startswith("-"):
            raise self._bad("begins with '-'")
        if _HELPER.match(text):
            raise self._bad("names a remote helper (`name::address`), which is not allowed")
        scheme = _SCHEME.match(text)
        if scheme:
            return self._with_scheme(scheme[1].lower(), scheme[2])
        if text.startswith("/"):
            return self._local(text)
        self._check_characters(text)
        scp = _SCP.fullmatch(text)
        if scp:
            return self._ssh(scp[1], f"/{scp[2].removeprefix('/')}", scp_form=text)
        return self._web("https", text)

    def _with_scheme(self, scheme: str, rest: str) -> RepoUrl:
        if scheme == "file":
            if rest.startswith("localhost/"):
                rest = rest.removeprefix("localhost")
            if not rest.startswith("/"):
                raise self._bad("a file URL must have the form file:///absolute/path")
            return self._local(self._unescape(rest), bare_path=False)
        self._check_characters(rest)
        if scheme == "https" or (scheme == "http" and self.allow_http):
            return self._web(scheme, rest)
        if scheme == "ssh":
            authority, slash, path = rest.partition("/")
            return self._ssh(authority, slash + path)
        if scheme == "http":
            raise self._bad("http is not encrypted and not allowed: use https")
        raise self._bad(f"the scheme {scheme!r} is not allowed: use https")

    def _check_characters(self, text: str) -> None:
        if any(character.isspace() for character in text):
            raise self._bad("has white space in it")
        if not text.isascii():
            raise self._bad("has characters outside ASCII: write the host in its xn-- form and the path percent-encoded")
        if "\\" in text:
            raise self._bad("has a backslash in it")
        if "#" in text:
            raise self._bad("has a fragment (#...)")
        if "?" in text:
            raise self._bad("has a query (?...)")

    # One method per kind

    def _web(self, scheme: str, rest: str) -> RepoUrl:
        authority, slash, path = rest.partition("/")
        if "@" in authority:
            raise self._bad("has a user name or password in it: credentials belong into the worker's configuration")
        host, port = self._host_and_port(authority, scheme)
        path = self._path(slash + path)
        origin = f"{scheme}://{_bracketed(host)}{_port_suffix(port, scheme)}"
        kind: Kind = "https" if scheme == "https" else "http"
        return RepoUrl(
            canonical=origin + path.removesuffix(".git"), clone_url=origin + path, host=host, path=path, kind=kind, port=port
        )

    def _ssh(self, authority: str, path: str, *, scp_form: str | None = None) -> RepoUrl:
        user, at, address = authority.rpartition("@")
        if not self.allow_ssh:
            raise self._bad("ssh is not allowed here: use https")
        if ":" in user:
            raise self._bad("has a password in it")
        if at and not _USER.fullmatch(user):
            raise self._bad("the user name is not valid")
        host, port = self._host_and_port(address, "ssh")
        path = self._path(path)
        origin = f"ssh://{user}{at}{_bracketed(host)}{_port_suffix(port, 'ssh')}"
        clone_url = origin + path
        if scp_form is not None:  # relative to the user's home, unlike the path of an ssh:// URL
            clone_url = f"{user}{at}{_bracketed(host)}:{path if scp_form.partition(':')[2].startswith('/') else path[1:]}"
        return RepoUrl(
            canonical=origin + path.removesuffix(".git"), clone_url=clone_url, host=host, path=path, kind="ssh", port=port
        )

    def _local(self, path: str, *, bare_path: bool = True) -> RepoUrl:
        if not self.allow_local:
            raise self._bad("repositories on the local disk are not allowed here")
        if path.startswith("//"):
            raise self._bad("the path begins with two slashes")
        segments = [segment for segment in path.split("/") if segment not in ("", ".")]
        if ".." in segments:
            raise self._bad("the path has '..' in it")
        if not segments:
            raise self._bad("the path names no repository")
        clean = "/" + "/".join(segments)
        url = "file://" + quote(clean)
        if bare_path and len(url) > MAX_LENGTH:
            raise self._bad(f"longer than {MAX_LENGTH} characters")
        return RepoUrl(canonical=url, clone_url=url, host="", path=clean, kind="local")

    # Parts

    def _host_and_port(self, authority: str, scheme: str) -> tuple[str, int | None]:
        bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", authority)
        plain = re.fullmatch(r"([^:\[\]@]*)(?::(.*))?", authority)
        match = bracketed or plain
        if match is None:
            raise self._bad("the host is not valid")
        host = self._address(match[1]) if bracketed else self._name(match[1].lower())
        problem = self.addresses.name_problem(host)
        if problem:
            raise self._bad(problem)
        if match[2] is None:
            return host, None
        if not re.fullmatch(r"[0-9]{1,5}", match[2]) or not 0 < int(match[2]) < 65536:
            raise self._bad("the port is not a number from 1 to 65535")
        return host, int(match[2]) if int(match[2]) != _DEFAULT_PORTS[scheme] else None

    def _address(self, text: str) -> str:
        try:
            address = IPv6Address(text)
        except ValueError:
            raise self._bad("the host is not a valid IPv6 address") from None
        if address.scope_id is not None:
            raise self._bad("the host is an address with a zone")
        return str(address)

    def _name(self, host: str) -> str:
        if not host:
            raise self._bad("has no host")
        labels = host.split(".")
        if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
            raise self._bad("the host is not valid")
        if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):  # what a resolver would take for an address in some notation
            try:
                IPv4Address(host)
            except ValueError:
                raise self._bad("the host is neither a name nor an address of four numbers") from None
        return host

    def _path(self, path: str) -> str:
        """The path without slashes at its end, escapes in one form."""
        stripped = path.rstrip("/")
        if not stripped:
            raise self._bad("has no path: it must name a repository, as in https://host/owner/name")
        segments = [self._segment(segment) for segment in stripped[1:].split("/")]
        if segments[-1] == ".git":
            raise self._bad("has no path: it must name a repository, as in https://host/owner/name")
        return "/" + "/".join(segments)

    def _segment(self, segment: str) -> str:
        if not segment:
            raise self._bad("the path has an empty part (//)")
        if not _SEGMENT.fullmatch(segment):
            raise self._bad("the path has characters that are not allowed in it")
        if segment.startswith("-"):
            raise self._bad("a part of the path begins with '-'")
        clean = _ESCAPE.sub(self._escape, segment)
        if clean in (".", ".."):
            raise self._bad("the path has '.' or '..' in it")
        return clean

    def _escape(self, match: re.Match[str]) -> str:
        byte = int(match[0][1:], 16)
        if byte < 0x20 or byte == 0x7F or byte in _NEVER_ESCAPED:
            raise self._bad(f"the path has an escaped character that is not allowed in it ({match[0]})")
        return chr(byte) if byte in _UNRESERVED else match[0].upper()

    def _unescape(self, path: str) -> str:
        try:
            text = unquote_to_bytes(path).decode()
        except UnicodeDecodeError:
            raise self._bad("the path is not UTF-8") from None
        if any(character < " " or character == "\x7f" for character in text):
            raise self._bad("has control characters in it")
        return text

    def _bad(self, reason: str) -> BadInput:
        return BadInput(self.field, reason)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _port_suffix(port: int | None, scheme: str) -> str:
    return "" if port is None or port == _DEFAULT_PORTS[scheme] else f":{port}"
