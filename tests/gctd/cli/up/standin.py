"""A service for tests of the supervisor: it answers /readyz with its name, and misbehaves on request.

Arguments: port, and a kind of behaviour: `fail` ends at once with status 3, `stubborn` ignores SIGTERM, `slow` takes 1 s to end,
`busy` is ready after 10 s and reports its progress until then, `stuck` is never ready, and its report never changes. `guarded`
asks for a token, `tls` answers https only.
"""

from __future__ import annotations

import signal
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        passed = time.monotonic() - began
        ready = behaviour != "stuck" and (behaviour != "busy" or passed > 10)
        self.send_response(401 if behaviour == "guarded" else 200 if ready else 503)
        self.end_headers()
        if not ready:
            self.wfile.write(f"{passed if behaviour == 'busy' else 0:.1f} s".encode())

    def log_message(self, *_: object) -> None:
        """Not every poll is worth a line."""


def _end(*_: object) -> None:
    if behaviour == "slow":
        time.sleep(1)
    print('{"level": "info", "event": "ending"}', flush=True)
    print("error: standin: terminated", flush=True)
    sys.exit(0)


began = time.monotonic()
port, behaviour = int(sys.argv[1]), sys.argv[2]
print('{"level": "info", "event": "starting"}', flush=True)
print('{"level": "warning", "event": "a warning", "cause": "none"}', flush=True)
print("plain text, 100% as it is", flush=True)
if behaviour == "fail":
    sys.exit("cannot start: no such thing")
signal.signal(signal.SIGTERM, signal.SIG_IGN if behaviour == "stubborn" else _end)
server = HTTPServer(("127.0.0.1", port), _Ready)
if behaviour == "tls":
    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("gctd.example.com").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
