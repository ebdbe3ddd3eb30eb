"""A lending library: books are added, lent, returned and removed. docs/second-service.md explains it."""

import sys
from collections.abc import Iterable, Sequence
from http import HTTPStatus

import attrs

import httpkit
from eventlog import Commit, Decider, Registry
from httpkit import Answer, Call, Frame, Route, encode
from projections import Column, Delete, Projection, Put, ReadModel, Table
from servicekit import EventChange, Running, Service, answer

EVENTS = Registry()


@EVENTS.event("BookAdded")
@attrs.frozen
class BookAdded:
    title: str


@EVENTS.event("BookLent")
@attrs.frozen
class BookLent:
    member: str


@EVENTS.event("BookReturned")
@attrs.frozen
class BookReturned:
    member: str


@EVENTS.event("BookRemoved")
@attrs.frozen
class BookRemoved:
    pass


Event = BookAdded | BookLent | BookReturned | BookRemoved


@EVENTS.state("loans.book")
@attrs.frozen
class Book:
    title: str
    borrower: str | None = None
    removed: bool = False


class Refused(Exception):
    status = HTTPStatus.CONFLICT


class Unknown(Exception):
    status = HTTPStatus.NOT_FOUND


def decide(command: Event, book: Book | None) -> Sequence[Event]:
    if isinstance(command, BookAdded):
        if book is not None:
            raise Refused("this id is taken")
        return [command]
    if book is None or book.removed:
        raise Unknown("there is no such book")
    match command:
        case BookReturned(member) if book.borrower != member:
            raise Refused(f"{member} does not have the book")
        case BookLent() | BookRemoved() if book.borrower is not None:
            raise Refused(f"the book is lent to {book.borrower}")
    return [command]


def evolve(book: Book | None, event: Event) -> Book:
    if isinstance(event, BookAdded):
        return Book(event.title)
    assert book is not None, "decide begins a book with BookAdded"
    match event:
        case BookLent(member):
            return attrs.evolve(book, borrower=member)
        case BookReturned():
            return attrs.evolve(book, borrower=None)
        case BookRemoved():
            return attrs.evolve(book, removed=True)


BOOK = Decider("loans.book", decide, evolve, initial=None)

BOOKS = Table("books", (Column("id"), Column("title"), Column("borrower")), key=("id",))
LOANS = Table("loans", (Column("member"), Column("book"), Column("lent_at", "timestamp")), key=("member", "book"))


def book_rows(commit: Commit) -> Iterable[Put | Delete]:
    id_, book = commit.aggregate.id, commit.state
    return [Delete(BOOKS, (id_,)) if book.removed else Put(BOOKS, (id_, book.title, book.borrower))]


def loan_rows(commit: Commit) -> Iterable[Put | Delete]:
    for event in commit.events:
        match event.data:
            case BookLent(member):
                yield Put(LOANS, (member, commit.aggregate.id, commit.at))
            case BookReturned(member):
                yield Delete(LOANS, (member, commit.aggregate.id))


PROJECTIONS = (
    Projection("books", 1, (BOOKS,), {BOOK.category: book_rows}),
    Projection("loans", 1, (LOANS,), {BOOK.category: loan_rows}),
)
MODEL = ReadModel("loans", "LOANS", EVENTS, PROJECTIONS)


@httpkit.message
class BookView:
    id: str = httpkit.member()
    title: str = httpkit.member()
    borrower: str | None = httpkit.member()


@httpkit.message
class Loan:
    member: str = httpkit.member()
    book: str = httpkit.member()
    lent_at: str = httpkit.member()


@httpkit.message
class Add:
    id: str = httpkit.member(pattern="^[a-z0-9]{1,20}$", form="1 to 20 letters and digits")
    title: str = httpkit.member(min_length=1, max_length=200)


@httpkit.message
class OfBook:
    id: str = httpkit.path(pattern="^[a-z0-9]{1,20}$", form="1 to 20 letters and digits")


@httpkit.message
class OfMember(OfBook):
    member: str = httpkit.member(min_length=1, max_length=20)


@httpkit.message
class LoanFilter:
    member: str | None = httpkit.query(default=None, description="only loans of this member")


LOANS_OF = "SELECT member, book, lent_at FROM loans WHERE member = $1 OR $1 IS NULL ORDER BY member, book"


async def list_loans(request: LoanFilter, call: Call[Running]) -> Sequence[Loan]:
    rows = await call.services.fetch(LOANS_OF, request.member)
    return [Loan(**row) for row in rows]


async def show_book(request: OfBook, call: Call[Running]) -> BookView:
    row = await call.services.fetch_one("SELECT id, title, borrower FROM books WHERE id = $1", request.id)
    if row is None:
        raise Unknown("there is no such book")
    return BookView(**row)


async def execute(id_: str, command: Event, call: Call[Running], *, location: str | None = None) -> Answer[BookView]:
    outcome = await call.services.execute(BOOK, id_, command, call)
    book = BookView(id=id_, title=outcome.state.title, borrower=outcome.state.borrower)
    return answer(outcome, book, location=location)


async def add(request: Add, call: Call[Running]) -> Answer[BookView]:
    return await execute(request.id, BookAdded(request.title), call, location=f"/api/books/{request.id}")


async def lend(request: OfMember, call: Call[Running]) -> Answer[BookView]:
    return await execute(request.id, BookLent(request.member), call)


async def give_back(request: OfMember, call: Call[Running]) -> Answer[BookView]:
    return await execute(request.id, BookReturned(request.member), call)


async def remove(request: OfBook, call: Call[Running]) -> Answer[None]:
    outcome = await call.services.execute(BOOK, request.id, BookRemoved(), call)
    return answer(outcome, None)


def show(change: EventChange) -> Iterable[Frame]:
    book = change.after
    yield Frame(change.event.position, "book", encode(BookView(id=change.aggregate.id, title=book.title, borrower=book.borrower)))


ROUTES = [
    Route("GET", "/api/loans", list_loans, summary="List loans"),
    Route("GET", "/api/books/{id}", show_book, summary="Show a book", errors=(404,)),
    Route("POST", "/api/books", add, summary="Add a book", status=201, idempotent=True, errors=(409,)),
    Route("POST", "/api/books/{id}/lend", lend, summary="Lend a book", idempotent=True, errors=(404, 409)),
    Route("POST", "/api/books/{id}/return", give_back, summary="Return a book", idempotent=True, errors=(404, 409)),
    Route("DELETE", "/api/books/{id}", remove, summary="Remove a book", idempotent=True, errors=(404, 409)),
]
SERVICE = Service(model=MODEL, deciders=[BOOK], routes=ROUTES, show=show, events={"book": BookView}, summary="A lending library.")

if __name__ == "__main__":
    sys.exit(SERVICE.main())
