"""The evaluation core: the result of a request, and errors that tell no secret."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from graphql import build_schema

from graphql_fn.core.errors import PublicError
from graphql_fn.core.evaluator import Evaluator
from graphql_fn.core.function import Function
from graphql_fn.core.limits import QueryLimits
from graphql_fn.core.request import GraphQLRequest
from graphql_fn.core.result import OperationResult, QueryOutcome
from graphql_fn.core.subscribing import SubscriptionEvent
from tests.graphql_fn.core.troubles import SDL, Root, ask, messages, trouble


async def test_the_text_of_an_exception_is_logged_with_the_request_id_and_not_given(logs: list[Any]) -> None:
    result = await ask("{ hello boom }", request_id="r-1")
    [error] = result.document["errors"]
    assert error == {
        "message": "internal server error",
        "locations": [{"line": 1, "column": 9}],
        "path": ["boom"],
        "extensions": {"code": "INTERNAL_SERVER_ERROR", "requestId": "r-1"},
    }
    assert result.document["data"] == {"hello": "hi", "boom": None}
    [line] = logs
    assert (line["event"], line["request_id"], line["path"]) == ("resolver failed", "r-1", ["boom"])
    assert str(line["exc_info"]) == "secret"


async def test_a_request_without_an_id_is_given_one_for_its_errors() -> None:
    found = [(await ask("{ boom }")).document["errors"][0]["extensions"]["requestId"] for _ in range(2)]
    assert all(found)
    assert found[0] != found[1]


async def test_a_value_that_a_resolver_should_not_have_given_is_not_told() -> None:
    assert "secret" not in str((await ask("{ wrong }")).document)


async def test_a_null_where_none_may_be_leaves_data_that_is_null() -> None:
    result = await ask("{ never }")
    assert (result.document["data"], result.outcome) == (None, QueryOutcome.EXECUTED)


async def test_an_error_that_is_meant_for_the_client_is_told() -> None:
    assert messages(await ask("{ told }")) == ["this is for you"]


async def test_a_wrong_argument_is_named() -> None:
    [message] = messages(await ask("query($v: Int = 1) { double(of: $v) }", variables={"v": None}))
    assert "'of'" in message
    [message] = messages(await ask("query($v: Int!) { double(of: $v) }", variables={"v": "x"}))
    assert message.startswith("Variable '$v' has invalid value")


async def test_a_result_tells_of_so_many_errors_and_says_how_many_more_there_are() -> None:
    result = await ask("{ list }")
    assert len(result.document["errors"]) == 101
    assert messages(result)[-1] == "150 further errors are not shown"
    many = "{" + " ".join(f"x{number}" for number in range(15)) + "}"
    assert len((await ask(many, evaluator=trouble(limits=QueryLimits(errors=5)))).document["errors"]) == 6


async def test_the_context_is_made_for_each_request() -> None:
    evaluator = trouble()
    found = [await ask("{ who }", evaluator=evaluator, extensions={"who": who}) for who in ("a", "b")]
    assert [result.document["data"]["who"] for result in found] == ["a", "b"]


async def test_a_mutation_is_refused_where_only_queries_are_taken() -> None:
    assert (await ask("mutation { change }")).document == {"data": {"change": "changed"}}
    result = await ask("mutation { change }", only_queries=True)
    assert (result.outcome, "data" in result.document) == (QueryOutcome.CHANGES, False)


async def test_a_subscription_has_no_single_result() -> None:
    result = await ask("subscription { ticks }")
    hint = "a subscription has no single result: ask for it with Accept: text/event-stream"
    assert (result.outcome, messages(result)) == (QueryOutcome.REFUSED, [hint])


class Ticking(Root):
    """Events: one without a value, and two with a value, of which the second cannot be resolved. Then it cannot continue."""

    def __init__(self) -> None:
        self.closed = False

    async def ticks(self, _info: Any) -> AsyncIterator[SubscriptionEvent]:
        try:
            yield SubscriptionEvent("1")
            yield SubscriptionEvent("2", {"ticks": 7})
            yield SubscriptionEvent("3", {"ticks": "secret"})
            raise PublicError("that was all")
        finally:
            self.closed = True


def ticking() -> tuple[Evaluator, Ticking]:
    root = Ticking()
    return Evaluator(Function(name="ticking", schema=build_schema(SDL), root=root)), root


async def test_each_event_of_a_subscription_is_a_result_of_its_own(logs: list[Any]) -> None:
    evaluator, root = ticking()
    found = await evaluator.subscribe(GraphQLRequest("subscription S { ticks }"))
    assert not isinstance(found, OperationResult)
    updates = [(update.id, update.result and update.result.document) async for update in found]
    assert updates[:2] == [("1", None), ("2", {"data": {"ticks": 7}})]
    assert updates[2][0] == "3"
    assert "secret" not in str(updates)
    assert updates[3] == (None, {"errors": [{"message": "that was all", "extensions": {"code": "BAD_USER_INPUT"}}]})
    assert (len(updates), root.closed, len(logs)) == (4, True, 1)


async def test_a_subscription_that_is_given_up_closes_its_source() -> None:
    evaluator, root = ticking()
    found = await evaluator.subscribe(GraphQLRequest("subscription { ticks }"))
    assert not isinstance(found, OperationResult)
    assert (await anext(found)).id == "1"
    await found.aclose()
    assert root.closed


@pytest.mark.parametrize(
    "query", ["subscription { tocks }", "{ hello }", "subscription {", "subscription($a: Int!) { ticks(of: $a) }"]
)
async def test_a_request_that_is_no_valid_subscription_has_one_result(query: str) -> None:
    found = await ticking()[0].subscribe(GraphQLRequest(query))
    assert isinstance(found, OperationResult)
    assert found.outcome is (QueryOutcome.EXECUTED if query == "{ hello }" else QueryOutcome.REFUSED)
