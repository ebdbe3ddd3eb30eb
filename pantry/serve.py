"""`pantry serve`: the ledger as one process."""

from __future__ import annotations

from http import HTTPStatus
from importlib.metadata import version

import attrs

from eventlog import PersonalDataCipher
from eventlog.admin import Declarations, load_declarations
from eventlog.jetstream import Connection, JetStreamKeyring
from httpkit import Edge
from pantry.commands.execution import Execution
from pantry.commands.imports import Imports
from pantry.commands.pantry import Pantry
from pantry.erasures import Erasures
from pantry.http.api import TABLE, pages
from pantry.http.events import show
from pantry.http.services import Services
from pantry.readmodel import MODEL
from pantry.readmodel.changes import DECIDERS, edits
from pantry.readmodel.model import ACCESS
from pantry.readmodel.queries import PantryQueries
from pantry.settings import Settings
from servicekit import Part, Parts, Running, Service
from servicekit.access import Devices

KEYS, KEY_SUBJECTS = "PANTRY_KEYS", "pantry.key"
"""The stream with the keys of persons, and the beginning of its subjects."""


def _people(connection: Connection) -> PersonalDataCipher:
    return PersonalDataCipher(JetStreamKeyring(connection, KEYS, KEY_SUBJECTS))


def _declared(settings: Settings) -> Declarations:
    overrides = MODEL.overrides(lambda setting: getattr(settings, setting.key))
    return load_declarations(replicas=settings.replicas, overrides=overrides).only(MODEL.stream, KEYS)


def _parts(running: Running, settings: Settings) -> Parts:
    people, side, access = running.people, running.side, running.access
    assert people is not None, "the service has a keyring"
    assert access is not None, "the service has tokens"
    queries = PantryQueries(running.snapshots, people)
    erasures = Erasures(people, queries, side)
    execution = Execution(running.log, side.commands, now=side.broker.clock.now, trouble=side.trouble)
    pantry = Pantry(execution, queries, caught_up=side.catch_up)
    return Parts(
        services=Services(
            **attrs.asdict(running, recurse=False),
            pantry=pantry,
            imports=Imports(execution, pantry),
            queries=queries,
            erasures=erasures,
            devices=Devices(access),
            public_url=settings.public_url,
        ),
        parts=[Part("erasures", erasures.run, note=erasures.note, applied=erasures.applied)],
    )


SERVICE = Service(
    model=MODEL,
    deciders=tuple(DECIDERS.values()),
    routes=TABLE,
    show=show,
    needs_previous_state=edits,
    pages=pages(),
    tokens=ACCESS,
    settings=Settings,
    edge=Edge(
        title="pantry",
        version=version("gctd"),
        description="A stock ledger: products by EAN-13, movements in and out, never below zero.",
        error_key="error",
        invalid=HTTPStatus.UNPROCESSABLE_ENTITY,
        session_path="/api/v1/session",
    ),
    declared=_declared,
    people=_people,
    parts=_parts,
)

serve = SERVICE.serve
