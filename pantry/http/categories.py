"""Routes of categories."""

from __future__ import annotations

from collections.abc import Sequence

from httpkit import Answer, Call, Route, decode_cursor, member, message, page_of, path, query
from pantry.commands.pantry import CategoryOutcome
from pantry.domain.category import NAME_LENGTH
from pantry.domain.errors import NotFound
from pantry.http.bodies import CategoryBody
from pantry.http.services import Services, version_wanted
from pantry.http.values import CURSOR, naming
from pantry.readmodel.views import CategoryView
from servicekit import answer

PAGE = 1000
"""The longest page of a list, and the length if none is asked for."""
LONGEST_TEXT = 10_000
_ID = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"


@message
class ListCategories:
    """A page of the list of categories."""

    limit: int = query(default=PAGE, ge=1, le=PAGE)
    cursor: str | None = query(default=None, schema=CURSOR, max_length=4096, description="resumes after a page")


@message
class OneCategory:
    """Names a category."""

    id: str = path(pattern=_ID, form="the id of a category, a UUID of version 4")


@message
class NewCategory:
    """A category to be."""

    name: str = naming(NAME_LENGTH, description="unique", example="Baking")
    description: str | None = member(default=None, max_length=LONGEST_TEXT, multiline=True)


@message
class EditedCategory:
    """All values of a category; a missing description becomes empty."""

    id: str = path(pattern=_ID, form="the id of a category, a UUID of version 4")
    name: str = naming(NAME_LENGTH, description="unique", example="Baking")
    description: str | None = member(default=None, max_length=LONGEST_TEXT, multiline=True)


async def list_categories(request: ListCategories, call: Call[Services]) -> Answer[Sequence[CategoryBody]]:
    """Categories by name."""
    found = await call.services.queries.categories(
        after=decode_cursor(request.cursor, tuple[str, str]) if request.cursor is not None else None, limit=request.limit + 1
    )
    page, more = page_of(found, request.limit, lambda category: (category.name_key, category.id))
    return Answer([CategoryBody.of(category) for category in page], cursor=more)


async def create_category(request: NewCategory, call: Call[Services]) -> Answer[CategoryBody]:
    """Create a category. Its name must be free."""
    outcome = await call.services.pantry.create_category(request.name, request.description or "", call.context)
    return _answer(outcome, f"/api/v1/categories/{outcome.state.id}")


async def get_category(request: OneCategory, call: Call[Services]) -> Answer[CategoryBody]:
    """A category."""
    category = await call.services.queries.category(request.id)
    if category is None:
        raise NotFound(f"there is no category {request.id}")
    return Answer(CategoryBody.of(category), etag=str(category.version))


async def edit_category(request: EditedCategory, call: Call[Services]) -> Answer[CategoryBody]:
    """Replace name and description. The old name is free then."""
    outcome = await call.services.pantry.edit_category(
        request.id, request.name, request.description or "", version=version_wanted(call), context=call.context
    )
    return _answer(outcome)


def _answer(outcome: CategoryOutcome, location: str | None = None) -> Answer[CategoryBody]:
    category = CategoryView.of_state(outcome.state)
    return answer(outcome, CategoryBody.of(category), location=location, etag=str(category.version))


ROUTES = (
    Route("GET", "/api/v1/categories", list_categories, summary="List categories", tags=("categories",), csv=CategoryBody),
    Route(
        "POST",
        "/api/v1/categories",
        create_category,
        summary="Create a category",
        tags=("categories",),
        status=201,
        errors=(409,),
        idempotent=True,
    ),
    Route("GET", "/api/v1/categories/{id}", get_category, summary="Look at a category", tags=("categories",), errors=(404,)),
    Route(
        "PUT",
        "/api/v1/categories/{id}",
        edit_category,
        summary="Replace a category",
        tags=("categories",),
        errors=(404, 409, 412),
    ),
)
