"""Commands of go in the sandbox, and their log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from gctd.scan.disk import MIB
from gctd.scan.git.messages import redact
from gctd.scan.go.coverage_run.plan import Plan
from gctd.scan.go.coverage_run.steps import GoStep
from gctd.scan.go.toolchain import Toolchain
from gctd.scan.isolation.output import Lines, OnLog
from gctd.scan.isolation.process import Finished, run

_OUTPUT = 4096 * MIB


@attrs.frozen
class GoCommands:
    """Commands of go in the sandbox, with the rights of a step. Their lines go to `log`, without the operator's secrets."""

    _toolchain: Toolchain
    _plan: Plan
    log: OnLog

    async def run(
        self,
        arguments: Sequence[str],
        seconds: float,
        step: GoStep,
        *,
        on_stdout: Callable[[bytes], None],
        logged: bool = True,
    ) -> Finished:
        """Run go as a step."""
        plan = self._plan
        lines = Lines(self.log if not step.credentials else lambda line: self.log(self.redacted(line)))
        finished = await run(
            plan.sandbox.around([str(self._toolchain.go), *arguments], step.view),
            cwd=plan.module_dir,
            env=step.environment,
            timeout=max(seconds, 1.0),
            on_stdout=on_stdout,
            on_output=lines.feed if logged else None,
            limits=attrs.evolve(plan.limits, output=_OUTPUT),
            inputs=plan.sandbox.inputs,
            files=plan.sandbox.files(step.view),
            groups=plan.sandbox.groups,
        )
        lines.end()
        return finished

    def redacted(self, text: str) -> str:
        """The text without the operator's secrets."""
        secrets = self._plan.downloads.secrets()
        return redact(text, secrets) if secrets else text
