"""The pantry's read model: categories, products with their versions, movements."""

from pantry.readmodel.model import MODEL

__all__ = ["MODEL"]
