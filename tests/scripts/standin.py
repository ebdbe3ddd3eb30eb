"""A service for tests of the supervisor: answers /readyz, says who it is, and misbehaves on request.

Arguments: port, and what to do besides: `fail` ends at once with status 3, `stubborn` ignores SIGTERM, `slow` takes 1 s to end.
"""

from __future__ import annotations

import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Not every poll is worth a line."""


def _end(*_: object) -> None:
    if behaviour == "slow":
        time.sleep(1)
    print('{"level": "info", "event": "ending"}', flush=True)
    sys.exit(0)


port, behaviour = int(sys.argv[1]), sys.argv[2]
print('{"level": "info", "event": "starting"}', flush=True)
print('{"level": "warning", "event": "a warning", "cause": "none"}', flush=True)
print("plain text", flush=True)
if behaviour == "fail":
    sys.exit("cannot start: no such thing")
signal.signal(signal.SIGTERM, signal.SIG_IGN if behaviour == "stubborn" else _end)
HTTPServer(("127.0.0.1", port), _Ready).serve_forever()
