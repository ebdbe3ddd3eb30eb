"""TLS of a server: a certificate and its key in files."""

from __future__ import annotations

import ssl
from http import HTTPStatus
from pathlib import Path

from httpkit.errors import HttpkitError


class TlsUnusable(HttpkitError):
    """The certificate or the key cannot be used; the text names the file and the reason."""

    status = HTTPStatus.BAD_REQUEST


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return the TLS of a server, version 1.2 or newer. `certificate` is PEM, with the certificates between it and its authority.

    Raises TlsUnusable for files that cannot be read or do not belong together, and for a key that every user can read.
    """
    try:
        if key.stat().st_mode & 0o007:
            raise TlsUnusable(f"tls_key: every user of this machine has access to {key}: chmod 600 it")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise TlsUnusable(
            f"tls_certificate {certificate} and tls_key {key} cannot be used: {error.reason or 'no PEM'}. "
            "The key must be the certificate's, without a password"
        ) from error
    except OSError as error:
        raise TlsUnusable(f"tls_certificate or tls_key: {error.filename or key}: {error.strerror}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context
