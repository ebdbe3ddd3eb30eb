"""Options that several commands have: those that settings make, and those that say how to write.

What a setting is for stands in `gctd.settings`; it is read for the help, and for a command that runs, since it takes a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from gctd.cli.failure import Failure, name_of
from gctd.cli.output import Output
from gctd.client.errors import ExitCode
from gctd.domain.errors import BadInput
from gctd.domain.options import parse_duration

if TYPE_CHECKING:
    from gctd.settings import Loaded

Command = Callable[..., Any]

_NUMBERS = frozenset({"port", "concurrency", "max_attempts", "replicas"})
_SWITCHES = frozenset({"allow_local", "allow_ssh"})
_LISTS = frozenset({"allowed_hosts", "private_hosts"})
_ALSO = {"worker_id": ("--id",)}
_PREFIX = "setting_"


class _Duration(click.ParamType[float]):
    """A duration as Go writes it, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(value, shortest=0.001)
        except BadInput as error:
            self.fail(error.reason, param, ctx)


DURATION = _Duration()


class _SettingOption(click.Option):
    """The flag of a setting, with the help that the setting has."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from gctd.settings import describe  # noqa: PLC0415 - only for the help

        about = describe((self.name or "").removeprefix(_PREFIX))
        self.help = f"{about.help}  [env: {about.env}; default: {about.default}]"
        self.metavar = about.metavar
        return super().get_help_record(ctx)


def examples(*lines: str) -> str:
    """The end of a command's help: examples, a line each."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def output_options(command: Command) -> Command:
    """Give a command the options that say how to write; it gets an `output`."""

    @click.option("--json", "as_json", is_flag=True, help="Write JSON; errors too, on standard error.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress and no notes.")
    @click.option("-v", "--verbose", is_flag=True, help="Requests, and where an error happened, on standard error.")
    @click.option("--no-color", is_flag=True, help="No colour, whatever FORCE_COLOR says.")
    @wraps(command)
    def with_output(*args: Any, as_json: bool, quiet: bool, verbose: bool, no_color: bool, **kwargs: Any) -> Any:
        output = Output(json=as_json, quiet=quiet, verbose=verbose, no_color=no_color)
        return command(*args, output=output, **kwargs)

    return with_output


@attrs.frozen
class Sources:
    """Where a command's settings come from beside the environment: its flags, and the file that it names."""

    flags: Mapping[str, Any]
    file: Path | None

    def load(self) -> Loaded:
        """The settings. Raises Failure, which says which value is wrong and where it stands."""
        from gctd.settings import SettingsError, load  # noqa: PLC0415 - only where a command runs

        try:
            return load(self.flags, file=self.file)
        except SettingsError as error:
            what = name_of(click.get_current_context())
            why = "; ".join(str(error).splitlines())
            raise Failure(what, why, exit_code=ExitCode.USAGE, hint="gctd config show --help") from error


def setting_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the flags of these settings and `--config`; it gets the `sources` of its settings."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_sources(*args: Any, config: Path | None, **kwargs: Any) -> Any:
            flags = {name: kwargs.pop(f"{_PREFIX}{name}") for name in names}
            given = {name: value for name, value in flags.items() if value not in (None, ())}
            return command(*args, sources=Sources(given, config), **kwargs)

        chosen = click.Path(exists=True, dir_okay=False, path_type=Path)
        help_ = "Settings file.  [default: .gctd.yaml here, else in the home directory]"
        decorated: Command = click.option("--config", type=chosen, help=help_)(with_sources)
        for name in reversed(names):
            decorated = _setting_option(name)(decorated)
        return decorated

    return decorate


def _setting_option(name: str) -> Callable[[Command], Command]:
    flag, parameter = f"--{name.replace('_', '-')}", f"{_PREFIX}{name}"
    if name in _SWITCHES:
        return click.option(f"{flag}/--no-{flag.removeprefix('--')}", parameter, cls=_SettingOption, default=None)
    names = (*_ALSO.get(name, ()), flag, parameter)
    if name in _NUMBERS:
        return click.option(*names, cls=_SettingOption, type=click.INT)
    return click.option(*names, cls=_SettingOption, multiple=name in _LISTS)
