"""The API's description shows what each operation takes and answers, and the examples are what they are examples of."""

from __future__ import annotations

import json
from typing import Any

from openapi_schema_validator import OAS31Validator

from gctd.http.api import TABLE
from gctd.http.examples import EXAMPLES
from httpkit.edge import Edge, Operation
from httpkit.messages.openapi import encoded


def test_each_operation_has_an_example_of_its_answer_and_of_its_body() -> None:
    edge = Edge(title="gctd", version="1", examples=EXAMPLES)
    services: Any = None
    document = json.loads(encoded([Operation(route, services, edge) for route in TABLE], edge))
    components = {"components": document["components"]}
    wrong, answers = [], 0
    for path, item in document["paths"].items():
        for method, operation in item.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None and not any("examples" in member for member in body["schema"]["properties"].values()):
                wrong.append(f"request of {method} {path}: no example of a member")
            for status, answer in operation["responses"].items():
                content = answer.get("content", {}).get("application/json")
                if content is None or not status.startswith("2"):
                    continue
                answers += 1
                if "example" not in content:
                    wrong.append(f"answer of {method} {path}: no example in gctd.http.examples")
                    continue
                errors = OAS31Validator(content["schema"] | components).iter_errors(content["example"])
                wrong.extend(f"answer of {method} {path}: {error.json_path} {error.message[:200]}" for error in errors)
    assert wrong == []
    assert answers >= len(EXAMPLES) > 15, "each example is shown"
