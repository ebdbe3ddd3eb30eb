"""100 objects with 10 objects each, and `{ hello }`, in process: processor time by plan, by the engine, and by GraphQL Yoga.

    PYTHONPATH=.:scripts python scripts/bench/graphql/objects.py [--runs 5] [--requests 100]

A request is the body of a POST, and its answer is the bytes of the result. The variants take turns. Yoga runs in the Node of the
test requirements, from its npm package in a temporary folder, and is warm before it is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from operator import attrgetter
from pathlib import Path
from statistics import median
from unittest.mock import patch

import attrs
from graphql import GraphQLObjectType, build_schema

from bench.helpers.measuring import show_machine
from bench.helpers.peer_node import NODE, installed
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.hello import HELLO
from graphql_fn.core.over_http import JSON, HttpRequest, answer
from graphql_fn.core.running.planning import SourceResolver

SDL = "type Query { items: [Thing!]! } type Thing { id: ID! name: String! number: Int! children: [Thing!]! }"
QUERY = "{ items { id name number children { id name number } } }"
SCRIPT = Path(__file__).parents[1] / "peers" / "yoga_objects.mjs"


@attrs.frozen
class Thing:
    """An object."""

    id: str
    name: str
    number: int
    children: tuple[Thing, ...] = ()


def function() -> Function:
    """A function with the objects."""
    children = [[Thing(f"i{n}-{m}", f"name {m}", m) for m in range(10)] for n in range(100)]
    items = [Thing(f"i{n}", f"name {n}", n, tuple(below)) for n, below in enumerate(children)]
    schema = build_schema(SDL)
    query, thing = schema.type_map["Query"], schema.type_map["Thing"]
    assert isinstance(query, GraphQLObjectType)
    assert isinstance(thing, GraphQLObjectType)
    query.fields["items"].resolve = lambda *_: items
    for name, field in thing.fields.items():
        field.resolve = SourceResolver(attrgetter(name))
    return Function(name="objects", schema=schema)


async def spent(evaluator: Evaluator, query: str, requests: int) -> list[float]:
    """Processor milliseconds of each request."""
    body = json.dumps({"query": query}).encode()
    request = HttpRequest(method="POST", content_type=JSON, accept=JSON, body=body)
    assert (await answer(evaluator, request)).status == 200
    times = []
    for _ in range(requests):
        began = time.process_time_ns()
        await answer(evaluator, request)
        times.append((time.process_time_ns() - began) / 1e6)
    return times


def yoga(script: Path, requests: int) -> list[float]:
    """Processor milliseconds of each request by Yoga."""
    command = [str(NODE), str(script), str(requests), "300"]
    found = subprocess.run(command, cwd=script.parent, check=True, capture_output=True, text=True)
    times: list[float] = json.loads(found.stdout)
    return times


def main(given: argparse.Namespace, directory: Path) -> None:
    """Measure in turns, print."""
    show_machine()
    script = installed(directory, SCRIPT)
    ours = Evaluator(function())
    with patch("graphql_fn.core.preparing.documents.nested_plan", lambda _: None):
        engine = Evaluator(function())
        asyncio.run(spent(engine, QUERY, 1))  # its document has no plan
    hello = Evaluator(HELLO)
    found: dict[str, list[float]] = {"plan": [], "engine": [], "Yoga": [], "{ hello }": []}
    for _ in range(given.runs):
        found["plan"].append(median(asyncio.run(spent(ours, QUERY, given.requests))))
        found["engine"].append(median(asyncio.run(spent(engine, QUERY, given.requests))))
        found["Yoga"].append(median(yoga(script, given.requests)))
        found["{ hello }"].append(median(asyncio.run(spent(hello, "{ hello }", 100 * given.requests))))
    for name, times in found.items():
        print(f"{name:10} {median(times):8.4f} ms ({min(times):.4f} to {max(times):.4f})")
    print(f"the plan takes {median(found['plan']) / median(found['Yoga']):.2f} times the processor time of Yoga")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100)
    with tempfile.TemporaryDirectory(prefix="objects-") as temporary:
        main(parser.parse_args(), Path(temporary))
