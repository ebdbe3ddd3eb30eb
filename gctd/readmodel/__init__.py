"""The tracker's read model: repositories, tasks, analyses, workers."""

from gctd.readmodel.model import MODEL

__all__ = ["MODEL"]
