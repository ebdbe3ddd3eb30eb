"""Flags of settings. The help of each has the description of the setting, its variable and its default.

The description is in the program's settings class. That class is imported for the help, and for a command that runs, since the
import takes a while.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin

import attrs
import click

from terminalkit.coroutine import Function
from terminalkit.display.output import Output
from terminalkit.display.table import Column
from terminalkit.failure import ExitCode, Failure, command_name
from terminalkit.invocation import Invocation

if TYPE_CHECKING:
    from terminalkit.config.loading import LoadedSettings, SettingInfo, SettingsSource, SettingValue

C = TypeVar("C")

_PREFIX = "setting_"


@attrs.frozen
class SettingSources(Generic[C]):
    """The sources of a command's settings besides the environment: its flags, and the file that it names."""

    flags: Mapping[str, Any]
    file: Path | None
    of: SettingFlags[C]

    def load(self, *, running: Collection[str] = ()) -> LoadedSettings[C]:
        """Return the settings, with a warning for each variable that has no effect. `running` is as in `SettingsSource.load`.

        Raises Failure with the wrong value and its source.
        """
        from terminalkit.config.loading import SettingsError  # noqa: PLC0415 - only for a command that runs

        ctx = click.get_current_context()
        source = self.of.source()
        if (invocation := ctx.find_object(Invocation)) is not None:
            for sentence in source.unknown(os.environ):
                invocation.output.note(f"warning: {sentence}")
        try:
            return source.load(self.flags, file=self.file, running=running)
        except SettingsError as error:
            why = "; ".join(str(error).splitlines())
            hint = f"{ctx.find_root().info_name} config show --help"
            raise Failure(command_name(ctx), why, exit_code=ExitCode.USAGE, hint=hint) from error


@attrs.frozen(kw_only=True)
class SettingFlags(Generic[C]):
    """The flags of a program's settings.

    `source` gives the settings; it may import modules that are slow. `file` is the name of the settings file. A setting is a text
    unless it is one of `numbers`, `switches` or `lists`; `short_names` has short names.
    """

    source: Callable[[], SettingsSource[C]]
    file: str
    numbers: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    short_names: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, source: SettingsSource[C]) -> SettingFlags[C]:
        """The flags of settings whose class is imported already."""
        types = source.types
        return cls(
            source=lambda: source,
            file=source.file,
            numbers=frozenset(name for name, type_ in types.items() if type_ is int),
            switches=frozenset(name for name, type_ in types.items() if type_ is bool or bool in get_args(type_)),
            lists=frozenset(name for name, type_ in types.items() if get_origin(type_) in (tuple, list)),
        )

    def describe(self, name: str) -> SettingInfo:
        """The text, variable and default of a setting, for the help of a command."""
        return self.source().describe(name)

    def options(self, *names: str) -> Callable[[Function], Function]:
        """Give a command the flags of these settings and `--config`; it gets the `sources` of its settings."""

        def decorate(function: Function) -> Function:
            @wraps(function)
            def with_sources(*args: Any, config: Path | None, **kwargs: Any) -> Any:
                flags = {name: kwargs.pop(f"{_PREFIX}{name}") for name in names}
                given = {name: value for name, value in flags.items() if value not in (None, ())}
                return function(*args, sources=SettingSources(given, config, self), **kwargs)

            chosen = click.Path(exists=True, dir_okay=False, path_type=Path)
            text = f"Settings file.  [default: {self.file} here, else in the home directory]"
            decorated: Function = click.option("--config", type=chosen, help=text)(with_sources)
            for name in reversed(names):
                decorated = self._option(name)(decorated)
            return decorated

        return decorate

    def _option(self, name: str) -> Callable[[Function], Function]:
        flag, parameter = f"--{name.replace('_', '-')}", f"{_PREFIX}{name}"
        if name in self.switches:
            both = f"{flag}/--no-{flag.removeprefix('--')}"
            return click.option(both, parameter, cls=_SettingOption, describe=self.describe, default=None)
        names = (*([self.short_names[name]] if name in self.short_names else []), flag, parameter)
        if name in self.numbers:
            return click.option(*names, cls=_SettingOption, describe=self.describe, type=click.INT)
        return click.option(*names, cls=_SettingOption, describe=self.describe, multiple=name in self.lists)


def setting_for(parameter: str) -> str:
    """The flag of a setting by the name of the command's parameter."""
    return "--" + parameter.removeprefix(_PREFIX).replace("_", "-")


class _SettingOption(click.Option):
    """The flag of a setting, with the help that the setting has."""

    def __init__(self, *args: Any, describe: Callable[[str], SettingInfo], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._describe = describe

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        about = self._describe((self.name or "").removeprefix(_PREFIX))
        default = "required" if about.default is None else f"default: {about.default}"
        self.help = f"{about.help}  [env: {about.env}; {default}]"
        self.metavar = about.metavar
        return super().get_help_record(ctx)


def show_settings(output: Output, shown: Sequence[SettingValue]) -> None:
    """Each setting's value and its source."""
    if output.json:
        output.document([{"key": one.key, "value": one.value, "origin": one.origin} for one in shown])
        return
    columns = [Column("KEY", "id"), Column("VALUE"), Column("ORIGIN")]
    from terminalkit.config.loading import as_text  # noqa: PLC0415 - the settings are loaded by now

    output.table(columns, [[one.key, as_text(one.value), one.origin] for one in shown])
