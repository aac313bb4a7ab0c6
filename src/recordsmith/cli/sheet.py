"""`recordsmith sheet`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, OnePath, Split


def sheet(
    path: OnePath,
    out: Annotated[
        str,
        typer.Argument(
            help="The image file to write: .png or .jpg.", metavar="OUT", show_default=False
        ),
    ],
    count: Annotated[
        int, typer.Option("-n", "--count", help="Number of examples.", min=1, metavar="N")
    ] = 30,
    split: Split = None,
    columns: Annotated[int, typer.Option(help="Examples per row.", min=1, metavar="N")] = 6,
    seed: Annotated[
        int | None,
        typer.Option(help="Choose at random with this seed. [default: evenly spaced]", metavar="N"),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT if it exists.")
    ] = False,
    json: Json = False,
) -> None:
    """Draw a preview of records: images with their classes, boxes and masks.

    Example: `recordsmith sheet out sheet.png --split train -n 24`
    """
    report = rs.sheet(
        path, out, split=split, count=count, columns=columns, seed=seed, overwrite=overwrite
    )
    if json:
        console.print_json(report.to_json())
        return
    drawn = console.count(len(report.positions), "example")
    size = f"{report.width}x{report.height} pixels"
    print(console.bold(f"drew {drawn} into {console.printable(str(report.path))}") + f", {size}")
    console.print_list(f"{len(report.problems):,} could not be drawn", report.problems)
