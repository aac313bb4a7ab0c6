"""`recordsmith card`: a description of a dataset for catalogues."""

from __future__ import annotations

from typing import Annotated, Any

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import Json, Paths, one_or_all


def card(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("card")],
    *,
    folder: str | None = None,
    overwrite: bool = False,
    json: Json = False,
) -> None:
    """Writes README.md, whose header the Hub reads, and croissant.json, next to the shards.

    Example: `recordsmith card out --license cc-by-4.0`

    Args:
        folder: where to write the files. [default: next to the shards]
        overwrite: replace existing files.
    """
    dataset = rs.open(one_or_all(paths))
    with console.progress_bar("reading", of_bytes=True) as progress:
        result = rs.card(dataset, **options, progress=progress)
    files = result.save(folder or dataset.shards[0].location.parent, overwrite=overwrite)
    if json:
        console.print_json(result.to_json())
        return
    for file in files:
        console.print_path(str(file))
