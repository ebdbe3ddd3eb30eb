"""The reader of a document: types its commands in terminals that have nothing but a home, a directory and a bare PATH."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import psutil

from tests.support.programs.command_blocks import Block, pattern_of

_MARK = "---- block ----"
_BEGIN = """
set -eo pipefail
servers=()
end() { for server in "${servers[@]}"; do kill -"$1" -- "-$server" 2> /dev/null || true; done; }
trap 'end KILL' EXIT
await() { until grep -qF -- "$2" "$3"; do kill -0 "$1"; sleep 0.1; done; }
"""
_END = """
end INT
for server in "${servers[@]}"; do wait "$server" || test $? = 130; done
trap - EXIT
"""


@attrs.frozen
class Reader:
    """A reader with a home, in a directory, on a network: the begin of a command line that runs there."""

    home: Path
    directory: Path
    network: Sequence[str]

    def terminal(self, script: str) -> Sequence[str]:
        """The command line of a terminal in which a script is typed."""
        return [*self.network, *self._bare(script)]

    def type(self, blocks: Sequence[Block], patience: float) -> Sequence[str]:
        """Type the blocks of a page, for at most `patience` seconds; return the differences from the shown output.

        Servers are interrupted at the end of the page, and have to run until then.
        """
        with tempfile.TemporaryDirectory() as folder:
            logs = {number: Path(folder) / f"{number}.txt" for number, block in enumerate(blocks) if block.use == "server"}
            script = "\n".join([_BEGIN, *self._lines(blocks, logs), _END])
            with (Path(folder) / "out.txt").open("w+") as out, (Path(folder) / "errors.txt").open("w+") as errors:
                command = self.terminal(script)
                with subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=errors) as typed:
                    try:
                        code: int | None = typed.wait(patience)
                    except subprocess.TimeoutExpired:
                        code = None
                    finally:
                        for process in [*psutil.Process(typed.pid).children(recursive=True)] if typed.poll() is None else []:
                            with suppress(psutil.NoSuchProcess):
                                process.kill()
                        typed.kill()
                out.seek(0)
                errors.seek(0)
                printed, said = out.read().split(f"{_MARK}\n"), errors.read()
            for number, log in logs.items():
                if number < len(printed) - 1:
                    printed[number] = log.read_text(encoding="utf-8")
                elif log.exists():
                    printed[-1] += log.read_text(encoding="utf-8")
        if code != 0:
            block = blocks[min(len(printed), len(blocks)) - 1]
            end = "not ended in time" if code is None else f"exit code {code}"
            return [f"{end}: {block.commands}\n{printed[-1]}\n{said}"]
        return [problem for block, output in zip(blocks, printed, strict=False) if (problem := _problem_of(block, output))]

    def _bare(self, script: str) -> Sequence[str]:
        return ["env", "-i", f"HOME={self.home}", "PATH=/usr/bin:/bin", "bash", "-c", script]

    def _lines(self, blocks: Sequence[Block], logs: dict[int, Path]) -> Iterator[str]:
        first = ""
        for number, block in enumerate(blocks):
            if block.use == "server":
                yield from self._server(f"{first}{block.commands}", block, logs[number])
            elif block.use == "stream":
                yield f"stream=$(mktemp)\n{{ {block.commands.strip()}\n}} > $stream &"
                yield "until [ -s $stream ]; do kill -0 $!; sleep 0.1; done; kill $!; wait $! || true; cat $stream"
            else:
                yield block.commands
                first += block.commands if block.use == "each terminal" else ""
            yield f"echo '{_MARK}'"

    def _server(self, script: str, block: Block, log: Path) -> Iterator[str]:
        """Begin it in a process group, as a terminal does, and wait for the last line that is shown."""
        command = shlex.join(self._bare(f"set -eo pipefail\ncd {shlex.quote(str(self.directory))}\n{script}"))
        yield f"set -m\n{command} > {log} 2>&1 &\nset +m\nservers+=($!)"
        lines = [line for line in (block.output or "").splitlines() if line != "…"]
        if lines:
            ready = max(lines[-1].strip().split("…"), key=len)
            yield f"await $! {shlex.quote(ready)} {log}"


def _problem_of(block: Block, printed: str) -> str | None:
    """As of the block; a server prints more lines later."""
    if block.use != "server" or block.output is None:
        return block.problem_of(printed)
    return None if pattern_of(block.output).match(printed) else f"{block.commands}\n{printed}"
