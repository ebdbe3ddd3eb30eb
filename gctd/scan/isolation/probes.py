"""Programs that try to leave a sandbox. The first argument is a directory that the sandbox lets them write to.

Each writes a file there, and prints `good`, or its findings.
"""

from __future__ import annotations

OF_MOUNTS = """
import os, socket, sys
inside, outside = sys.argv[1:]
open(os.path.join(inside, "written"), "w").close()
problems = []
if os.path.exists(outside):
    problems.append("other files can be seen")
if os.getuid() == 0:
    problems.append("it is root")
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 5:
    problems.append("other processes can be seen")
for place in ("/", "/usr", "/dev", "/proc/sys/kernel/core_pattern"):
    if os.access(place, os.W_OK):
        problems.append(place + " can be written to")
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
if [name for _, name in socket.if_nameindex() if name != "lo"]:
    problems.append("there is a network")
print("; ".join(problems) or "good")
"""
"""The second argument is a directory that must not exist in the sandbox."""

OF_FILES = """
import os, sys
inside, outside, secret = sys.argv[1:]
open(os.path.join(inside, "written"), "w").close()
problems = []
for what, attempt in {
    "other files can be read": lambda: open(secret),
    "other directories can be listed": lambda: os.listdir(outside),
    "other files can be written": lambda: open(secret, "r+"),
    "other files can be truncated": lambda: os.truncate(secret, 0),
    "other files can be linked": lambda: os.link(secret, os.path.join(inside, "linked")),
    "files can be made elsewhere": lambda: os.mkdir(os.path.join(outside, "made")),
}.items():
    try:
        attempt()
    except OSError:
        continue
    problems.append(what)
print("; ".join(problems) or "good")
"""
"""The second argument is a directory that must not be seen, the third a file in it."""
