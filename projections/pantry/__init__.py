"""The pantry's read model: categories, products with their versions, movements."""

from projections.pantry.model import MODEL

__all__ = ["MODEL"]
