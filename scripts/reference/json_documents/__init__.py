"""The JSON Schemas of the documents of `--json`. An answer of an API has the schema of its description."""

from __future__ import annotations

from reference.json_documents import functions, ledger, readmodels, tracker

PROGRAMS = {"gctd": tracker, "pantry": ledger, "projections": readmodels, "graphql-fn": functions}
"""The module that has the documents of a program."""
