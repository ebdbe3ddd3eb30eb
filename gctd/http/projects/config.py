"""Routes of the settings of repositories and their projects."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from eventlog import Outcome
from gctd.domain.errors import BadSettings, NotFound
from gctd.domain.remote.urls import repo_id
from gctd.domain.repo import REPO
from gctd.domain.repo.commands import ConfigureProject, RemoveProjectConfig, RepoCommand
from gctd.domain.repo.config import FIELDS, Origin, ProjectConfig, checked, config_key, effective, origins, require_configurable
from gctd.domain.repo.events import RepoEvent
from gctd.domain.repo.state import Repo
from gctd.http import formats
from gctd.http.services import Services
from gctd.readmodel.views import RepoView
from httpkit import UNSET, Answer, Call, FieldError, Invalid, Route, Unset, member, message, query
from servicekit import answer

_SUBDIR = "path of a project in the repository; empty, `.` or left out: the repository's root"


@message
class OneConfig:
    """Names a repository, and a project in it or its root."""

    url: str = query(schema=formats.REPO_URL, example="https://github.com/example/module")
    subdir: str | None = query(default=None, schema=formats.PROJECT, description=_SUBDIR)


@message
class SetConfig:
    """Settings of a project. A missing value does not change the setting; null removes it."""

    url: str = member(schema=formats.REPO_URL, example="https://github.com/example/module")
    subdir: str | None = member(default=None, schema=formats.PROJECT, description=_SUBDIR)
    ref: str | Unset | None = member(default=UNSET, schema=formats.REF, description="branch, tag or commit id to analyse")
    test_args: str | Unset | None = member(
        default=UNSET, schema=formats.GO_FLAGS, description="flags for `go test`", example="-short"
    )
    crap_args: tuple[str, ...] | Unset | None = member(
        default=UNSET, schema=formats.CRAP_ARGS, description="flags of `go-crap scan`", example=["--threshold=20"]
    )
    submodules: bool | Unset | None = member(default=UNSET, description="check out submodules as well")
    timeout: str | Unset | None = member(
        default=UNSET, schema=formats.DURATION, description="longest that an attempt may take", example="20m"
    )
    git_timeout: str | Unset | None = member(
        default=UNSET, schema=formats.DURATION, description="longest that one command of git may take", example="5m"
    )
    go_flags: str | Unset | None = member(
        default=UNSET, schema=formats.GO_FLAGS, description="flags for every `go` command", example="-tags=e2e"
    )
    coverpkg: bool | Unset | None = member(
        default=UNSET, description="the tests of each package count for all packages (engine native)"
    )
    store_source: str | Unset | None = member(
        default=UNSET, schema=formats.STORE_SOURCE, description="keep the source of functions with each analysis"
    )


@message
class ConfigBody:
    """The settings of a project, or of a repository's root (then `subdir` is empty)."""

    url: str = member()
    subdir: str = member()
    stored: ProjectConfig = member(description="settings of this project; null if unset")
    effective: ProjectConfig = member(description="effective settings")
    origin: dict[str, Origin] = member(description="origin of each of `effective`: project, root, or default (unset)")

    @classmethod
    def of(cls, repo: RepoView, key: str, defaults: ProjectConfig) -> ConfigBody:
        """Return the settings of one key. `defaults` are the settings of the server."""
        unset = attrs.evolve(defaults, ref=repo.default_ref or "HEAD")
        return cls(
            url=repo.url,
            subdir=key,
            stored=repo.configs.get(key, ProjectConfig()),
            effective=unset.merged(effective(repo.configs, key)),
            origin=origins(repo.configs, key),
        )


async def get_repo_config(request: OneConfig, call: Call[Services]) -> ConfigBody:
    """Return the stored settings of a project, the effective settings, and their origins."""
    key = config_key(request.subdir)
    url = call.services.tracker.parse_url(request.url, "url")
    repo = await call.services.queries.repo(repo_id(url.canonical))
    if repo is None:
        raise NotFound(f"{request.url} is not registered: register it first")
    require_configurable(repo, key)
    return ConfigBody.of(repo, key, call.services.defaults)


async def set_repo_config(request: SetConfig, call: Call[Services]) -> Answer[ConfigBody]:
    """Set what is given, remove what is null, leave the rest. It holds for analyses that are scheduled from now on."""
    given = {name: getattr(request, name) for name in FIELDS if getattr(request, name) is not UNSET}
    try:
        changes = checked(ProjectConfig(**given))
    except BadSettings as error:
        raise Invalid(FieldError(problem.reason, pointer=f"#/{problem.field}") for problem in error.problems) from error
    key, without = config_key(request.subdir), frozenset(name for name, value in given.items() if value is None)
    outcome = await _execute(ConfigureProject(subdir=key, changes=changes, without=without, at=datetime.now(UTC)), request, call)
    return answer(outcome, ConfigBody.of(RepoView.of_state(outcome.state, outcome.sequence), key, call.services.defaults))


async def remove_repo_config(request: OneConfig, call: Call[Services]) -> Answer[None]:
    """Forget what is set for a project: the root's settings hold for it, or the server's."""
    command = RemoveProjectConfig(subdir=config_key(request.subdir), at=datetime.now(UTC))
    return answer(await _execute(command, request, call), None)


async def _execute(command: RepoCommand, request: OneConfig | SetConfig, call: Call[Services]) -> Outcome[Repo, RepoEvent]:
    repo = repo_id(call.services.tracker.parse_url(request.url, "url").canonical)
    return await call.services.execute(REPO, repo, command, call)


_PATH = "/api/repo-config"
_TAGS = ("repo config",)

ROUTES = (
    Route("GET", _PATH, get_repo_config, summary="Settings of a project", tags=_TAGS, errors=(404, 409)),
    Route("POST", _PATH, set_repo_config, summary="Change settings", tags=_TAGS, status=200, errors=(404, 409)),
    Route("DELETE", _PATH, remove_repo_config, summary="Remove settings", tags=_TAGS, errors=(404, 409)),
)
