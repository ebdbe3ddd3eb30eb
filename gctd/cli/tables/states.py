"""States in their colours."""

from __future__ import annotations

from terminalkit.display import Cell, Painted

PHASE_COLOURS = {
    "completed": "green",
    "ready": "green",
    "idle": "green",
    "busy": "cyan",
    "running": "cyan",
    "pending": "yellow",
    "paused": "yellow",
    "draining": "yellow",
    "full": "red",
    "failed": "red",
    "expired": "red",
    "lost": "red",
    "cancelled": "red",
    "deleted": "red",
    "error": "red",
    "gone": "red",
}
"""The colour of a state; one that is not here has none."""


def state_cell(state: str) -> Cell:
    """A state in its colour."""
    colour = PHASE_COLOURS.get(state)
    return state if colour is None else Painted(state, colour)
