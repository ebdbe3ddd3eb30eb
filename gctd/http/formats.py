"""Schemas of values that JSON Schema has no word for. Each format is named and said here; the domain checks it."""

from __future__ import annotations

from typing import Any

from gctd.domain.repo.config import STORE_SOURCE as STORE_SOURCE_VALUES
from gctd.domain.upload import TAG
from gctd.engines.registry import NAMES

Schema = dict[str, Any]

ID = "^[0-9a-f]{8,64}$"
"""The id of a repository, or of the analyses of a project."""
ID_FORM = "an id of 8 to 64 hexadecimal digits"

REPO_URL: Schema = {"type": "string", "minLength": 1, "format": "repository-url"}
"""`https://host/path`, also without `https://`; other forms if the operator allows them (`gctd.domain.remote.urls`)."""
ONE_REPO_URL: Schema = {**REPO_URL, "type": ["string", "null"]}
"""The same, for an optional field."""
REF: Schema = {"type": ["string", "null"], "minLength": 1, "format": "git-ref"}
"""A branch, a tag or a full commit id (`gctd.domain.remote.refs.parse_ref`)."""
PROJECT: Schema = {"type": ["string", "null"], "format": "project-path"}
"""The path of a directory in the repository (`gctd.domain.remote.refs.parse_subdir`)."""
_CURSOR: Schema = {"type": "string", "minLength": 1}
CURSOR: Schema = {**_CURSOR, "format": "cursor"}
"""The cursor in `Link: rel="next"` of an earlier page."""
POSITION: Schema = {**_CURSOR, "format": "position-cursor"}
"""The same, of a list that is in the order of the log."""
SEQUENCE: Schema = {**_CURSOR, "format": "sequence-cursor"}
"""The same, of the log itself."""
AGGREGATE: Schema = {
    "type": "string",
    "pattern": r"^gctd\.(delivery|repo|schedule|task|token|verdict|worker)\.[A-Za-z0-9_-]{1,128}$",
}
"""An aggregate by its subject."""
AGGREGATE_FORM = "the subject of an aggregate, like gctd.task.task-17"
ENGINE: Schema = {"type": ["string", "null"], "enum": [*NAMES, None]}
"""The name of an engine."""
STORE_SOURCE: Schema = {"type": ["string", "null"], "enum": [*STORE_SOURCE_VALUES, None]}
"""Whether the source of functions is kept."""
GO_FLAGS: Schema = {"type": ["string", "null"], "format": "go-flags"}
"""Flags from a list of harmless ones, separated by spaces (`gctd.domain.options.GO_FLAGS`)."""
CRAP_ARGS: Schema = {"type": ["array", "null"], "items": {"type": "string", "format": "go-crap-flag"}}
"""Flags of `go-crap scan` (`gctd.domain.options.parse_crap_args`)."""
FUNCTION: Schema = {"type": "string", "minLength": 1, "format": "function-key"}
"""The key of a function (`gctd.engines.functions.keys`)."""
PROFILE: Schema = {"type": "string", "format": "coverage-profile"}
"""The text of a coverage profile (`go tool cover`): a line with the mode, then a line for each block."""
TAGS: Schema = {"type": "array", "items": {"type": "string", "pattern": f"^{TAG}$"}}
"""Build tags of Go."""
DURATION: Schema = {"type": ["string", "null"], "format": "go-duration"}
"""A duration as Go writes it, 1 s to 24 h (`gctd.domain.options.parse_duration`)."""
