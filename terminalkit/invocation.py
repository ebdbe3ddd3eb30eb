"""One run of a program, from the command line to the exit code: how errors, signals and a closed output end it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence

import attrs
import click

from terminalkit.display.output import Output, OutputClosed
from terminalkit.failure import ExitCode, Explainer, Failure, command_name


@attrs.define
class Invocation:
    """The state of the run. Commands fill it in, so that every end of a command is reported in its words.

    `what`: the command in the words of the user. `not_found`: advice if the thing that was asked for is not found. `goes_on` and
    `goes_on_hint`: the work that continues after the command is interrupted, and the way back to it.
    """

    output: Output
    explainer: Explainer
    what: str = attrs.field(default=attrs.Factory(lambda self: self.explainer.program, takes_self=True))
    not_found: str | None = None
    goes_on: str | None = None
    goes_on_hint: str | None = None

    def end(self, command: Callable[[], int]) -> int:
        """Run the command and return the exit code. Its errors are reported, never raised."""
        try:
            code = command()
            sys.stdout.flush()
        except (OutputClosed, BrokenPipeError):
            code = ExitCode.OUTPUT_CLOSED
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place to say anything
            code = self._report(error)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # reported above; Python, which flushes once more at its end, must not find it
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return code

    def _report(self, error: BaseException) -> int:
        failure = self.explainer.explain(error, self.what, not_found=self.not_found)
        if failure is None:
            text = f"internal error, a defect of the program: {error!r}"
            failure = Failure(self.what, text, hint="--verbose shows the traceback")
        elif self.goes_on is not None and failure.exit_code in {ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.TIMEOUT}:
            failure = Failure(self.what, f"{failure.why}; {self.goes_on}", exit_code=failure.exit_code, hint=self.goes_on_hint)
        self.output.trace("".join(traceback.format_exception(error)))
        self.output.error(failure.what, failure.why, code=failure.exit_code.name.lower(), hint=failure.hint)
        return failure.exit_code


def begin_invocation(ctx: click.Context, output: Output | None = None, *, not_found: str | None = None) -> Invocation:
    """The run that this context belongs to, which is about its command from now on and reports as `output` does."""
    invocation = ctx.find_object(Invocation)
    assert invocation is not None, "`Program.run` makes one"
    invocation.what, invocation.not_found = command_name(ctx), not_found
    invocation.output = output or invocation.output
    return invocation


def output_for(argv: Sequence[str]) -> Output:
    """How to report what goes wrong before the command line is understood."""
    given = set(argv)
    return Output(json="--json" in given, verbose=not given.isdisjoint({"--verbose", "-v"}), no_color="--no-color" in given)
