"""GraphQL over HTTP: the server audit of the npm package graphql-http."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.support.web.graphql import Gateway
from tests.support.web.node import install, node

AUDIT = Path(__file__).parent / "audit"


@pytest.mark.network
@pytest.mark.asyncio(loop_scope="module")
async def test_every_audit_of_graphql_http_passes(served: Gateway, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    shutil.copytree(AUDIT, directory, ignore=shutil.ignore_patterns("node_modules"))
    await asyncio.to_thread(install, directory)
    results = json.loads(await asyncio.to_thread(node, ["audit.js", served.function], directory))
    assert [result for result in results if result["status"] != "ok"] == []
    assert len(results) == 61
