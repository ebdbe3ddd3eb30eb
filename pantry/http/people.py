"""Erasing a person. The name is in the body: paths are in the logs of servers and of what stands before them."""

from __future__ import annotations

from httpkit.messages.fields import member, message
from httpkit.routes import Answer, Call, Route
from pantry.domain.product import CREATED_BY_LENGTH
from pantry.http.services import Services
from servicekit.command_context import context


@message
class Erase:
    """Names a person by what was given as `created_by`."""

    name: str = member(min_length=1, max_length=CREATED_BY_LENGTH, example="anna")


async def erase_person(request: Erase, call: Call[Services]) -> Answer[None]:
    """Erase a person: who booked what, and the notes with it, cannot be read any more, by anybody.

    Upper and lower case are the same. It may be repeated; a person of whom nothing is there is erased. What was booked stays,
    with `[erased]` in these places; what the person books from now on is kept anew.
    """
    sequence = await call.services.erasures.erase(request.name, context(call))
    return Answer(None, sequence=None if sequence is None else await call.services.side.wait_visible(sequence))


ROUTES = (Route("POST", "/api/v1/people:erase", erase_person, summary="Erase a person", tags=("people",), status=204),)
