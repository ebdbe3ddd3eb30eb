"""The tracker's read model: repositories, tasks, analyses, workers."""

from projections.tracker.model import MODEL

__all__ = ["MODEL"]
