"""Erasing a person. The name is in the body, because paths are in the logs of servers and proxies."""

from __future__ import annotations

from httpkit import Answer, Call, Route, Scope, member, message
from pantry.domain.product import CREATED_BY_LENGTH
from pantry.http.services import Services


@message
class Erase:
    """Names a person, by the value of `created_by`."""

    name: str = member(min_length=1, max_length=CREATED_BY_LENGTH, example="anna")


async def erase_person(request: Erase, call: Call[Services]) -> Answer[None]:
    """Erase a person: the person's name and notes in bookings cannot be read any more.

    Upper and lower case are the same. It may be repeated, and a person without data counts as erased. The bookings stay,
    with `[erased]` in these places. Later bookings of the person are kept under a new key.
    """
    return Answer(None, sequence=await call.services.erasures.erase(request.name, call.context))


ROUTES = (
    Route(
        "POST",
        "/api/v1/people:erase",
        erase_person,
        summary="Erase a person",
        tags=("people",),
        status=204,
        scope=Scope.ADMIN,
    ),
)
