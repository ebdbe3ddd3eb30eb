"""`gctd check`: the gate in a working copy, without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gctd.cli.builds.limits import limit_options
from gctd.cli.builds.results import (
    EXCLUDED,
    FIXED,
    NOT_MEASURED,
    RESULTS,
    WORSE,
    JudgedFunction,
    failed,
    require_passed,
    show_checks,
    show_functions,
)
from gctd.cli.options import Sources, setting_options
from terminalkit import Choice, ExitCode, Invocation, command, examples
from terminalkit.display import Cell, Output

if TYPE_CHECKING:
    from gctd.cli.builds.checking.judge import ProjectJudgement
    from gctd.engines.changes.gate import GateVerdict
    from gctd.engines.report import FunctionEntry

FORMATS = ("text", "json", "markdown", "sarif")
FORMS = {".json": "json", ".md": "markdown", ".sarif": "sarif"}
"""The form of a file by its suffix."""
LISTED = 20
"""Limit of the functions of each kind in a text."""


@click.command(
    "check",
    epilog=examples(
        "gctd check                                     # this tree against its last commit",
        "gctd check --base main                         # a branch against main",
        "gctd check --output main.json                  # on main: a report for later",
        "gctd check --baseline main.json --profile cover.out",
        "gctd check --absolute --max-crap 30 --output crap.sarif --output comment.md",
    ),
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--project", "projects", multiple=True, metavar="DIR", help="Module to check; repeatable.  [default: all]")
@click.option("--base", help="Branch, tag or commit to compare with.  [default: HEAD; of an unchanged tree its parent]")
@click.option(
    "--baseline",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Report of `gctd check --output FILE.json` to compare with, instead of a commit.",
)
@click.option(
    "--profile",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Coverage profile of this tree by `go test -coverprofile`; no test is run then.",
)
@limit_options
@click.option("--test-args", help="Flags of go test, as in '-short -race'.")
@click.option("--go-flags", help="Flags of every go command, as in '-tags=integration'.")
@click.option("--coverpkg", is_flag=True, help="Tests of each package count for all packages of the module.")
@click.option("--format", "format_", type=Choice(FORMATS), help="Form of the printed result.  [default: text]")
@click.option(
    "--output",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the result, in the form of its suffix: .json, .md or .sarif; repeatable.",
)
@setting_options("cache_directory", "sandbox", "test_network", "task_timeout")
@command(logs=True)
async def check(
    invocation: Invocation,
    *,
    sources: Sources,
    directory: Path,
    projects: tuple[str, ...],
    base: str | None,
    baseline: Path | None,
    profile: Path | None,
    absolute: bool,
    test_args: str | None,
    go_flags: str | None,
    coverpkg: bool,
    format_: str | None,
    files: tuple[Path, ...],
    **limits: Any,
) -> int:
    """Judge the Go modules of a working copy by the gate, without a server.

    The tests run as a worker runs them: in a sandbox if the host has one. The base is measured in the same way, once for each
    commit, or read from a report. It has the limits and the rules of `gctd gate`.

    The exit code is 1 if the gate is not passed, and 8 if the result is unknown.
    """
    output = invocation.output
    if output.json and format_ not in (None, "json"):
        raise click.UsageError(f"--json and --format {format_}: only one of them can be written")
    for file in files:
        if file.suffix not in FORMS:
            raise click.UsageError(f"--output {file}: the suffix has to be one of {', '.join(FORMS)}")
    if baseline is not None and base is not None:
        raise click.UsageError("--base and --baseline: only one of them can be given")
    if profile is not None and baseline is None and not absolute:
        raise click.UsageError("a profile belongs to this tree only: compare with --baseline FILE, or use --absolute")
    from gctd.cli.builds.checking.check import CheckInputs, check_tree  # noqa: PLC0415 - help and completion do without it
    from gctd.domain.repo.config import ProjectConfig  # noqa: PLC0415 - as above

    threshold = limits.pop("threshold")
    config = ProjectConfig(
        test_args=test_args,
        go_flags=go_flags,
        coverpkg=coverpkg or None,
        crap_args=None if threshold is None else (f"--threshold={threshold:g}",),
    )
    found = await check_tree(
        sources.load().values,
        directory,
        config,
        limits | (dict.fromkeys(("max_new", "max_worse", "max_excluded")) if absolute else {}),
        compare=CheckInputs(base=None if absolute else base or "HEAD", baseline=baseline, profile=profile),
        only=projects,
        on_log=output.detail,
        on_step=output.note,
    )
    for file in files:
        file.write_bytes(_content(found, FORMS[file.suffix]))
        output.note(f"written: {file}")
    _print(output, found, "json" if output.json else format_ or "text")
    require_passed(
        invocation.what,
        [
            (
                one.after.analysis.project,
                one.verdict.result.value,
                [each.name.value for each in one.verdict.checks if each.passed is False],
                one.verdict.reason,
            )
            for one in found
        ],
    )
    return ExitCode.OK


def _content(found: Sequence[ProjectJudgement], form: str) -> bytes:
    from gctd.cli.builds.checking.judge import combined_sarif, written  # noqa: PLC0415 - slow

    if form == "json":
        return written(found)
    if form == "sarif":
        return combined_sarif(found)
    return "\n".join(each.comment() for each in found).encode()


def _print(output: Output, found: Sequence[ProjectJudgement], form: str) -> None:
    if form != "text":
        output.content(_content(found, form))
        return
    for index, each in enumerate(found):
        _show(output, each, apart=index > 0)


def _show(output: Output, one: ProjectJudgement, *, apart: bool) -> None:
    from gctd.exports.markdown import says  # noqa: PLC0415 - slow

    if apart:
        output.line("")
    analysis = one.after.analysis
    output.fields(
        [
            ("project", analysis.project),
            ("base", one.base),
            ("functions", f"{analysis.known.total_funcs} measured of {analysis.summary.total_funcs}"),
            ("risky", f"{analysis.risky}, over {one.rules.threshold:g}"),
            ("gate", RESULTS[one.verdict.result.value]),
            ("reason", one.verdict.reason),
        ]
    )
    show_checks(output, [(says(each, one.rules), each.value, each.limit, each.passed) for each in one.verdict.checks])
    functions = list(_functions(one.verdict))
    show_functions(output, functions[:LISTED], len(functions) - LISTED, "--output FILE.json")


def _functions(verdict: GateVerdict) -> Iterator[JudgedFunction]:
    """The functions of a verdict: the ones behind its result, then the others."""

    def listed(before: FunctionEntry | None, now: FunctionEntry, result: Cell, reason: str = "") -> JudgedFunction:
        return JudgedFunction(now.function, f"{now.file}:{now.line}", before, now, result, reason)

    for one in verdict.offenders:
        yield listed(one.before, one.after, failed(one.checks))
    for lacking in verdict.unmeasured:
        yield listed(lacking.before, lacking.after, NOT_MEASURED, lacking.reason)
    for left in verdict.excluded:
        yield listed(left.before, left.entry, EXCLUDED, left.reason)
    for worse in verdict.worsened:
        yield listed(worse.before, worse.after, WORSE)
    for fixed in verdict.fixed:
        yield listed(fixed.before, fixed.entry, FIXED)
