"""Coverage profiles that were made elsewhere, for example by a build server."""

from __future__ import annotations

import re

import attrs

from gctd.domain.analysis import Blob
from gctd.domain.errors import BadInput, Refused

FLAG = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_PLATFORM = re.compile(r"[a-z0-9]{1,20}/[a-z0-9]{1,20}")
_GO = re.compile(r"go1\.[0-9]{1,3}(\.[0-9]{1,4}|(rc|beta)[0-9]{1,2})?")
TAG = r"[A-Za-z0-9_.]{1,64}"
"""Form of a build tag."""
_TAG = re.compile(TAG)
_MINOR = re.compile(r"go[0-9]+\.[0-9]+")


@attrs.frozen(kw_only=True)
class UploadedProfile:
    """A profile of one commit of one project.

    `flag` tells it from the other profiles of the commit, as in `linux`. `platform` is `goos/goarch`, `tags` are the build tags.
    `tests_failed`: some tests did not pass, so that the coverage is a lower bound. `scope` is `own`, or `module` if the tests of
    all packages count for each (`-coverpkg`).
    """

    flag: str
    profile: Blob
    go_version: str
    platform: str
    cgo: bool = True
    tags: tuple[str, ...] = ()
    tests_failed: bool = False
    scope: str = "own"


def checked_upload(upload: UploadedProfile) -> UploadedProfile:
    """Return an upload whose parts can be right. Raises BadInput that names the part."""
    if not re.fullmatch(FLAG, upload.flag):
        raise BadInput("flag", "a flag has 1 to 64 characters out of A-Z a-z 0-9 _ . - and begins with a letter or a digit")
    if not _GO.fullmatch(upload.go_version):
        raise BadInput("go_version", f"{upload.go_version!r} is not a version as `go env GOVERSION` prints it, such as go1.26.9")
    if not _PLATFORM.fullmatch(upload.platform):
        raise BadInput("platform", f"{upload.platform!r} is not GOOS/GOARCH, such as linux/amd64")
    for tag in upload.tags:
        if not _TAG.fullmatch(tag):
            raise BadInput("tags", f"{tag!r} is not a build tag")
    return upload


def with_upload(before: tuple[UploadedProfile, ...], upload: UploadedProfile) -> tuple[UploadedProfile, ...]:
    """Return the profiles of a commit with one that is new or replaces the one with its flag, by flag.

    Minor versions of Go divide code into different blocks, so only profiles of one minor version can be merged. Raises Refused.
    """
    others = [one for one in before if one.flag != upload.flag]
    differing = next((one for one in others if minor_of(one.go_version) != minor_of(upload.go_version)), None)
    if differing is not None:
        raise Refused(
            f"the commit has the profile {differing.flag!r} of {differing.go_version}: a profile of {upload.go_version} has other"
            " blocks, and cannot be merged with it"
        )
    return tuple(sorted((*others, upload), key=lambda one: one.flag))


def minor_of(go_version: str) -> str:
    """Return the minor version of a version of Go: go1.26 for go1.26.9 and go1.26rc1. A version of another form stays."""
    found = _MINOR.match(go_version)
    return found[0] if found else go_version
