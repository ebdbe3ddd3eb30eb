"""The pantry's command line against a running server: every command that reads, input of a scanner, imports, failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from pantry.cli.root import PROGRAM
from pantry.cli.scan.scanner import Direction, Quantity, ScannedCode, Undo, understood
from pantry.client.api import Client
from terminalkit.client.transport import Unavailable
from tests.support.pantry.system import API, FLOUR, MILK, Server
from tests.support.programs.cli import Result, pantry, running
from tests.support.programs.commands import leaves

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASE = "14006381333938"
"""A case of flour."""
WRITES = {
    *("product add", "product edit", "product deactivate", "product activate", "product count"),
    *("category add", "category edit", "movement add", "movement undo", "movement import", "product import", "scan"),
    *("code assign", "code remove"),
    *("person erase", "migrate up", "migrate down", "migrate force", "token create", "token revoke", "takeover", "pair"),
}
"""Commands that change something; all others read."""
NO_DOCUMENT = {"serve", "run", "up", "completion", "watch"}
"""A program that serves, a script for a shell, and a command without an end (it has a separate test)."""
READS = sorted(leaves(PROGRAM.group) - WRITES - NO_DOCUMENT)


class Line:
    """The command line of a server."""

    def __init__(self, server: Server, home: Path) -> None:
        self.server = server
        self.home = home
        self.env = {name: value for name, value in server.environment.items() if name.startswith("PANTRY_")}

    async def run(self, *arguments: str, typed: str | None = None, **environment: str) -> Result:
        """How the program ends with these arguments and this standard input."""
        return await pantry(*arguments, home=self.home, env=self.env | environment, typed=typed)

    async def json(self, *arguments: str) -> Any:
        """The document of a command that succeeds."""
        result = await self.run(*arguments, "--json")
        assert result.code == 0, result
        return result.json


@pytest.fixture
def line(server: Server, tmp_path: Path) -> Line:
    return Line(server, tmp_path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept(running: Any) -> AsyncIterator[str]:
    """A movement of a product that is kept, low, and of a category."""
    server: Server = running.one
    category = (await server.post("/categories", {"name": "Baking"})).body["id"]
    await server.create(FLOUR, min_stock=20, category_id=category)
    assert (await server.ask("PUT", f"{API}/codes/{CASE}", {"product_ean13": FLOUR, "factor": 6})).status == 200
    assert (await server.post(f"/products/{FLOUR}/count", {"counted": 0})).status == 200
    yield (await server.moved("in", 10))["id"]


def arguments_of(command: str, movement: str) -> list[str]:
    """Arguments with which a command that reads finds something."""
    found = {"stock": [FLOUR], "product show": [FLOUR], "movement show": [movement], "code show": [CASE]}
    return found.get(command, [])


@pytest.mark.real
@pytest.mark.parametrize("command", READS)
async def test_json_of_a_command_that_reads_is_a_document(line: Line, kept: str, command: str) -> None:
    """This includes future commands: a command outside the list of writing commands is taken to read."""
    result = await line.run(*command.split(), *arguments_of(command, kept), "--json", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert result.json or (command, result.json) == ("token list", [])  # no token was created


async def test_every_command_that_writes_is_one() -> None:
    assert leaves(PROGRAM.group) >= WRITES | NO_DOCUMENT
    assert len(READS) >= 10


@pytest.mark.real
async def test_a_person_is_erased_as_often_as_one_likes(line: Line, code: str) -> None:
    await line.json("product", "add", code, "--name", "Flour", "--unit", "kg")
    await line.json(
        "movement", "add", "--ean", code, "--in", "1", "--by", "Wilma Wolke", "--notes", "for Sunday", "--reason", "gift"
    )
    for _ in range(2):
        result = await line.run("person", "erase", "wilma wolke")
        assert (result.code, result.out) == (0, "")
    (booked,) = await line.json("movement", "list", "--ean", code)
    assert (booked["created_by"], booked["notes"], booked["reason"]) == ("[erased]", "[erased]", "gift")


@pytest.mark.real
async def test_a_product_from_creation_to_its_end(line: Line, code: str) -> None:
    await line.json("category", "add", f"for {code}")
    made = await line.json("product", "add", code, "--name", "Flour", "--unit", "kg", "--min", "2.5", "--category", f"for {code}")
    assert (made["name"], made["min_stock"], made["current_stock"]) == ("Flour", 2.5, 0)
    again = await line.run("product", "add", code, "--name", "Flour", "--unit", "kg")
    assert again.code == 5
    assert code in again.err
    edited = await line.json("product", "edit", code, "--name", "Rye")
    assert edited == made | {"name": "Rye", "updated_at": edited["updated_at"]}
    assert "category_id" not in await line.json("product", "edit", code, "--category", "")
    await line.json("movement", "add", "--ean", code, "--in", "10.3", "--by", "anna")
    assert (await line.json("stock", code))["current_stock"] == 10.3
    assert (await line.json("product", "count", code, "7"))["difference"] == -3.3
    assert (await line.json("product", "deactivate", code))["active"] is False
    assert [one["ean13"] for one in await line.json("product", "list", "--inactive", "--search", code)] == [code]
    assert (await line.json("product", "activate", code))["active"] is True
    table = await line.run("product", "list", "--search", code)
    assert table.rows == [["EAN13", "NAME", "STOCK", "UNIT", "MINIMUM", "STATE"], [code, "Rye", "7", "kg", "2.5", ""]]


@pytest.mark.real
async def test_fields_absent_from_an_edit_stay_also_under_concurrent_edits(line: Line, code: str) -> None:
    await line.server.create(code, description="kept", min_stock=1)
    async with Client(line.server.url) as client:
        await asyncio.gather(
            client.edit_product(code, {"name": "Rye"}),
            client.edit_product(code, {"unit": "g"}),
            client.edit_product(code, {"min_stock": 3}),
        )
        found = (await client.product(code)).document
    assert [found[name] for name in ("name", "unit", "min_stock", "description")] == ["Rye", "g", 3, "kept"]


@pytest.mark.real
async def test_a_category_is_renamed_by_its_name(line: Line) -> None:
    made = await line.json("category", "add", "Cakes")
    assert (await line.json("category", "edit", "Cakes", "--name", "Cake"))["id"] == made["id"]
    unknown = await line.run("category", "edit", "Cakes", "--name", "x")
    assert (unknown.code, unknown.err.splitlines()[1]) == (3, "hint: pantry category list")


@pytest.mark.real
@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (("movement", "add", "--ean", FLOUR, "--out", "99"), 5, "insufficient stock: available 10.000, requested 99.000"),
        (("movement", "add", "--ean", FLOUR, "--out", "1.0005"), 2, "must have at most 3 decimal places"),
        (("movement", "add", "--ean", FLOUR, "--in", "0"), 2, "must be 0.001 or more"),
        (("movement", "add", "--ean", FLOUR), 2, "either --in or --out is needed"),
        (("movement", "add", "--ean", FLOUR, "--in", "1", "--out", "1"), 2, "either --in or --out is needed"),
        (("movement", "add", "--ean", MILK, "--in", "1"), 3, f"hint: pantry product add {MILK}"),
        (("movement", "list", "--from", "yesterday"), 2, "from"),
        (("product", "show", FLOUR[:-1] + "0"), 3, ""),
        (("product", "edit", FLOUR), 2, "nothing to change"),
        (("report", "stock", "--csv", "--json"), 2, "exclude each other"),
    ],
)
async def test_failures_have_their_exit_codes(
    line: Line, kept: str, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    del kept
    result = await line.run(*arguments)
    assert (result.code, result.out) == (exit_code, ""), result
    assert said in result.err, result


@pytest.mark.real
@pytest.mark.parametrize("code", ["list", FLOUR[:-1] + "0"])
async def test_no_product_is_proposed_whose_code_cannot_be(line: Line, code: str) -> None:
    """A mistyped code has no product, and adding one under it is of no use."""
    result = await line.run("stock", code)
    assert (result.code, "hint" in result.err) == (3, False), result


@pytest.mark.real
async def test_a_movement_is_undone_once(line: Line, code: str) -> None:
    await line.server.create(code)
    made = await line.json("movement", "add", "--ean", code, "--in", "2")
    undone = await line.json("movement", "undo", made["id"], "--reason", "twice")
    assert (undone["reverses"], undone["reason"], undone["stock_after"]) == (made["id"], "twice", 0)
    assert (await line.run("movement", "undo", made["id"])).code == 5
    table = await line.run("movement", "list", "--ean", code)
    assert [row[6] for row in table.rows[1:]] == ["twice, undoes another", "undone"]


@pytest.mark.real
async def test_a_unit_is_changed_with_a_factor(line: Line, code: str) -> None:
    await line.server.create(code, min_stock=0.5)
    await line.json("movement", "add", "--ean", code, "--in", "2")
    refused = await line.run("product", "edit", code, "--unit", "g")
    assert (refused.code, "how many g 1 kg is" in refused.err) == (5, True), refused
    changed = await line.json("product", "edit", code, "--unit", "g", "--factor", "1000")
    assert (changed["unit"], changed["current_stock"], changed["min_stock"]) == ("g", 2000, 500)
    table = await line.run("movement", "list", "--ean", code)
    assert table.rows[1][3:5] == ["2", "kg"]
    back = await line.json("product", "edit", code, "--unit", "kg", "--factor", "0,001", "--min", "1")
    assert (back["unit"], back["current_stock"], back["min_stock"]) == ("kg", 2, 1)


@pytest.mark.real
@pytest.mark.parametrize("form", ["csv", "ndjson", "standard input"])
async def test_an_import_books_the_valid_rows_and_lists_the_others(line: Line, code: str, tmp_path: Path, form: str) -> None:
    await line.server.create(code)
    rows = [(code, "in", "2"), (code, "out", "99"), (code, "in", "1.0005"), (code, "out", "1")]
    if form == "ndjson":
        text = "".join(f'{{"product_ean13": "{ean}", "type": "{type_}", "quantity": {q}}}\n' for ean, type_, q in rows)
    else:
        text = "product_ean13,type,quantity\n" + "".join(",".join(row) + "\n" for row in rows)
    file = tmp_path / "rows"
    file.write_text(text)
    given = ("-", text) if form == "standard input" else (str(file), None)
    tried = await line.run("movement", "import", given[0], "--dry-run", "--json", typed=given[1])
    assert (tried.code, tried.json["accepted"], await line.server.stock(code)) == (7, 2, 0)
    done = await line.run("movement", "import", given[0], typed=given[1])
    assert done.code == 7
    assert done.rows[0] == ["ROW", "STATUS", "WHY"]
    assert [row[:2] for row in done.rows[1:]] == [["2", "422"], ["3", "422"]]
    assert "available 2.000, requested 99.000" in done.out
    assert done.err == "2 rows booked, 2 refused\n"
    assert await line.server.stock(code) == 1


@pytest.mark.real
async def test_tables_of_spreadsheets_are_imported_after_a_preview(line: Line, new_code: Callable[[], str]) -> None:
    code = new_code()
    products = f"ean13;name;unit;min_stock\n{code};Jam;jar;1,5\n{code};Jam;jar;1\n"
    preview = await line.run("product", "import", "-", "--dry-run", typed=products)
    assert preview.code == 7
    assert preview.rows[:2] == [
        ["ROW", "EAN13", "NAME", "UNIT", "MINIMUM", "CATEGORY", "STATUS", "WHY"],
        ["1", code, "Jam", "jar", "1.5", "", "201", ""],
    ]
    assert preview.err == "1 row would be created, 1 would be refused\n"
    done = await line.run("product", "import", "-", typed=products)
    assert (done.code, done.err) == (7, "1 row created, 1 refused\n")
    assert done.rows[1] == ["2", "409", f"there is a product {code} already"]
    movements = f"product_ean13;type;quantity\n{code};in;2,5\n"
    preview = await line.run("movement", "import", "-", "--dry-run", typed=movements)
    assert preview.rows[1] == ["1", code, "in", "2.5", "2.5", "201", ""]
    assert (await line.run("movement", "import", "-", typed=movements)).code == 0
    assert await line.server.stock(code) == 2.5
    exported = f"ean13,name,unit,current_stock,active\n{new_code()},'=Jam,jar,3,true\n"
    done = await line.run("product", "import", "-", typed=exported)
    said, *more = done.err.splitlines()
    assert (done.code, said, more[0]) == (0, "1 row created, 0 refused", "without effect: active, current_stock")
    assert "current_stock was not booked" in more[1]


@pytest.mark.real
async def test_reports_come_as_tables_and_as_csv(line: Line, code: str) -> None:
    await line.server.create(code, min_stock=4)
    await line.server.moved("in", 2, code)
    for name in ("stock", "low-stock", "consumption", "shopping-list"):
        table, csv = [await line.run("report", name, *more) for more in ((), ("--csv",))]
        assert (table.code, csv.code) == (0, 0)
        assert code in {row[0] for row in table.rows}
        assert code in csv.out
        assert "ean13" in csv.out.splitlines()[0]
    [found] = [row for row in (await line.run("report", "shopping-list")).rows if row[0] == code]
    assert found[3:] == ["6", "2", "4"]


@pytest.mark.real
async def test_a_list_that_is_cut_says_so(line: Line, code: str) -> None:
    await line.server.create(code)
    for amount in (1, 2):
        await line.server.moved("in", amount, code)
        assert (await line.server.post(f"/products/{code}/count", {"counted": amount})).status == 200
    for command in ("movement list", "report stocktakes"):
        listing = (*command.split(), "--ean", code)
        cut, whole = await line.run(*listing, "--limit", "1"), await line.run(*listing, "--limit", "0")
        assert (len(cut.rows), cut.err) == (2, "there are more than these 1: see --limit\n"), command
        assert (len(whole.rows) > 2, whole.err) == (True, ""), command


@pytest.mark.real
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pantry mov", "movement"),
        ("pantry product show 400", FLOUR),
        ("pantry category edit Bak", "Baking"),
        ("pantry report sh", "shopping-list"),
    ],
)
async def test_completion_offers_commands_and_names_of_the_server(line: Line, kept: str, words: str, offered: str) -> None:
    del kept
    asking = {"_PANTRY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = await line.run(**asking)
    assert result.out == f"plain,{offered}\n"


# Scan


@pytest.mark.parametrize(
    ("typed", "meaning"),
    [
        (FLOUR, ScannedCode(FLOUR)),
        (f"  {FLOUR}\t", ScannedCode(FLOUR)),
        (f"?{FLOUR}", ScannedCode(FLOUR, lookup=True)),
        (f"? {FLOUR}", ScannedCode(FLOUR, lookup=True)),
        ("036000291452", ScannedCode("036000291452")),
        ("]E0036000291452", ScannedCode("036000291452")),
        ("96385074", ScannedCode("96385074")),
        ("3", Quantity(3)),
        ("1.5", Quantity(1.5)),
        ("IN", Direction.IN),
        ("out", Direction.OUT),
        ("u", Undo()),
        ("undo", Undo()),
        (" ", None),
    ],
)
async def test_each_typed_line_has_a_meaning(typed: str, meaning: object) -> None:
    assert understood(typed) == meaning


@pytest.mark.parametrize("typed", ["4006381333932", "40170726", "x", "0", "-1", "1.0005", "?", "1e400", "NaN"])
async def test_a_line_without_a_meaning_is_refused(typed: str) -> None:
    """This includes eight digits whose last one does not fit: they are not a quantity."""
    with pytest.raises(ValueError, match=r".+"):
        understood(typed)


@pytest.mark.real
async def test_a_scanner_books_each_line_at_once_and_continues_after_a_failure(line: Line, new_code: Callable[[], str]) -> None:
    flour, milk = new_code(), new_code()
    await line.server.create(flour, name="Flour", min_stock=8)
    await line.server.create(milk, name="Milk", unit="l")
    await line.server.moved("in", 10, flour)
    async with running("scan", url=None, home=line.home, env=line.env, program="pantry", typed=True) as run:
        await run.type(f"{flour}\n")
        await run.until("out 1\tFlour\t9 kg\n")
        assert await line.server.stock(flour) == 9
        await run.type(f"{flour}\r\n?{flour}\nin\n1.5\n{milk}\nu\nu\nu\n{new_code()}\nout\n")
        await run.type(f"{milk}\nnonsense\n2\n{flour}")  # without an end of line
        run.end_input()
        result = await run.result()
    assert [tuple(row) for row in result.rows[1:]] == [
        ("out 1", "Flour", "8 kg", "LOW"),
        ("look", "Flour", "8 kg", "LOW"),
        ("in 1.5", "Milk", "1.5 l"),
        ("undo 1.5", "Milk", "0 l", "LOW"),
        ("undo 1", "Flour", "9 kg"),
        ("undo 1", "Flour", "10 kg"),
        ("out 2", "Flour", "8 kg", "LOW"),
    ]
    assert result.code == 7
    assert "no product has the code" in result.err
    assert "insufficient stock: available 0.000, requested 1.500" in result.err
    assert "'nonsense' is not a number" in result.err
    assert "3 lines of 15 failed" in result.err


@pytest.mark.real
async def test_codes_are_assigned_and_a_scanned_case_books_its_factor(line: Line, new_code: Callable[[], str]) -> None:
    jar = await line.json("product", "add", "--name", "Jam", "--unit", "jar")
    other = new_code()
    assert (jar["ean13"][:2], jar["current_stock"]) == ("29", 0)
    assert (await line.json("code", "assign", other, jar["ean13"], "--factor", "6"))["factor"] == 6
    result = await line.run("scan", "--in", "--quantity", "2", "--json", typed=f"{other}\n?{other}\n")
    said = [json.loads(text) for text in result.out.splitlines()]
    assert [(one["did"], one["ean13"], one["stock"]) for one in said] == [("in", jar["ean13"], 12), ("look", jar["ean13"], 12)]
    taken = await line.run("code", "assign", other, FLOUR)
    assert taken.code != 0
    assert (await line.run("code", "remove", other)).code == 0
    assert (await line.run("code", "show", other)).code == 3


@pytest.mark.real
async def test_a_scanner_s_lines_have_documents(line: Line, code: str) -> None:
    await line.server.create(code, name="Flour")
    typed = f"{code}\n2\nfoo\nu\n0,5\n]C1010{code}10LOT-96385074\nLOT-{code}\n]C110{code}\n1,000\n1_0\n"
    result = await line.run("scan", "--in", "--quantity", "6", "--json", typed=typed)
    said = [json.loads(text) for text in result.out.splitlines()]
    assert (result.code, [one["did"] for one in said]) == (7, ["in", "set", None, "undo", "set", "in", *[None] * 4])
    assert (said[0]["stock"], said[0]["low"], said[0]["movement"]["quantity"], said[3]["stock"]) == (6, False, 6, 0)
    assert (said[4]["quantity"], said[5]["stock"], await line.server.stock(code)) == (0.5, 0.5, 0.5)
    assert "write 1000 or 1.000" in said[-2]["error"]


@pytest.mark.real
async def test_a_booking_whose_answer_is_lost_is_repeated_under_its_key_and_booked_once(line: Line, code: str) -> None:
    """A server between that passes the first booking on and answers 503."""
    await line.server.create(code)
    keys: list[str] = []

    async def passed(request: web.Request) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name in {"Content-Type", "Idempotency-Key"}}
        async with line.server.http.request(
            request.method, line.server.url + request.path_qs, data=await request.read(), headers=headers
        ) as answer:
            body = await answer.read()
        if request.method == "POST":
            keys.append(request.headers["Idempotency-Key"])
            if len(keys) % 2:
                return web.json_response({"error": "gone"}, status=503)
        return web.Response(body=body, status=answer.status, content_type=answer.content_type)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", passed)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        result = await line.run("scan", "--in", "--json", typed=f"{code}\n{code}\n", PANTRY_URL=url)
    finally:
        await runner.cleanup()
    assert (result.code, [json.loads(text)["stock"] for text in result.out.splitlines()]) == (0, [1, 2])
    assert (keys[0] == keys[1], keys[2] == keys[3], len(set(keys))) == (True, True, 2)
    assert await line.server.stock(code) == 2


@pytest.mark.real
async def test_a_scanner_names_lines_that_were_not_booked_while_the_server_is_away(line: Line, code: str) -> None:
    result = await line.run("scan", typed=f"{code}\n", PANTRY_URL="http://127.0.0.1:1")
    assert (result.code, result.out) == (7, "")
    assert f"error: {code}: cannot reach http://127.0.0.1:1" in result.err


# Watch


@pytest.mark.real
async def test_watch_shows_events_and_ends_after_their_number(line: Line, code: str) -> None:
    await line.server.create(code, min_stock=1)
    wanted = ("--event", "stock", "--event", "low_stock", "--count", "3", "--json")
    async with running("watch", *wanted, url=None, home=line.home, env=line.env, program="pantry") as run:
        await run.until("following")
        await line.server.moved("in", 2, code)
        await line.server.moved("in", 1, code)
        result = await run.result()
    said = [json.loads(text) for text in result.out.splitlines()]
    assert (result.code, [one["event"] for one in said]) == (0, ["stock", "low_stock", "stock"])
    assert [one["data"]["current_stock"] for one in said] == [2, 2, 3]


@pytest.mark.real
async def test_watch_does_not_wait_for_a_server_that_was_never_there(line: Line) -> None:
    result = await line.run("watch", PANTRY_URL="http://127.0.0.1:1")
    assert (result.code, result.out) == (Unavailable.exit_code, "")
    assert "pantry up" in result.err
