"""The aggregate of a personal token: issued, used, revoked; the sessions that browsers opened with it, and codes for devices."""

from __future__ import annotations

from servicekit.access.token.commands import (
    COARSE,
    ClaimPairing,
    CloseSession,
    IssueToken,
    NoSuchToken,
    OfferPairing,
    OpenSession,
    RevokeToken,
    TokenDecider,
    TokenRefused,
    UseToken,
    decide,
    register,
    token_decider,
)
from servicekit.access.token.state import MOST_PAIRINGS, MOST_SESSIONS, SHARED, Session, Token, evolve

__all__ = [
    "COARSE",
    "MOST_PAIRINGS",
    "MOST_SESSIONS",
    "SHARED",
    "ClaimPairing",
    "CloseSession",
    "IssueToken",
    "NoSuchToken",
    "OfferPairing",
    "OpenSession",
    "RevokeToken",
    "Session",
    "Token",
    "TokenDecider",
    "TokenRefused",
    "UseToken",
    "decide",
    "evolve",
    "register",
    "token_decider",
]
