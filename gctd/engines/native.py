"""The engine `native`: tree-sitter for complexity, the cover profile for coverage, go-crap's rules without its faults.

In compatibility mode it keeps the faults, and its report is go-crap 0.5.1's to the last bit.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

import attrs
import msgspec

from gctd.engines import score
from gctd.engines.coverage import Coverage
from gctd.engines.engine import EngineInput
from gctd.engines.gocrap.coverage import FunctionCoverage, GocrapCoverage, gocrap_module_path
from gctd.engines.gocrap.differences import FileDifferences, GocrapView
from gctd.engines.gocrap.exclusion import Exclusion
from gctd.engines.gocrap.walk import select_like_gocrap
from gctd.engines.golang.complexity import Declaration, SourceFile
from gctd.engines.golang.profile import CoverProfile
from gctd.engines.measurement import ModuleMeasurement
from gctd.engines.module import ModuleCoverage, ModuleSources, load_profile, profile_path
from gctd.engines.report import Counts, ExcludedFile, FunctionEntry, Identity, ProfileFacts, Report
from gctd.engines.selection import Unreadable, Warnings, printable, read_source, select_files
from gctd.engines.state import State

VERSION = "1.3.0"
GOCRAP_VERSION = "v0.5.1"


@attrs.frozen
class NativeEngine:
    """Scores a module without any other program. `compat` keeps go-crap 0.5.1's faults."""

    compat: bool = False

    @property
    def name(self) -> str:
        return "native-compat" if self.compat else "native"

    @property
    def version(self) -> str:
        return VERSION

    def analyse(self, given: EngineInput) -> Report:
        """The report of one module. Raises EngineFailed, EngineLost."""
        warnings = Warnings(given.limits.warnings)
        exclusion = Exclusion.of(given, compat=self.compat)
        sources = ModuleSources(given, warnings, exclusion, follow_links=self.compat)
        select = select_like_gocrap if self.compat else select_files
        found = list(select(given, warnings))
        paths = [path for path in found if not exclusion.file(sources.absolute(path))]
        with sources.parsing(paths) as parsed:
            profile = load_profile(given, warnings)
            read = parsed()
        if self.compat:
            read = [(path, msgspec.structs.replace(file, declarations=file.functions)) for path, file in read]
        blocks = profile or CoverProfile()
        covered = ModuleCoverage(dict(read), blocks, given.module_path, warnings, excluded=set(found).difference(paths))
        view = _gocrap_view(given, sources, blocks, warnings)
        tests = ModuleMeasurement(given.tests, given.module_path)
        entries, left_out = [], []
        for entry in _entries(read, covered, view, tests, given.module_path, compat=self.compat):
            if entry.state is State.EXCLUDED:
                left_out.append(entry)
            elif exclusion.function(entry.name):
                left_out.append(_excluded(entry, "--exclude"))
            else:
                entries.append(entry)
        kept = set(paths)
        files = [ExcludedFile(file=printable(path), rule="--exclude") for path in found if path not in kept]
        return Report(
            engine=self.name,
            engine_version=VERSION,
            crap_version=GOCRAP_VERSION,
            summary=score.summarize((entry.crap for entry in entries), given.options.threshold),
            entries=score.shown(entries, given.options),
            counts=Counts(
                files=len(read),
                files_skipped=len(paths) - len(read),
                covered_functions=sum(entry.coverage is not None for entry in entries),
                differing=sum(entry.differs is not None for entry in entries),
            ),
            profile=None if profile is None else ProfileFacts.of(profile),
            warnings=warnings.all(),
            measured=score.measured_summary(entries, given.options.threshold),
            states=score.states_of(entries, len(left_out)),
            excluded=tuple(sorted(left_out, key=lambda one: (one.file, one.line, one.function))),
            excluded_files=tuple(files),
        )


def _excluded(entry: FunctionEntry, rule: str) -> FunctionEntry:
    return msgspec.structs.replace(entry, differs=None, state=State.EXCLUDED, reason=rule)


def _gocrap_view(given: EngineInput, sources: ModuleSources, profile: CoverProfile, warnings: Warnings) -> GocrapView:
    go_mod = _go_mod(given, warnings)
    module_path = gocrap_module_path(go_mod, sources.directory)
    return GocrapView(
        index=GocrapCoverage(profile, sources.directory, module_path, sources.declarations_at),
        directory=sources.directory,
        missing=given.options.missing,
        misreads_module=module_path != given.module_path,
        overflows=profile.overflows,
    )


def _go_mod(given: EngineInput, warnings: Warnings) -> bytes:
    try:
        return read_source(given.module_dir / "go.mod", given.limits.file_bytes)
    except Unreadable as error:
        warnings.add(error.kind, "go.mod", str(error))
        return b""


def _entries(
    read: Sequence[tuple[str, SourceFile]],
    covered: ModuleCoverage,
    view: GocrapView,
    tests: ModuleMeasurement,
    module_path: str,
    *,
    compat: bool,
) -> Iterator[FunctionEntry]:
    """Yield the entries of the report, and the functions that a comment leaves out.

    With `compat` the places, receivers and numbers are go-crap's, so none differs.
    """
    for path, file in read:
        differences = FileDifferences(view, path, profile_path(module_path, path), file.declarations)
        shown, absolute, file_state = printable(path), view.file(path), tests.of_file(path, file)
        for declaration, own, found in _reported(path, file, covered, view):
            printed, content = declaration.printed if compat else None, declaration.content
            kind = declaration.receiver
            receiver = "" if kind is None else kind.gocrap if compat else kind.text
            source = found if compat else own
            percent = None if source is None else source.percent
            crap = score.crap_of(declaration.cyclomatic, percent, view.missing)
            state, reason = tests.of_function(file_state, own, has_body=declaration.opens > 0)
            entry = FunctionEntry(
                file=shown if printed is None else _printed_file(absolute, declaration, view),
                package=file.package,
                function=f"{receiver}.{declaration.name}" if receiver else declaration.name,
                name=declaration.name,
                receiver=receiver,
                line=declaration.start[0] if printed is None else printed.first,
                end_line=declaration.end[0] if printed is None else printed.last,
                cyclomatic=declaration.cyclomatic,
                coverage=score.shown_coverage(percent, view.missing) if compat else percent,
                stmt_coverage=own.statement_percent if own is not None and declaration.opens else None,
                crap=crap,
                differs=None if compat else differences.difference(declaration, found, percent, crap),
                state=state,
                reason=printable(reason),
                identity=Identity(content.digest.hex(), content.signature.hex(), content.tokens, content.sketch),
            )
            yield _excluded(entry, "comment") if declaration.ignored else entry


def _printed_file(file: str, declaration: Declaration, view: GocrapView) -> str:
    return printable(posixpath.relpath(view.file_of(file, declaration), view.directory))


_Scored = tuple[Declaration, Coverage | None, FunctionCoverage | None]


def _reported(path: str, file: SourceFile, covered: ModuleCoverage, view: GocrapView) -> Iterator[_Scored]:
    """Return the declarations of a file, with their coverage and go-crap's finding."""
    declarations = file.declarations
    return zip(declarations, covered.of(path, file), view.find(view.file(path), declarations), strict=True)
