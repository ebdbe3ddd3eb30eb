"""The function `tracker` on a running system whose analyses the test writes down."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import attrs
import pytest
import pytest_asyncio

from tests.httpkit.eventsource import EventSource
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until
from tests.support.web.graphql import Gateway, gateway

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

URL = "https://github.com/owner/name"
PROJECTS = 3
FIRST = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 42.0, "a.go:Store.Put": 12.0, "b.go:Get": 5.0})
SECOND = MadeUp(commit_sha="b" * 40, functions={"a.go:Parse": 30.0, "a.go:Store.Put": 31.5}, flags=("-short",))


@attrs.frozen
class Running:
    """The system, and the gateway on it. `tasks` of the first and the second round, each in the order of the projects."""

    system: TrackerSystem
    gateway: Gateway
    analyses: Path
    tasks: list[list[str]]

    async def ask(self, query: str, **variables: Any) -> Any:
        """The data of a result without errors."""
        answer = await self.gateway.ask("POST", "/function/tracker", json={"query": query, "variables": variables})
        assert "errors" not in answer.body, answer.body
        return answer.body["data"]

    async def statements(self) -> float:
        """How many statements the function has sent so far."""
        text = str((await self.gateway.ask("GET", "/metrics")).body)
        name = 'graphql_statements_total{function="tracker"} '
        return next(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


async def analyze(system: TrackerSystem, directory: Path, ref: str, analysis: MadeUp, url: str = URL) -> list[str]:
    """Have all projects analysed; gives the tasks in the order of the projects."""
    analysis.write(directory, ref)
    tasks = await system.post("/api/repos/analyze", {"repo_url": url, "ref": ref})
    for task in tasks:
        await system.until_task(task["id"], "completed")
    return [task["id"] for task in sorted(tasks, key=lambda task: str(task["project"]))]


async def until_known(running: Running, task: str) -> str:
    """Wait until the gateway has the analysis of a task, and return the id that the analyses of its project share."""

    async def found() -> Any:
        return (await running.ask("query($t: ID!) { analysis(task: $t) { historyId } }", t=task))["analysis"]

    return str((await wait_until(found, 30))["historyId"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    directory = tmp_path_factory.mktemp("tracker")
    analyses = directory / "analyses"
    async with tracker_system(directory) as system:
        settings = {"GRAPHQL_TRACKER_DATABASE": f"sqlite:{system.database}", "GRAPHQL_NATS_URL": system.nats.url}
        await system.start_worker(1, FAKE_ANALYSES=str(analyses), FAKE_PROJECTS=str(PROJECTS))
        await system.register(URL)
        tasks = [
            await analyze(system, analyses, "one", FIRST),
            await analyze(system, analyses, "two", SECOND),
        ]
        async with gateway(directory, **settings) as served:

            async def is_ready() -> bool:
                return (await served.ask("GET", "/readyz")).status == 200

            await wait_until(is_ready, 30, every=0.05)
            yield Running(system, served, analyses, tasks)


async def test_a_repository_leads_to_projects_analyses_and_the_functions_at_risk(running: Running) -> None:
    query = """query($url: String!) { repo(url: $url) { id url state projects { nodes {
        name modulePath problem
        latestAnalysis { commitSha exceeded totalFunctions flags average functions(first: 1) {
            nodes { function crap complexity coverage file line } pageInfo { hasNextPage } } }
        history(first: 1) { nodes { taskId } pageInfo { hasNextPage } }
    } } } }"""
    before = await running.statements()
    repo = (await running.ask(query, url=URL))["repo"]
    assert await running.statements() - before == 3  # the repository, the latest of all projects, and their histories
    assert (repo["url"], repo["state"]) == (URL, "READY")
    projects = repo["projects"]["nodes"]
    assert [project["name"] for project in projects] == [".", "p1", "p2"]
    for project, task in zip(projects, running.tasks[1], strict=True):
        latest = project["latestAnalysis"]
        assert (latest["commitSha"], latest["exceeded"], latest["totalFunctions"]) == ("b" * 40, 1, 2)
        assert (latest["flags"], latest["average"]) == (["-short"], 30.75)
        [worst] = latest["functions"]["nodes"]
        expected = {"function": "Store.Put", "crap": 31.5, "complexity": 2, "coverage": 50, "file": "a.go", "line": 2}
        assert (worst, latest["functions"]["pageInfo"]) == (expected, {"hasNextPage": True})
        assert project["history"] == {"nodes": [{"taskId": task}], "pageInfo": {"hasNextPage": True}}


@pytest.mark.parametrize(("change", "back"), [("baseline = 1", "baseline = 0"), ("ref = 'topic'", "ref = 'main'")])
async def test_an_analysis_of_another_ref_or_for_comparisons_is_not_the_latest_of_its_project(
    running: Running, change: str, back: str
) -> None:
    query = """query($url: String!) { repo(url: $url) { projects { nodes {
        latestAnalysis { taskId } history { nodes { taskId } } } } } analyses { nodes { taskId repoUrl } } }"""
    older, newer = running.tasks
    with closing(sqlite3.connect(running.system.database)) as tables:
        with tables:
            tables.execute(f"UPDATE analyses SET {change} WHERE task_id IN (?, ?, ?)", newer)
        try:
            found = await running.ask(query, url=URL)
        finally:
            with tables:
                tables.execute(f"UPDATE analyses SET {back}")
    projects = found["repo"]["projects"]["nodes"]
    assert [project["latestAnalysis"]["taskId"] for project in projects] == older
    assert [one["taskId"] for one in found["analyses"]["nodes"] if one["repoUrl"] == URL] == older
    assert [[one["taskId"] for one in project["history"]["nodes"]] for project in projects] == [
        [last, first] for first, last in zip(older, newer, strict=True)
    ]


async def test_a_cursor_among_projects_is_valid_while_projects_come_and_go(running: Running) -> None:
    query = """query($url: String!, $after: String) { repo(url: $url) {
        projects(first: 2, after: $after) { nodes { name } pageInfo { endCursor } } } }"""
    first = (await running.ask(query, url=URL))["repo"]["projects"]
    assert [project["name"] for project in first["nodes"]] == [".", "p1"]
    with closing(sqlite3.connect(running.system.database)) as tables:
        [kept] = tables.execute("SELECT projects FROM repos").fetchone()
        with tables:
            tables.execute("UPDATE repos SET projects = json_remove(projects, '$[0]')")
        try:
            rest = (await running.ask(query, url=URL, after=first["pageInfo"]["endCursor"]))["repo"]["projects"]
        finally:
            with tables:
                tables.execute("UPDATE repos SET projects = ?", (kept,))
    assert [project["name"] for project in rest["nodes"]] == ["p2"]


async def test_functions_can_be_those_from_a_value_up_or_of_a_package_page_by_page(running: Running) -> None:
    query = """query($task: ID!, $after: String) { analysis(task: $task) { id
        all: functions(first: 2, after: $after) { nodes { name } pageInfo { endCursor hasNextPage hasPreviousPage } }
        last: functions(last: 1) { nodes { name } }
        risky: functions(filter: {minCrap: 12}) { nodes { name receiver } }
        none: functions(filter: {package: "other"}) { nodes { name } } } }"""
    first = (await running.ask(query, task=running.tasks[0][0]))["analysis"]
    assert [node["name"] for node in first["all"]["nodes"]] == ["Parse", "Put"]
    assert (first["last"]["nodes"], first["none"]["nodes"]) == ([{"name": "Get"}], [])
    assert first["risky"]["nodes"] == [{"name": "Parse", "receiver": ""}, {"name": "Put", "receiver": "Store"}]
    rest = await running.ask(query, task=running.tasks[0][0], after=first["all"]["pageInfo"]["endCursor"])
    assert rest["analysis"]["all"]["nodes"] == [{"name": "Get"}]
    assert rest["analysis"]["all"]["pageInfo"]["hasPreviousPage"] is True
    assert rest["analysis"]["all"]["pageInfo"]["hasNextPage"] is False


async def test_a_cursor_among_functions_belongs_to_one_report_in_one_order(running: Running) -> None:
    query = """query($task: ID!, $after: String, $order: FunctionOrder, $filter: FunctionFilter) { analysis(task: $task) {
        functions(after: $after, orderBy: $order, filter: $filter) { edges { cursor node { name } } } } }"""

    async def page(task: str, **variables: Any) -> dict[str, str]:
        found = (await running.ask(query, task=task, **variables))["analysis"]["functions"]["edges"]
        return {edge["node"]["name"]: edge["cursor"] for edge in found}

    first, second = running.tasks[0][0], running.tasks[1][0]
    names = {"field": "NAME", "direction": "ASC"}
    risk = await page(first)
    assert list(await page(first, after=risk["Parse"], filter={"search": "t"})) == ["Put", "Get"]
    by_name = await page(first, order=names)
    assert list(by_name) == ["Get", "Parse", "Put"]
    assert list(await page(first, order=names, after=by_name["Get"])) == ["Parse", "Put"]
    for task, order, after in ((second, None, risk["Parse"]), (first, names, risk["Parse"]), (first, None, by_name["Parse"])):
        variables = {"task": task, "after": after, "order": order}
        answer = await running.gateway.ask("POST", "/function/tracker", json={"query": query, "variables": variables})
        assert answer.body["errors"][0]["message"] == "after is not a cursor of this list", (task, order)


async def test_the_history_of_a_project_can_be_read_from_either_end(running: Running) -> None:
    analysis = (await running.ask("{ analyses(first: 1) { nodes { historyId project } } }"))["analyses"]["nodes"][0]
    query = """query($id: ID!) { forth: history(id: $id) { nodes { taskId task { ref } rescoredFrom } }
        back: history(id: $id, last: 1) { nodes { taskId } pageInfo { hasPreviousPage } } }"""
    found = await running.ask(query, id=analysis["historyId"])
    newest, oldest = running.tasks[1][0], running.tasks[0][0]
    assert found["forth"]["nodes"] == [
        {"taskId": newest, "task": {"ref": "two"}, "rescoredFrom": None},
        {"taskId": oldest, "task": {"ref": "one"}, "rescoredFrom": None},
    ]
    assert found["back"] == {"nodes": [{"taskId": oldest}], "pageInfo": {"hasPreviousPage": True}}


async def test_tasks_have_their_attempts_repositories_and_results_with_one_statement_each(running: Running) -> None:
    query = """{ tasks(filter: {seen: true, state: COMPLETED}) { nodes { id project ref state stage repo { url }
        rescoredFrom { id } attempts { number worker outcome stages { stage durationMs } }
        analysis { commitSha repo { id } uncovered { path } }
    } } }"""
    before = await running.statements()
    tasks = (await running.ask(query))["tasks"]["nodes"]
    assert await running.statements() - before == 3
    assert {task["id"] for task in tasks} == {id_ for round_ in running.tasks for id_ in round_}
    for task in tasks:
        [attempt] = task["attempts"]
        assert (attempt["number"], attempt["worker"], attempt["outcome"]) == (1, "worker-1", "completed")
        assert [stage["stage"] for stage in attempt["stages"]] == ["clone", "test", "store"] or attempt["stages"]
        assert task["repo"] == {"url": URL}
        assert task["analysis"]["commitSha"] == ("b" if task["ref"] == "two" else "a") * 40
    data = await running.ask(
        "{ repos(filter: {state: READY}) { nodes { tasks(first: 4) { nodes { id } pageInfo { hasNextPage } } } } }"
    )
    [repo] = data["repos"]["nodes"]
    assert repo["tasks"] == {"nodes": [{"id": task["id"]} for task in tasks[:4]], "pageInfo": {"hasNextPage": True}}
    none = await running.ask('{ task(id: "task-0") { id } analysis(task: "task-0") { id } repo(id: "none") { id } }')
    assert none == {"task": None, "analysis": None, "repo": None}


async def test_every_field_that_has_no_arguments_to_be_given_can_be_asked_for(running: Running) -> None:
    """A field whose resolver looks for something that is not there would fail."""
    query = "{ __schema { types { name fields { name type { kind ofType { kind ofType { kind ofType { kind } } } } } } } }"
    types = {type_["name"]: type_ for type_ in (await running.ask(query))["__schema"]["types"]}

    def values(name: str) -> str:
        return " ".join(field["name"] for field in types[name]["fields"] if _innermost(field["type"]) in {"SCALAR", "ENUM"})

    await running.ask(
        f"""{{ repos {{ nodes {{ {values("Repo")} projects {{ nodes {{ {values("Project")} repo {{ id }} }} }}
            tasks {{ nodes {{ {values("Task")} attempts {{ {values("Attempt")} stages {{ {values("Stage")} }} }} }} }} }} }} }}"""
    )
    await running.ask(f"{{ analyses {{ nodes {{ {values('Analysis')} functions {{ nodes {{ {values('Function')} }} }} }} }} }}")


def _innermost(type_: Any) -> str:
    while type_.get("ofType"):
        type_ = type_["ofType"]
    return str(type_["kind"])


async def test_task_changes_are_followed_with_their_results(running: Running) -> None:
    subscription = "subscription { taskChanged { event deleted task { id project state analysis { exceeded } } } }"
    async with aiohttp.ClientSession(running.gateway.url, timeout=aiohttp.ClientTimeout(total=60)) as http:
        source = EventSource(http, f"/function/tracker?query={quote(subscription)}")
        seen: list[Any] = []

        def of(task: str) -> list[Any]:
            return [change for change in seen if change["task"]["id"] == task]

        async with source.connected(Accept="text/event-stream"):
            tasks = asyncio.create_task(analyze(running.system, running.analyses, "three", SECOND))
            seen += [json.loads(event.data)["data"]["taskChanged"] for event in await source.take(4, within=30)]
        ids = await tasks
        async with source.connected(Accept="text/event-stream"):
            while not all(any(change["event"] == "TaskCompleted" for change in of(task)) for task in ids):
                [event] = await source.take(1, within=30)
                seen.append(json.loads(event.data)["data"]["taskChanged"])
            await running.system.status(f"/api/tasks/{ids[0]}", "DELETE")
            while not seen[-1]["deleted"]:
                [event] = await source.take(1, within=30)
                seen.append(json.loads(event.data)["data"]["taskChanged"])
    for task in ids:
        events = [change["event"] for change in of(task)]
        assert events[:2] == ["TaskQueued", "TaskStarted"]
        assert len(events) == len(set(events)) + events.count("TaskStageReached") - 1
        completed = next(change for change in of(task) if change["event"] == "TaskCompleted")
        assert completed["task"]["state"] == "COMPLETED"
        assert completed["task"]["analysis"] == {"exceeded": 1}
    assert seen[-1]["task"]["id"] == ids[0]


async def test_a_report_that_is_not_there_is_said(running: Running) -> None:
    tasks = await running.system.post("/api/repos/analyze", {"repo_url": URL, "ref": "nothing-is-written-down", "project": "p1"})
    await running.system.until_task(tasks[0]["id"], "completed")
    query = "query($id: ID!) { analysis(task: $id) { totalFunctions functions { nodes { name } } } }"
    answer = await running.gateway.ask("POST", "/function/tracker", json={"query": query, "variables": {"id": tasks[0]["id"]}})
    assert answer.body["errors"][0]["message"] == "the report of this analysis is not stored"


async def test_each_object_has_an_id_of_its_own_by_which_node_finds_it(running: Running) -> None:
    """All analyses of a project have different ids: a cache by type and id shows each of them."""
    query = """{ repos(first: 2) { nodes { id projects(first: 9) { nodes { id history(first: 9) { nodes {
        id taskId historyId task { id } } } } } } } workers { id name } }"""
    found = await running.ask(query)
    projects = [node for repo in found["repos"]["nodes"] for node in repo["projects"]["nodes"]]
    analyses = [one for project in projects for one in project["history"]["nodes"]]
    assert len(analyses) >= 2 * PROJECTS
    assert len({one["historyId"] for one in analyses}) == PROJECTS
    ids = {
        "Repo": [repo["id"] for repo in found["repos"]["nodes"]],
        "Project": [project["id"] for project in projects],
        "Analysis": [one["id"] for one in analyses],
        "Task": [one["task"]["id"] for one in analyses if one["task"] is not None],
        "Worker": [worker["id"] for worker in found["workers"]],
    }
    every = [(kind, id_) for kind, some in ids.items() for id_ in some]
    assert len({id_ for _, id_ in every}) == len(every)
    for kind, id_ in every:
        assert (await running.ask("query($id: ID!) { node(id: $id) { __typename id } }", id=id_))["node"] == {
            "__typename": kind,
            "id": id_,
        }
    for unknown in ("Analysis:task-1", "Project:x", "Nothing:1", "task-1", "x", ""):
        assert await running.ask("query($id: ID!) { node(id: $id) { id } }", id=unknown) == {"node": None}


async def test_lists_have_orders_conditions_and_a_length(running: Running) -> None:
    query = """query($repo: ID!, $after: String) {
        all: tasks(filter: {repo: $repo, state: COMPLETED, seen: true}) { totalCount nodes { id state } }
        old: tasks(first: 2, after: $after, orderBy: {field: UPDATED_AT, direction: ASC}, filter: {seen: true}) {
            totalCount nodes { id updatedAt } pageInfo { endCursor } }
        analyses { totalCount } repos(filter: {state: READY}) { totalCount nodes { state tasks { totalCount } } }
        none: repos(filter: {state: ERROR}) { totalCount } }"""
    repo = (await running.ask("{ repos { nodes { id } } }"))["repos"]["nodes"][0]["id"]
    first = await running.ask(query, repo=repo)
    assert first["all"]["totalCount"] == len(first["all"]["nodes"]) >= 2 * PROJECTS
    assert {node["state"] for node in first["all"]["nodes"]} == {"COMPLETED"}
    assert (first["analyses"]["totalCount"], first["none"]["totalCount"]) == (PROJECTS, 0)
    [ready] = first["repos"]["nodes"]
    assert (ready["state"], ready["tasks"]["totalCount"]) == ("READY", first["old"]["totalCount"])
    rest = await running.ask(query, repo=repo, after=first["old"]["pageInfo"]["endCursor"])
    times = [node["updatedAt"] for page in (first, rest) for node in page["old"]["nodes"]]
    assert times == sorted(times)
    assert len(set(times)) == 4


async def test_functions_have_orders_and_conditions(running: Running) -> None:
    query = """query($task: ID!) { analysis(task: $task) {
        low: functions(orderBy: {direction: ASC}) { totalCount nodes { name } }
        named: functions(orderBy: {field: NAME, direction: ASC}, filter: {minCrap: 6}) { totalCount nodes { function } }
        found: functions(filter: {search: "Put"}) { nodes { function } } } }"""
    found = (await running.ask(query, task=running.tasks[0][0]))["analysis"]
    assert [node["name"] for node in found["low"]["nodes"]] == ["Get", "Put", "Parse"]
    assert found["named"] == {"totalCount": 2, "nodes": [{"function": "Parse"}, {"function": "Store.Put"}]}
    assert found["found"]["nodes"] == [{"function": "Store.Put"}]


async def test_two_analyses_are_compared_as_by_the_api(running: Running) -> None:
    query = """query($from: ID!, $to: ID!, $first: Int) { diff(from: $from, to: $to) { from { commitSha } to { commitSha }
        totalCount unchanged changes(first: $first) { status delta
            before { function crap state } after { function crap state } } } }"""
    first, second = running.tasks[0][0], running.tasks[1][0]
    found = (await running.ask(query, **{"from": first, "to": second, "first": 10}))["diff"]
    assert (found["from"]["commitSha"], found["to"]["commitSha"]) == ("a" * 40, "b" * 40)
    history = (await running.ask("query($t: ID!) { analysis(task: $t) { historyId } }", t=first))["analysis"]["historyId"]
    expected = await running.system.get(f"/api/repos/{history}/diff?from={first}&to={second}")
    assert found["totalCount"] == len(expected["functions"]) > 0
    assert (await running.ask(query, **{"from": first, "to": second, "first": None}))["diff"] == found
    assert [(one["status"].lower(), one["delta"]) for one in found["changes"]] == [
        (one["status"], one["delta"]) for one in expected["functions"]
    ]
    states = {side["state"] for one in found["changes"] for side in (one["before"], one["after"]) if side is not None}
    assert states == {"MEASURED"}
    other = running.tasks[1][1]
    answer = await running.gateway.ask(
        "POST", "/function/tracker", json={"query": query, "variables": {"from": first, "to": other, "first": 1}}
    )
    assert answer.body["errors"][0]["message"] == "the two analyses are of different projects"


async def test_a_difference_names_shortened_reports_and_other_ways_of_measuring_as_the_api_does(running: Running) -> None:
    query = """query($from: ID!, $to: ID!) { diff(from: $from, to: $to) { partial breaks { what before after } } }"""
    system, url = running.system, "https://github.com/owner/shortened"
    await system.register(url)
    rounds = [("short-1", attrs.evolve(FIRST, flags=("-v",), more=3)), ("short-2", attrs.evolve(SECOND, engine_version="2"))]
    [shortened, *_], [whole, *_] = [await analyze(system, running.analyses, ref, one, url) for ref, one in rounds]
    [[first, *_], [second, *_]] = running.tasks
    for before, after, partial in ((first, second, False), (shortened, whole, True), (whole, shortened, True)):
        history = await until_known(running, after)
        expected = await system.get(f"/api/repos/{history}/diff?from={before}&to={after}")
        found = (await running.ask(query, **{"from": before, "to": after}))["diff"]
        assert found == {"partial": partial, "breaks": expected["break"]}
        assert expected["partial"] is partial
        assert "flags" in {one["what"] for one in found["breaks"]}


async def test_functions_that_were_not_measured_are_named_so_and_do_not_count_among_measured_ones(running: Running) -> None:
    query = """query($t: ID!) { analysis(task: $t) { exceeded totalFunctions
        measured { average combined exceeded totalFunctions } functions { nodes { function state reason } } } }"""
    system, url = running.system, "https://github.com/owner/failing"
    await system.register(url)
    functions, failed = {"a.go:Parse": 42.0, "a.go:Slow": 90.0}, {"a.go:Slow": ("tests_failed", "exit 1")}
    [task, *_] = await analyze(system, running.analyses, "failing", attrs.evolve(FIRST, functions=functions, states=failed), url)
    await until_known(running, task)
    assert (await running.ask(query, t=task))["analysis"] == {
        "exceeded": 2,
        "totalFunctions": 2,
        "measured": {"average": 42, "combined": 42, "exceeded": 1, "totalFunctions": 1},
        "functions": {
            "nodes": [
                {"function": "Slow", "state": "TESTS_FAILED", "reason": "exit 1"},
                {"function": "Parse", "state": "MEASURED", "reason": ""},
            ]
        },
    }


async def test_the_log_the_projections_and_settings_can_be_read(running: Running) -> None:
    query = """query($next: Sequence) {
        events(filter: {category: "task", types: ["TaskCompleted"]}, first: 2, after: $next) {
            end next events { position sequence aggregate type version at data actor problem } }
        projections { name sequence } repos { nodes { settings { ref coverpkg } projects { nodes { settings { ref } } } } } }"""

    async def asked() -> Any:
        """The answer once all tables have all of the log."""
        found = await running.ask(query)
        return found if {one["sequence"] for one in found["projections"]} == {found["events"]["end"]} else None

    first = await wait_until(asked, 30)
    page = first["events"]
    assert {event["type"] for event in page["events"]} == {"TaskCompleted"}
    assert [event["sequence"] for event in page["events"]] == sorted((e["sequence"] for e in page["events"]), reverse=True)
    assert all(event["data"] and event["at"] and event["problem"] is None for event in page["events"])
    rest = await running.ask(query, next=page["next"])
    assert rest["events"]["events"][0]["sequence"] < page["events"][-1]["sequence"]
    assert first["repos"]["nodes"][0]["settings"] == {"ref": None, "coverpkg": None}
    usual = (await running.ask("{ events(first: null) { events { sequence } } }"))["events"]
    assert len(usual["events"]) == min(100, page["end"])
    for wrong in ('filter: {aggregate: "x y"}', "first: 0", "after: -1", 'after: "x"'):
        answer = await running.gateway.ask("POST", "/function/tracker", data=f"{{ events({wrong}) {{ end }} }}")
        assert answer.body["errors"][0]["extensions"]["code"] in {"BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED"}


async def test_attempts_have_logs_and_analyses_verdicts_and_profiles(running: Running) -> None:
    task = running.tasks[1][0]
    query = """query($task: ID!) { task(id: $task) { attempts { number log } }
        analysis(task: $task) { profile historyId
            verdicts { id verdictId result checks { name passed limit value } analysis { taskId } } } }"""
    before = await running.ask(query, task=task)
    assert [attempt["number"] for attempt in before["task"]["attempts"]] == [1]
    assert (before["analysis"]["profile"], before["analysis"]["verdicts"]) == (None, [])
    history = before["analysis"]["historyId"]
    given = await running.system.post(f"/api/repos/{history}/gate", {"max_new": 0, "to": task})

    async def verdicts() -> Any:
        return (await running.ask(query, task=task))["analysis"]["verdicts"]

    await wait_until(verdicts, 10)
    [verdict] = await verdicts()
    assert (verdict["verdictId"], verdict["result"]) == (given["verdict"], given["result"].upper())
    assert verdict["analysis"] == {"taskId": task}
    await running.system.post(f"/api/repos/{history}/gate", {"max_new": 0, "max_exceeded": 1, "to": task})
    several = (
        "query($task: ID!, $n: Int) { analysis(task: $task) { verdicts(first: $n) { verdictId } all: verdicts { verdictId } } }"
    )

    async def both() -> Any:
        found = (await running.ask(several, task=task, n=1))["analysis"]
        return found if len(found["all"]) == 2 else None

    found = await wait_until(both, 10)
    assert found["verdicts"] == found["all"][:1] != [{"verdictId": given["verdict"]}]
    assert (await running.ask(several, task=task, n=None))["analysis"]["verdicts"] == found["all"]
    for wrong, code in (("first: 1001", "BAD_USER_INPUT"), ("first: -1", "BAD_USER_INPUT")):
        asked = f'{{ analysis(task: "{task}") {{ verdicts({wrong}) {{ id }} }} }}'
        answer = await running.gateway.ask("POST", "/function/tracker", data=asked)
        assert answer.body["errors"][0]["extensions"]["code"] == code
    circle = "verdicts { analysis { " * 4 + "id" + " } }" * 4
    answer = await running.gateway.ask("POST", "/function/tracker", data=f'{{ analysis(task: "{task}") {{ {circle} }} }}')
    assert answer.body["errors"][0]["extensions"]["code"] == "OVER_LIMIT"
    found = await running.ask("query($id: ID!) { node(id: $id) { ... on Verdict { verdictId } } }", id=verdict["id"])
    assert found["node"] == {"verdictId": given["verdict"]}
