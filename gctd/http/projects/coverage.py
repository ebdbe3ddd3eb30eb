"""Route for coverage profiles that were made elsewhere."""

from __future__ import annotations

from gctd.control.requests.uploads import LARGEST
from gctd.domain.analysis import Blob
from gctd.domain.upload import FLAG, UploadedProfile
from gctd.http import formats
from gctd.http.bodies import TaskBody
from gctd.http.services import Services
from gctd.readmodel.views import TaskView
from httpkit import Answer, Call, Route, member, message, path

_PROFILE = """mode: set
example.com/module/a.go:3.24,5.2 1 1
"""


@message
class UploadCoverage:
    """A coverage profile of a commit, as `go test -coverprofile` writes it."""

    id: str = path(pattern=formats.ID, form=formats.ID_FORM, max_length=64)
    commit: str = member(
        pattern="^([0-9a-f]{40}|[0-9a-f]{64})$",
        form="a full commit id, 40 or 64 hexadecimal digits",
        description="the full id of the tested commit",
        example="c" * 40,
    )
    flag: str = member(
        pattern=f"^{FLAG}$",
        form="a word of letters, digits and _ . -, 64 at most",
        description="tells the profile from others of the commit",
        example="linux",
    )
    profile: str = member(
        multiline=True, schema=formats.PROFILE, description="text of the profile, 32 MiB at most", example=_PROFILE
    )
    go_version: str = member(
        pattern=r"^go1\.[0-9]{1,3}(\.[0-9]{1,4}|(rc|beta)[0-9]{1,2})?$",
        form="a version of Go, like go1.26.9",
        description="as `go env GOVERSION`",
        example="go1.26.9",
    )
    platform: str = member(
        pattern="^[a-z0-9]{1,20}/[a-z0-9]{1,20}$",
        form="GOOS/GOARCH, like linux/amd64",
        description="GOOS/GOARCH of the tests",
        example="linux/amd64",
    )
    cgo: bool = member(default=True, description="CGO_ENABLED of the tests")
    tags: tuple[str, ...] = member(default=(), schema=formats.TAGS, description="build tags of the tests", example=["e2e"])
    tests_failed: bool = member(default=False, description="some tests did not pass: the coverage is a lower bound")
    module_scope: bool = member(default=False, description="the tests of all packages count for each (-coverpkg=./...)")
    ref: str | None = member(
        default=None, schema=formats.REF, description="branch or tag of the commit; the project's setting where left out"
    )
    replace: bool = member(default=False, description="replace another profile of the commit with the same flag")


async def upload_coverage(request: UploadCoverage, call: Call[Services]) -> Answer[TaskBody]:
    """Score a coverage profile that was made elsewhere, with the other profiles of the commit; no test is run.

    The task checks the profile against the source at the commit, and fails with the reason if it does not fit. The same profile
    again is answered with the same task (200). Another profile with the same flag is refused (409) without `replace`, as is a
    profile of another minor version of Go than the others.
    """
    upload = UploadedProfile(
        flag=request.flag,
        profile=Blob(digest="", size=0),
        go_version=request.go_version,
        platform=request.platform,
        cgo=request.cgo,
        tags=tuple(sorted(set(request.tags))),
        tests_failed=request.tests_failed,
        scope="module" if request.module_scope else "own",
    )
    made = await call.services.uploads.upload(
        request.id,
        request.commit,
        request.profile,
        upload,
        ref=request.ref,
        replace=request.replace,
        context=call.context,
    )
    task = TaskBody.of(TaskView.of_state(made.task, made.sequence))
    return Answer(task, status=200 if made.known else None, sequence=made.sequence)


ROUTES = (
    Route(
        "POST",
        "/api/repos/{id}/coverage",
        upload_coverage,
        summary="Upload a coverage profile",
        tags=("repos",),
        status=202,
        also=(200,),
        errors=(404, 409),
        max_body=LARGEST * 3 // 2,
    ),
)
