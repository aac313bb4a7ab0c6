"""`recordsmith schema`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Paths, Split, one_or_all


def schema(
    paths: Paths,
    split: Split = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="The file to write. [default: standard output]", metavar="FILE"
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
    ] = False,
) -> None:
    """Write what the records have in common as a JSON file of rules.

    Edit the rules as needed. `recordsmith verify PATH --schema FILE` checks records against them.

    Example: `recordsmith schema out -o schema.json`
    """
    if out is not None:
        from recordsmith.stores import as_location  # loads more than `--help` needs

        as_location(out).check_target(overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        found = rs.schema(one_or_all(paths), split, progress=progress)
    if out is None:
        console.print_json(found.to_json())
        return
    found.save(out, overwrite=overwrite)
    count = sum(map(len, found.sections.values()))
    print(f"{console.printable(str(out))}: rules for {console.count(count, 'feature')}")
