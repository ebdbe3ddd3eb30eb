"""`pantry category`: the groups of products."""

from __future__ import annotations

import click

from pantry.cli.completion import category_names
from pantry.cli.session import Session, client_command
from pantry.cli.tables import show_categories
from terminalkit import examples


@click.group()
def category() -> None:
    """List, create and change categories."""


@category.command(
    "list",
    epilog=examples(
        "pantry category list", "pantry category list --json", "pantry category list --json | jq -r '.[] | [.id, .name] | @tsv'"
    ),
)
@client_command()
async def list_categories(session: Session) -> int:
    """List categories by name."""
    return session.show(await session.client.categories(), show_categories)


@category.command(
    "add",
    epilog=examples(
        "pantry category add Baking",
        "pantry category add Baking --description 'flour, sugar, yeast'",
        "pantry category add Baking --json | jq -r .id",
    ),
)
@click.argument("name")
@click.option("--description", default="", help="Description of the category.")
@client_command()
async def add(session: Session, *, name: str, description: str) -> int:
    """Create a category with a NAME that no other has."""
    return session.show_one(await session.client.add_category(name, description), show_categories)


@category.command(
    "edit",
    epilog=examples(
        "pantry category edit Baking --name 'Baking goods'",
        "pantry category edit Baking --description 'flour, sugar, yeast'",
        "pantry category edit Baking --name Cakes --json",
    ),
)
@click.argument("which", metavar="CATEGORY", shell_complete=category_names)
@click.option("--name", help="The new name; the old name is free then.")
@click.option("--description", help="Description of the category.")
@client_command(not_found="pantry category list")
async def edit(session: Session, *, which: str, name: str | None, description: str | None) -> int:
    """Change the category with the name or id CATEGORY. Values without an option stay."""
    changes = {key: value for key, value in {"name": name, "description": description}.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to change: give --name or --description")
    id_ = await session.category_id(which)
    return session.show_one(await session.client.edit_category(id_ or "", changes), show_categories)
