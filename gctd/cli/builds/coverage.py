"""`gctd coverage`: profiles that a build server made."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import click

from gctd.cli.completion import repo_urls
from gctd.cli.repos.history import analyses_of, project_option
from gctd.cli.session import Session, client_command
from gctd.cli.tasks.scheduled import no_wait_option, see_through, top_option
from terminalkit import Failure, examples

_ASKED = ("GOVERSION", "GOOS", "GOARCH", "CGO_ENABLED")


@click.group()
def coverage() -> None:
    """Send coverage profiles of tests that ran elsewhere."""


@coverage.command(
    "upload",
    epilog=examples(
        "gctd coverage upload https://github.com/owner/name cover.out --commit $(git rev-parse HEAD)",
        "gctd coverage upload https://github.com/owner/name cover.out --commit $SHA --flag windows --platform windows/amd64",
        "gctd coverage upload https://github.com/owner/name cover.out --commit $SHA --json | jq '.analyses[].measured'",
    ),
)
@click.argument("url", shell_complete=repo_urls)
@click.argument("profile", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--commit", required=True, help="Full id of the tested commit.")
@click.option("--flag", default="tests", show_default=True, help="Name that tells the profile from others of the commit.")
@project_option
@click.option("--ref", help="Branch or tag of the commit.  [default: the project's setting]")
@click.option("--go-version", help="Version of Go that ran the tests, as go1.26.9.  [default: as the go program of PATH]")
@click.option("--platform", help="GOOS/GOARCH of the tests.  [default: as the go program of PATH]")
@click.option("--cgo/--no-cgo", default=None, help="CGO_ENABLED of the tests.  [default: as the go program of PATH]")
@click.option("--tags", default="", help="Build tags of the tests, separated by commas.")
@click.option("--coverpkg", is_flag=True, help="The tests ran with -coverpkg=./..., so that they count for all packages.")
@click.option("--tests-failed", is_flag=True, help="Some tests did not pass: the coverage is a lower bound.")
@click.option("--replace", is_flag=True, help="Replace another profile of the commit with the same flag.")
@top_option
@no_wait_option
@client_command(not_found="gctd repo show {url}")
async def upload(
    session: Session,
    *,
    url: str,
    profile: Path,
    commit: str,
    flag: str,
    project: str | None,
    ref: str | None,
    go_version: str | None,
    platform: str | None,
    cgo: bool | None,
    tags: str,
    coverpkg: bool,
    tests_failed: bool,
    replace: bool,
    top: int,
    no_wait: bool,
) -> int:
    """Score PROFILE, which `go test -coverprofile` wrote for a commit of the repository at URL. No test is run.

    The profile is checked against the source at that commit. Several profiles of one commit, of other platforms for example, are
    merged under their flags. Sending the same profile again has no effect.
    """
    text = _read(profile)
    known = _of_go() if go_version is None or platform is None or cgo is None else {}
    body = {
        "commit": commit.lower(),
        "flag": flag,
        "profile": text,
        "go_version": go_version or _found(known, "GOVERSION", "--go-version"),
        "platform": platform or f"{_found(known, 'GOOS', '--platform')}/{_found(known, 'GOARCH', '--platform')}",
        "cgo": known.get("CGO_ENABLED") != "0" if cgo is None else cgo,
        "tags": [tag for tag in tags.split(",") if tag],
        "module_scope": coverpkg,
        "tests_failed": tests_failed,
        "replace": replace,
        **({} if ref is None else {"ref": ref}),
    }
    task = await session.client.upload_coverage(await analyses_of(session, url, project), body)
    return await see_through(session, url, [task], top=top, no_wait=no_wait)


def _read(profile: Path) -> str:
    try:
        return profile.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{profile} cannot be read: {error}") from error


def _of_go() -> Mapping[str, str]:
    """Return the settings of the go program of PATH, empty if there is none."""
    go = shutil.which("go")
    if go is None:
        return {}
    done = subprocess.run([go, "env", "-json", *_ASKED], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {}
    return {name: str(value) for name, value in found.items()}


def _found(known: Mapping[str, str], name: str, option: str) -> str:
    if not known.get(name):
        raise Failure("coverage upload", f"no go program of PATH reports {name}", hint=f"say it with {option}")
    return known[name]
