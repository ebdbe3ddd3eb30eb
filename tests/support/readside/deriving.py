"""Read models whose handlers end their process or give no changes: processes that derive rows load this module alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import cast

import attrs

from eventlog import Commit
from projections.model import Change, Handler, Put
from tests.support.readside import ledger
from tests.support.readside.ledger import MODEL, Account


def deadly(commit: Commit) -> Iterable[Change]:
    """Ends the process that it is called in, at an account of that owner; a test must not be it."""
    state: Account = commit.state
    if state.owner == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return ledger.account_changes(commit)


def misfit(commit: Commit) -> Iterable[object]:
    """The result of a handler with a fault for accounts whose owners name it, the changes of the account for all others."""
    account, owner = commit.aggregate.id, commit.state.owner
    faults: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "a generator": lambda: ledger.account_changes(commit),
        "a row that is none": lambda: Put(ledger.ACCOUNTS, None),  # type: ignore[arg-type]
        "a generator as value": lambda: Put(ledger.ACCOUNTS, (account, (text for text in owner), 0, False, commit.at, "{}")),
        "a decimal number": lambda: Put(ledger.ACCOUNTS, (account, Decimal(5), 0, False, commit.at, "{}")),
    }
    return [faults[owner]()] if owner in faults else ledger.account_changes(commit)


MISFITS = ["nothing", "a generator", "a row that is none", "a generator as value", "a decimal number"]
DEADLY, MISFIT = (
    attrs.evolve(
        MODEL,
        projections=(
            attrs.evolve(MODEL.projections[0], handlers={ledger.CATEGORY: cast("Handler", handler)}),
            *MODEL.projections[1:],
        ),
    )
    for handler in (deadly, misfit)
)
PLACE_OF_DEADLY, PLACE_OF_MISFIT = (f"{__name__}:{name}" for name in ("DEADLY", "MISFIT"))
