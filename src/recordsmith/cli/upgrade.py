"""`recordsmith upgrade`."""

from __future__ import annotations

from typing import Annotated

import typer

from recordsmith.cli import console


def upgrade(
    folder: Annotated[str, typer.Argument(help="The folder of the dataset.", metavar="FOLDER")],
) -> None:
    """Convert a manifest that an earlier version of recordsmith wrote.

    Reads and changes only `dataset.json`, no shards.

    Example: `recordsmith upgrade out`
    """
    from recordsmith.dataset import upgrade_manifest  # loads NumPy

    is_upgraded = upgrade_manifest(folder)
    done = "converted the manifest" if is_upgraded else "nothing to do: the manifest is up to date"
    print(f"{console.printable(folder)}: {done}")
