"""`recordsmith schema`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Paths, Split, one_or_all
from recordsmith.files import check_target


def schema(
    paths: Paths,
    split: Split = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="Write it to this file. [default: standard output]", metavar="FILE"
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Write what the records have in common as a JSON file of rules, to be edited by hand.

    `recordsmith verify --schema FILE` holds records against it.

    Example: `recordsmith schema out -o schema.json`
    """
    if out is not None:
        check_target(out, overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        found = rs.schema(one_or_all(paths), split, progress=progress)
    if out is None:
        console.print_json(found.to_json())
        return
    path = found.save(out, overwrite=overwrite)
    count = sum(map(len, found.sections.values()))
    print(f"{console.printable(str(path))}: rules of {console.count(count, 'feature')}")
