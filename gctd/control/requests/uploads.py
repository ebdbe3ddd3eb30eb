"""Uploaded coverage profiles: checked for form, stored, and scored by a task that has all profiles of the commit.

The newest task with uploads that has not failed has the profiles of a commit. The repository's count of requests guards the next
upload, so of two uploads at the same moment the second one has the profile of the first.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable

import attrs

from eventlog import Commit, Context, EventLog
from gctd.broker.blobs import Blobs
from gctd.control.requests.tracker import Tracker
from gctd.domain.analysis import Blob, analysis_id
from gctd.domain.errors import BadInput, NotFound, Overtaken, Refused
from gctd.domain.remote.refs import is_commit_id, parse_ref
from gctd.domain.repo.project import Project
from gctd.domain.repo.state import Repo
from gctd.domain.task import TASK
from gctd.domain.task.state import Task, TaskStatus
from gctd.domain.upload import UploadedProfile, checked_upload, with_upload
from gctd.engines.golang.profile import CoverProfile, ProfileTooLarge, parse_profile
from gctd.readmodel.queries import TrackerQueries

LARGEST = 32 * 1024**2
"""Limit of the bytes of one profile."""
MOST_BLOCKS = 1_000_000
MOST_FLAGS = 32
"""Profiles of one commit at most."""
_MAJOR = re.compile(r"/v[0-9]+$")
_PAGE = 500
_TRIES = 5


@attrs.frozen(kw_only=True)
class Uploaded:
    """The task that scores an uploaded profile, and the sequence of its last commit. `known`: the upload is a repetition."""

    task: Task
    sequence: int
    known: bool


@attrs.frozen
class Uploads:
    """Takes profiles. `caught_up` waits until the read model has all commits of the log."""

    _log: EventLog
    _queries: TrackerQueries
    _blobs: Blobs
    _tracker: Tracker
    _caught_up: Callable[[], Awaitable[None]] = attrs.field(kw_only=True)

    async def upload(
        self,
        id_: str,
        commit_sha: str,
        text: str,
        upload: UploadedProfile,
        *,
        ref: str | None = None,
        replace: bool = False,
        context: Context,
    ) -> Uploaded:
        """Queue a task that scores all profiles of a commit of a project, including this one.

        `id_` names the project's analyses. `upload` names the profile, and its digest and size are computed here. A repeated
        upload returns the task that has it. Raises BadInput, NotFound, and Refused if another profile has the flag and `replace`
        is not set, or if the profile cannot be merged with the others.
        """
        if not is_commit_id(commit_sha):
            raise BadInput("commit", "a commit is named by its full id of 40 or 64 hex digits")
        known, project = await self._project(id_)
        body = text.encode()
        await asyncio.to_thread(_check, body, project)
        stored = await self._blobs.put(body)
        upload = checked_upload(attrs.evolve(upload, profile=Blob(digest=stored.digest, size=stored.size)))
        ref = None if ref is None else parse_ref(ref)
        for _ in range(_TRIES):
            known = await self._tracker.registered_as(known.id)
            await self._caught_up()
            newest = await self._newest(known, project.name, commit_sha)
            before = newest.state.uploads if newest is not None else ()
            same = next((one for one in before if one.flag == upload.flag), None)
            if newest is not None and same == upload:
                return Uploaded(task=newest.state, sequence=newest.sequence, known=True)
            if same is not None and not replace:
                raise Refused(
                    f"{commit_sha[:12]} has another profile with the flag {upload.flag!r}: choose another flag, or replace it"
                )
            uploads = with_upload(before, upload)
            if len(uploads) > MOST_FLAGS:
                raise Refused(f"{commit_sha[:12]} has {MOST_FLAGS} profiles already")
            try:
                outcome = await self._tracker.score_uploads(known, project.name, commit_sha, uploads, ref=ref, context=context)
            except Overtaken:
                continue
            return Uploaded(task=outcome.state, sequence=outcome.sequence, known=False)
        raise Overtaken(f"{known.url} is busy: other analyses were scheduled at the same time. Try again")

    async def _project(self, id_: str) -> tuple[Repo, Project]:
        """Return the repository and the project whose analyses have this id, whether or not there is one."""
        after = ("", "")
        while page := await self._queries.repos_by_url(after=after, limit=_PAGE):
            for one in page:
                found = next((project for project in one.projects if analysis_id(one.id, project.name) == id_), None)
                if found is not None:
                    return await self._tracker.registered_as(one.id), found
            after = (page[-1].url, page[-1].id)
        raise NotFound(f"no project of a registered repository has analyses with the id {id_}")

    async def _newest(self, known: Repo, project: str, commit_sha: str) -> Commit | None:
        """Return the last commit of the newest task with uploads that has not failed, for a commit of the repository."""
        tasks = [task.id for task in await self._queries.tasks_of_commit(known.id, project, commit_sha)]
        analyses = await self._queries.analyses_at(analysis_id(known.id, project), commit_sha)
        newest: tuple[int, Commit] | None = None
        for task in dict.fromkeys([*tasks, *(one.task_id for one in analyses if one.source == "upload")]):
            last = await self._log.last(TASK.aggregate(task), consistent=True)
            if last is not None and last.state.uploads and last.state.status not in _FAILED and not last.state.dropped:
                # By the order of the log: the clocks of servers differ.
                (queued, *_) = [commit.sequence async for commit in self._log.history(TASK.aggregate(task))]
                if newest is None or queued > newest[0]:
                    newest = queued, last
        return None if newest is None else newest[1]


_FAILED = {TaskStatus.FAILED, TaskStatus.EXPIRED}


def _check(body: bytes, project: Project) -> None:
    """Refuse a text that is not a profile of this module. Raises BadInput."""
    if len(body) > LARGEST:
        raise BadInput("profile", f"the profile has {len(body)} bytes; at most {LARGEST} are taken")
    try:
        profile = parse_profile(io.BytesIO(body), max_bytes=LARGEST, max_blocks=MOST_BLOCKS)
    except ProfileTooLarge as error:
        raise BadInput("profile", str(error)) from error
    if profile.mode not in ("set", "count", "atomic"):
        raise BadInput("profile", "the text is not a coverage profile: its first line is not `mode: set`, `count` or `atomic`")
    if profile.malformed:
        raise BadInput("profile", f"line {profile.first_malformed} is not a block of a coverage profile")
    if not profile.blocks:
        raise BadInput("profile", "the profile has no block: no package was tested, or the tests ended before it was written")
    if strange := _elsewhere(profile, project):
        raise BadInput("profile", f"{strange} is not in the module {project.module_path}: the profile is of another module")


def _elsewhere(profile: CoverProfile, project: Project) -> str | None:
    """Return the first path of a profile that is of another module than the project's.

    Another major version of the module is accepted (https://go.dev/ref/mod#major-version-suffixes): the commit decides.
    """
    within = f"{_MAJOR.sub('', project.module_path)}/"
    return next((path for path in profile.paths() if not path.startswith(within)), None)
