"""Webhooks of forges: a push or a pull request ends in a status and one comment at the forge, once."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_asyncio

from eventlog.commit import AggregateId
from eventlog.embedded.nats import free_port
from gctd.control.forges.reporting import CONCURRENT
from tests.support.tracker.forge_double import (
    SECRET,
    TOKEN,
    ForgeDouble,
    forge_double,
    github_pull,
    github_push,
    gitlab_merge,
    gitlab_push,
    signed,
    with_token,
)
from tests.support.tracker.made_up import MadeUp
from tests.support.tracker.system import TrackerSystem, tracker_system
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real]

OLD = MadeUp(commit_sha="a" * 40, functions={"a.go:Parse": 12.0})
RISKY = attrs.evolve(OLD, commit_sha="b" * 40, functions={**OLD.functions, "a.go:Added": 90.0})
RISKY_LATER = attrs.evolve(RISKY, commit_sha="d" * 40)
CLEAN = attrs.evolve(OLD, commit_sha="c" * 40, go_version="go1.26.7")
WAITING = [attrs.evolve(OLD, commit_sha=f"{number:040x}") for number in range(1, 2 * CONCURRENT)]
UNANSWERED = [attrs.evolve(OLD, commit_sha=f"{number:040x}") for number in range(1000, 1000 + CONCURRENT)]


@attrs.frozen
class Forges:
    """A tracker with a worker, and a double that is two forges to it: github.test and gitlab.test."""

    system: TrackerSystem
    double: ForgeDouble

    async def deliver(self, kind: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        """Post a delivery; status and answer."""
        return await self.system.status(f"/api/hooks/{kind}", "POST", data=body, headers=headers)

    async def push(self, path: str, made: MadeUp, delivery: str, *, before: str = OLD.commit_sha, branch: str = "main") -> str:
        """Deliver a push of GitHub that is taken; the id of the delivery in the log."""
        body = github_push(path, before, made.commit_sha, branch=branch)
        status, answer = await self.deliver("github", body, signed(body, event="push", delivery=delivery))
        assert (status, answer["note"]) == (202, ""), answer
        id_: str = answer["id"]
        return id_

    async def pull(self, path: str, number: int, made: MadeUp, delivery: str) -> str:
        """Deliver a pull request of GitHub to the branch with `OLD`; the id of the delivery in the log."""
        body = github_pull(path, number, made.commit_sha, OLD.commit_sha)
        status, answer = await self.deliver("github", body, signed(body, event="pull_request", delivery=delivery))
        assert (status, answer["note"]) == (202, ""), answer
        id_: str = answer["id"]
        return id_

    async def ended(self, id_: str) -> list[Any]:
        """Wait until a delivery has ended; its events."""
        return await self.until(id_, "DeliveryEnded")

    async def until(self, id_: str, wanted: str) -> list[Any]:
        """Wait for an event of a delivery; its events."""

        aggregate = AggregateId.parse(f"gctd.delivery.{id_}")
        async with self.system.log() as log:

            async def has() -> Any:
                events = [event.data async for commit in log.history(aggregate) for event in commit.events]
                return events if any(type(event).__name__ == wanted for event in events) else None

            events: list[Any] = await wait_until(has, timeout=90, every=0.1)
        return events


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def forges(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Forges]:
    directory = tmp_path_factory.mktemp("hooks")
    analyses = directory / "analyses"
    for made in (OLD, RISKY, RISKY_LATER, CLEAN, *WAITING, *UNANSWERED):
        made.write(analyses, made.commit_sha)
    async with forge_double() as double:
        file = write_forges(directory, double.url)
        settings = {"GCTD_FORGES_FILE": str(file), "GCTD_PUBLIC_URL": "https://gctd.test"}
        async with tracker_system(directory, **settings) as system:
            await system.start_worker(1, FAKE_ANALYSES=str(analyses))
            yield Forges(system, double)


def write_forges(directory: Path, url: str) -> Path:
    """A file with the two forges."""
    file = directory / "forges.yaml"
    one = {"host": "github.test", "kind": "github", "api": url, "token": TOKEN, "secrets": [SECRET, "an older secret of it"]}
    other = {"host": "gitlab.test", "kind": "gitlab", "api": f"{url}/api/v4", "token": TOKEN, "secrets": [SECRET]}
    file.write_text(json.dumps([one, other]))
    file.chmod(0o600)
    return file


async def test_a_push_ends_in_one_status(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/push")
    id_ = await forges.push("owner/push", RISKY, "d-1")
    events = await forges.ended(id_)
    assert (events[-1].reported, events[-1].reason) == (True, "")
    (status,) = forges.double.statuses[RISKY.commit_sha]
    assert (status["state"], status["context"], status["description"]) == ("failure", "gctd/push", "gate failed: max_new")
    assert re.match(r"https://gctd\.test/analyses/[0-9a-f]{32}/compare/task-\d+\.\.\.task-\d+", status["target_url"]), status
    await forges.ended(await forges.push("owner/push", CLEAN, "d-2", before=RISKY.commit_sha))
    assert [one["state"] for one in forges.double.statuses[CLEAN.commit_sha]] == ["success"]


async def test_a_pull_request_has_one_comment_that_is_updated(forges: Forges) -> None:
    forges.double.comments[7] = [{"id": 900, "body": "by somebody else"}]
    await forges.system.register("https://github.test/owner/pull")
    for made, delivery in ((RISKY, "p-1"), (CLEAN, "p-2")):
        body = github_pull("owner/pull", 7, made.commit_sha, OLD.commit_sha, action="opened" if made is RISKY else "synchronize")
        status, answer = await forges.deliver("github", body, signed(body, event="pull_request", delivery=delivery))
        assert status == 202, answer
        events = await forges.ended(answer["id"])
        assert events[-1].reported, events
    _, comment = forges.double.comments[7]
    assert comment["body"].startswith("<!-- gctd ")
    assert CLEAN.commit_sha[:12] in comment["body"]
    found = re.search(r"\(https://gctd\.test(/analyses/[0-9a-f]{32})/compare/(task-\d+)\.\.\.(task-\d+)\?base=", comment["body"])
    assert found is not None, comment["body"]
    assert "Measured differently: go_version `go1.26.6` → `go1.26.7`." in comment["body"]
    diff = await forges.system.get(f"/api/repos/{found[1].rpartition('/')[2]}/diff?from={found[2]}&to={found[3]}")
    assert (diff["from"]["commit_sha"], diff["to"]["commit_sha"]) == (OLD.commit_sha, CLEAN.commit_sha)
    # An analysis of a pull request is not the latest of the project.
    assert not [one for one in await forges.system.get("/api/repos") if one["repo_info"]["url"].endswith("owner/pull")]


async def test_a_push_and_a_pull_request_of_one_commit_have_a_status_each(forges: Forges) -> None:
    """The pull request adds a risky function, its last push does not: no verdict is in the place of the other one."""
    await forges.system.register("https://github.test/owner/each")
    forges.double.statuses.clear()
    await forges.ended(await forges.pull("owner/each", 5, RISKY_LATER, "e-1"))
    await forges.ended(await forges.push("owner/each", RISKY_LATER, "e-2", before=RISKY.commit_sha))
    statuses = forges.double.statuses[RISKY_LATER.commit_sha]
    assert [(one["context"], one["state"]) for one in statuses] == [("gctd", "failure"), ("gctd/push", "success")]


async def retargeted(forges: Forges, path: str, number: int, delivery: str) -> str:
    """Deliver that the pull request of `RISKY_LATER` is to the branch with `RISKY`; the id of the delivery in the log."""
    edited = json.loads(github_pull(path, number, RISKY_LATER.commit_sha, RISKY.commit_sha, action="edited"))
    body = json.dumps({**edited, "changes": {"base": {"ref": {"from": OLD.commit_sha}}}}).encode()
    status, answer = await forges.deliver("github", body, signed(body, event="pull_request", delivery=delivery))
    assert (status, answer["note"]) == (202, ""), answer
    id_: str = answer["id"]
    return id_


async def test_a_pull_request_with_another_target_branch_is_judged_against_that_branch(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/target")
    forges.double.statuses.clear()
    await forges.ended(await forges.pull("owner/target", 11, RISKY_LATER, "t-1"))
    assert (await forges.ended(await retargeted(forges, "owner/target", 11, "t-2")))[-1].reported
    statuses = forges.double.statuses[RISKY_LATER.commit_sha]
    assert [(one["context"], one["state"]) for one in statuses] == [("gctd", "failure"), ("gctd", "success")]
    (comment,) = forges.double.comments[11]
    assert RISKY.commit_sha[:12] in comment["body"], comment


async def test_a_late_status_does_not_replace_the_status_of_a_later_delivery(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/slow")
    forges.double.statuses.clear()
    forges.double.faults.append((429, {"Retry-After": "6"}))
    first = await forges.pull("owner/slow", 14, RISKY_LATER, "s-1")
    await forges.until(first, "ReportAttemptFailed")
    await forges.ended(await retargeted(forges, "owner/slow", 14, "s-2"))
    assert (await forges.ended(first))[-1].reported
    assert [one["state"] for one in forges.double.statuses[RISKY_LATER.commit_sha]] == ["success"]


async def test_a_late_comment_does_not_replace_the_comment_of_a_later_delivery(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/late")
    await forges.ended(await forges.push("owner/late", CLEAN, "l-0"))

    async def refuse_the_comment(when: str, kind: str, key: str) -> None:
        if (when, kind, key) == ("after", "status", RISKY.commit_sha):
            forges.double.faults.append((429, {"Retry-After": "6"}))

    forges.double.pause = refuse_the_comment
    try:
        first = await forges.pull("owner/late", 6, RISKY, "l-1")
        await forges.until(first, "ReportAttemptFailed")
        await forges.ended(await forges.pull("owner/late", 6, CLEAN, "l-2"))
        assert (await forges.ended(first))[-1].reported
    finally:
        forges.double.pause = None
    (comment,) = forges.double.comments[6]
    assert CLEAN.commit_sha[:12] in comment["body"], comment


async def test_no_comment_of_another_user_is_taken_for_the_comment_of_the_tracker(forges: Forges) -> None:
    """Anybody can write a comment that looks like it, also one that looks later than any delivery."""
    repo = await forges.system.register("https://github.test/owner/posed")
    await forges.ended(await forges.pull("owner/posed", 12, CLEAN, "i-0"))
    (genuine,) = forges.double.comments[12]
    posed = [
        f"<!-- gctd {repo['ID']} {9 * 10**18} -->\n\n### all is well",
        f"<!-- gctd {repo['ID']} {9 * 10**18} {'0' * 64} -->\n\n### all is well",
        genuine["body"],  # of another pull request
    ]
    forges.double.comments[11] = [{"id": 910 + number, "body": body} for number, body in enumerate(posed)]
    await forges.ended(await forges.pull("owner/posed", 11, RISKY, "i-1"))
    assert [one["body"] for one in forges.double.comments[11][:-1]] == posed
    assert "**The gate is not passed" in forges.double.comments[11][-1]["body"]
    await forges.ended(await forges.pull("owner/posed", 11, CLEAN, "i-2"))
    assert len(forges.double.comments[11]) == len(posed) + 1
    assert CLEAN.commit_sha[:12] in forges.double.comments[11][-1]["body"]


async def test_a_merge_request_of_gitlab_ends_in_a_status_and_a_comment_and_a_push_in_a_status(forges: Forges) -> None:
    await forges.system.register("https://gitlab.test/group/sub/name")
    forges.double.statuses.clear()
    body = gitlab_merge("group/sub/name", 3, RISKY.commit_sha, OLD.commit_sha)
    status, answer = await forges.deliver("gitlab", body, with_token(event="Merge Request Hook", delivery="m-1"))
    assert status == 202, answer
    assert (await forges.ended(answer["id"]))[-1].reported
    body = gitlab_push("group/sub/name", OLD.commit_sha, RISKY.commit_sha)
    status, answer = await forges.deliver("gitlab", body, with_token(event="Push Hook", delivery="m-0"))
    assert status == 202, answer
    assert (await forges.ended(answer["id"]))[-1].reported
    statuses = forges.double.statuses[RISKY.commit_sha]
    assert [(one["name"], one["state"]) for one in statuses] == [("gctd", "failed"), ("gctd/push", "failed")]
    assert len(forges.double.comments[3]) == 1


async def test_a_delivery_that_comes_again_has_no_second_effect_and_a_replay_is_refused(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/again")
    body = github_push("owner/again", OLD.commit_sha, RISKY.commit_sha)
    headers = signed(body, event="push", delivery="a-1")
    first = await forges.deliver("github", body, headers)
    again = await forges.deliver("github", body, headers)
    assert (first[0], again) == (202, (202, {"id": first[1]["id"], "note": "it was delivered before"}))
    replay = await forges.deliver("github", body, {**headers, "X-GitHub-Delivery": "a-2"})
    assert replay[0] == 409
    await forges.ended(first[1]["id"])
    queued = [
        event for event in await forges.system.events() if event.type == "DeliveryReceived" and event.data.delivery == "a-1"
    ]
    assert len(queued) == 1


async def test_an_unsigned_delivery_is_refused(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/signed")
    body = github_push("owner/signed", OLD.commit_sha, RISKY.commit_sha)
    right = signed(body, event="push", delivery="s-1")
    wrong = signed(body, event="push", delivery="s-1", secret="another secret, not ours")
    cases = [
        ("github", body + b" ", right),
        ("github", body, wrong),
        ("github", body, {**right, "X-Hub-Signature-256": "sha256="}),
        ("github", body, {name: value for name, value in right.items() if name != "X-Hub-Signature-256"}),
        ("github", body, with_token(event="Push Hook", delivery="s-1")),
        ("gitlab", body, with_token(event="Push Hook", delivery="s-1", secret="another secret, not ours")),
        ("gitlab", body, right),
    ]
    for kind, sent, headers in cases:
        status, answer = await forges.deliver(kind, sent, headers)
        assert status == 403, (kind, headers, answer)
    older = signed(body, event="push", delivery="s-2", secret="an older secret of it")
    status, answer = await forges.deliver("github", body, older)
    assert status == 202
    await forges.ended(answer["id"])


async def test_deliveries_from_which_nothing_follows_are_taken_and_wrong_ones_are_not(forges: Forges) -> None:
    ping = b'{"zen": "Design for failure."}'
    status, answer = await forges.deliver("github", ping, signed(ping, event="ping", delivery="n-1"))
    assert (status, answer) == (202, {"id": None, "note": "nothing follows from ping"})
    unknown = github_push("owner/unknown", OLD.commit_sha, RISKY.commit_sha)
    status, answer = await forges.deliver("github", unknown, signed(unknown, event="push", delivery="n-2"))
    assert (status, answer) == (202, {"id": None, "note": "the repository is not registered here"})
    for body in (b"[]", b"{", b'{"ref": 1}', github_push("owner/push", OLD.commit_sha, "not a commit")):
        status, answer = await forges.deliver("github", body, signed(body, event="push", delivery="n-3"))
        assert status == 400, (body, answer)
    large = b" " * (25 * 1024 * 1024 + 1)
    headers = signed(large, event="push", delivery="n-4")
    assert (await forges.system.status("/api/hooks/github", "POST", data=BytesIO(large), headers=headers))[0] == 413


async def test_deliveries_that_wait_do_not_delay_the_ones_after_them(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/many")
    await forges.system.post("/api/workers/worker-1/pause")
    await forges.system.until_worker("worker-1", "paused")
    try:
        ids = [await forges.push("owner/many", made, f"y-{made.commit_sha}") for made in WAITING]

        async def are_scheduled() -> bool:
            events = [await forges.system.events(f"gctd.delivery.{id_}") for id_ in ids]
            return all([event.type for event in found] == ["DeliveryReceived", "DeliveryScheduled"] for found in events)

        await wait_until(are_scheduled, timeout=30, every=0.5)
    finally:
        await forges.system.post("/api/workers/worker-1/unpause")
    for id_ in ids:
        assert (await forges.ended(id_))[-1].reported


async def test_a_push_and_a_pull_request_of_one_commit_have_one_task(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/both")
    pull = github_pull("owner/both", 8, RISKY.commit_sha, OLD.commit_sha)
    delivered = forges.deliver("github", pull, signed(pull, event="pull_request", delivery="b-2"))
    pushed, (_, answer) = await asyncio.gather(forges.push("owner/both", RISKY, "b-1", branch="feature"), delivered)
    first, second = [(await forges.ended(id_))[1] for id_ in (pushed, answer["id"])]
    assert first.tasks == second.tasks


async def test_a_pull_request_that_is_merged_as_it_is_becomes_the_latest_analysis(forges: Forges) -> None:
    """A fast-forward merge pushes the commit of the pull request, whose analysis is never the latest, to the branch."""
    await forges.system.register("https://github.test/owner/merged")
    await forges.ended(await forges.push("owner/merged", OLD, "g-1", before=CLEAN.commit_sha))
    (pulled,) = (await forges.ended(await forges.pull("owner/merged", 9, RISKY, "g-2")))[1].tasks
    (pushed,) = (await forges.ended(await forges.push("owner/merged", RISKY, "g-3")))[1].tasks
    latest = [one for one in await forges.system.get("/api/repos") if one["repo_info"]["url"].endswith("owner/merged")]
    assert [(one["repo_info"]["commit_sha"], one["task_id"]) for one in latest] == [(RISKY.commit_sha, pushed)], pulled
    again = (await forges.ended(await forges.pull("owner/merged", 10, RISKY, "g-4")))[1].tasks
    assert again == (pushed,), "a task of the branch answers a pull request"


async def test_a_branch_that_is_set_back_has_the_latest_analysis_of_its_earlier_commit(forges: Forges) -> None:
    """A push with force drops a commit: the commit before it was analysed long ago, and is the end of the branch again."""
    await forges.system.register("https://github.test/owner/back")
    (first,) = (await forges.ended(await forges.push("owner/back", OLD, "k-1", before=CLEAN.commit_sha)))[1].tasks
    await forges.ended(await forges.push("owner/back", RISKY, "k-2"))
    (again,) = (await forges.ended(await forges.push("owner/back", OLD, "k-3", before=RISKY.commit_sha)))[1].tasks
    latest = [one for one in await forges.system.get("/api/repos") if one["repo_info"]["url"].endswith("owner/back")]
    assert [(one["repo_info"]["commit_sha"], one["task_id"]) for one in latest] == [(OLD.commit_sha, again)], first
    (same,) = (await forges.ended(await forges.push("owner/back", OLD, "k-4", before=RISKY_LATER.commit_sha)))[1].tasks
    assert same == again, "the latest analysis is of this commit"


async def test_a_forge_that_does_not_answer_delays_no_other_forge(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/slow")
    await forges.system.register("https://gitlab.test/owner/quick")
    held = asyncio.Event()

    async def answers_later(when: str, kind: str, key: str) -> None:
        if (when, kind) == ("before", "status") and key != RISKY.commit_sha:
            await held.wait()

    forges.double.statuses.clear()
    forges.double.pause = answers_later
    try:
        ids = [await forges.push("owner/slow", made, f"z-{made.commit_sha}") for made in UNANSWERED]
        for id_ in ids:
            await forges.until(id_, "ReportDecided")
        body = gitlab_merge("owner/quick", 4, RISKY.commit_sha, OLD.commit_sha)
        status, answer = await forges.deliver("gitlab", body, with_token(event="Merge Request Hook", delivery="m-2"))
        assert status == 202, answer
        assert (await forges.ended(answer["id"]))[-1].reported
        assert not held.is_set()
    finally:
        held.set()
        forges.double.pause = None
    for id_ in ids:
        await forges.ended(id_)


async def test_a_forge_that_is_down_is_told_later_and_once(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/down")
    forges.double.statuses.clear()
    forges.double.faults[:] = [(502, {}), (429, {"Retry-After": "1"})]
    events = await forges.ended(await forges.push("owner/down", RISKY, "w-1"))
    assert events[-1].reported
    reasons = [event.reason for event in events if type(event).__name__ == "ReportAttemptFailed"]
    assert [reason.rpartition(" ")[2] for reason in reasons] == ["502", "429"]
    assert len(forges.double.statuses[RISKY.commit_sha]) == 1


@pytest.mark.parametrize("status", [302, 307, 401, 404, 422])
async def test_no_other_address_is_asked_and_a_refusal_is_final(forges: Forges, status: int) -> None:
    """A redirect is not followed: only the configured base of the API is asked."""
    name = f"owner/final-{status}"
    forges.double.statuses.clear()
    await forges.system.register(f"https://github.test/{name}")
    forges.double.faults[:] = [(status, {"Location": f"{forges.double.url}/elsewhere"})]
    events = await forges.ended(await forges.push(name, RISKY, f"f-{status}"))
    assert (events[-1].reported, events[-1].reason.endswith(f"status {status}")) == (False, True)
    assert "/elsewhere" not in forges.double.asked


async def test_secrets_are_in_no_event_and_no_log(forges: Forges) -> None:
    await forges.system.register("https://github.test/owner/secret")
    await forges.ended(await forges.push("owner/secret", RISKY, "x-1"))
    stored = repr([event.data for event in await forges.system.events()])
    assert forges.system.serve is not None
    said = forges.system.serve.log.read_text()
    assert "delivery taken" in said
    for secret in (TOKEN, SECRET, "an older secret"):
        assert secret not in stored
        assert secret not in said


async def test_a_server_with_a_token_takes_deliveries_without_it(tmp_path: Path) -> None:
    file = write_forges(tmp_path, f"http://127.0.0.1:{free_port()}")
    settings = {"GCTD_FORGES_FILE": str(file), "GCTD_AUTH_TOKEN": "token-of-the-tracker"}
    async with tracker_system(tmp_path, **settings) as system:
        ping = b"{}"
        headers = signed(ping, event="ping", delivery="t-1")
        assert (await system.status("/api/hooks/github", "POST", data=ping, headers=headers))[0] == 202
        assert (await system.status("/api/tasks"))[0] == 401
