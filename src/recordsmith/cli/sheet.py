"""`recordsmith sheet`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, At, Json, OnePath, Split, Where, chosen_records
from recordsmith.errors import OptionError, option

_COUNT = 30  # records that are drawn without options


def sheet(
    path: OnePath,
    out: Annotated[
        str,
        typer.Argument(
            help="The image file to write: .png or .jpg.", metavar="OUT", show_default=False
        ),
    ],
    options: Annotated[dict[str, Any], OptionsOf("sheet")],
    count: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--count",
            help="N records, evenly spread. [default: 30; all with --at]",
            min=1,
            metavar="N",
            rich_help_panel=WHICH,
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="N random records.", min=1, metavar="N", rich_help_panel=WHICH),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Random seed of --sample. [default: 0]", metavar="N", rich_help_panel=WHICH
        ),
    ] = None,
    split: Split = None,
    at: At = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Example: `recordsmith sheet out sheet.png --split train -n 24`

    Selected records: `recordsmith sheet out sheet.png --at 143,9`

    Sample: `recordsmith sheet out sheet.png --sample 30 --seed 1`
    """
    if seed is not None and sample is None:
        raise OptionError(f"{option('seed')} needs {option('sample')}", option="seed")
    if sum(given is not None for given in (count, sample, at)) > 1:
        raise OptionError(
            f"{option('count')}, {option('sample')} and {option('at')} exclude each other",
            option="count",
            remedy="Pass only one of them.",
        )
    dataset: Any = path
    positions: Sequence[int] = ()
    if at is not None or where is not None:
        dataset, positions = chosen_records(path, split, at, where)
        split = None
    if count is None:
        count = sample or (_COUNT if at is None else len(dataset))
    drawn_seed = None if sample is None else seed or 0
    report = rs.sheet(dataset, out, split=split, count=count, seed=drawn_seed, **options)
    if positions:
        report.positions = [positions[place] for place in report.positions]
    if json:
        console.print_json(report.to_json())
        return
    drawn = console.count(len(report.positions), "record")
    size = f"{report.width}x{report.height} pixels"
    title = f"drew {drawn} into {console.printable(str(report.path))}"
    console.print_line(f"{title}, {size}", title=title)
    console.print_list(f"{len(report.problems):,} could not be drawn", report.problems)
