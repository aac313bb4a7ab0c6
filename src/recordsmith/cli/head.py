"""`recordsmith head`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all


def head(
    paths: Paths,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.", min=0, metavar="N")] = 5,
    split: Split = None,
    json: Json = False,
) -> None:
    """Show the first examples of a dataset, readable.

    Example: `recordsmith head out -n 3`
    """
    from recordsmith.cli.examples import describe, to_document  # NumPy: not for --help

    documents = []
    shown = 0
    for position, record in enumerate(islice(rs.open(one_or_all(paths), split).records(), count)):
        if json:
            documents.append({"position": position, **to_document(record)})
        else:
            print(console.bold(f"record {position}") + f"  {console.size(len(record))}")
            for line in describe(record):
                print(f"  {line}")
        shown += 1
    if json:
        console.print_json({"records": documents})
    elif count and not shown:
        print("there are no records")
