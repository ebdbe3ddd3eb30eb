"""A process that derives: takes parts of batches from the process that started it, and returns their changes.

`python -m projections.parallel.worker`, with a socket as its standard input. It ends with the other side of that.
"""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing.connection import Connection


def main() -> None:
    """Answer until the other side closes the socket."""
    with Connection(os.dup(sys.stdin.fileno())) as asked:
        try:
            path, place = pickle.loads(asked.recv_bytes())  # noqa: S301 - from the process that started this one
            sys.path[:] = path
            from projections.models import at  # noqa: PLC0415 - found by the path of the other process
            from projections.parallel.parts import answer_to  # noqa: PLC0415 - as above

            model = at(place)
            while True:
                asked.send_bytes(answer_to(model, (asked.recv_bytes(), asked.recv_bytes())))
        except (EOFError, ConnectionError):
            return


if __name__ == "__main__":
    main()
