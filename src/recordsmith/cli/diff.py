"""`recordsmith diff`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import EngineName, Json, Split, Threads
from recordsmith.cli.report_text import print_report
from recordsmith.engines import parse_engine


def diff(
    a: Annotated[
        str,
        typer.Argument(
            help="A TFRecord file, a folder, or a quoted pattern such as 'data/*.tfrecord'.",
            metavar="A",
            show_default=False,
        ),
    ],
    b: Annotated[
        str, typer.Argument(help="The dataset to compare it with.", metavar="B", show_default=False)
    ],
    by: Annotated[
        str | None,
        typer.Option(
            help="The feature that identifies records, such as id. [default: detected]",
            metavar="KEY",
        ),
    ] = None,
    split: Split = None,
    engine: EngineName = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Compare the records of two datasets, in any order and any shards.

    Exits with 1 if they differ.

    Example: `recordsmith diff out old`

    By a feature: `recordsmith diff a.tfrecord b.tfrecord --by id`
    """
    with console.progress_bar("comparing", of_bytes=True, again="reading what differs") as progress:
        on = parse_engine(engine)
        report = rs.diff(a, b, split=split, by=by, engine=on, threads=threads, progress=progress)
    if json:
        console.print_json(report.to_json())
    else:
        print_report(report.content())
    if not report.is_equal:
        raise typer.Exit(1)
