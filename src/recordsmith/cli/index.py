"""`recordsmith index`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all

_LISTED = 10


def index(
    paths: Paths,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="recordsmith: its own, in a hidden folder. dali: a text file NAME.idx for each "
            "shard, for NVIDIA DALI and the tfrecord package.",
            metavar="FORMAT",
        ),
    ] = "recordsmith",
    to: Annotated[
        str | None,
        typer.Option(
            help="Of dali: the folder of the text files. [default: beside the shards]",
            metavar="FOLDER",
        ),
    ] = None,
    split: Split = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace files that hold something else."),
    ] = False,
    json: Json = False,
) -> None:
    """Write down where the records of each shard begin, for random access.

    recordsmith builds its own indexes when they are first needed; here they are built before.

    Example: `recordsmith index out --format dali`
    """
    with console.progress_bar("indexing", of_bytes=True, speed=False) as progress:
        options: dict[str, Any] = {"format": format_, "to": to, "overwrite": overwrite}
        report = rs.index(one_or_all(paths), split, progress=progress, **options)
    if json:
        console.print_json(report.to_json())
    else:
        print_index_report(report)


def print_index_report(report: rs.IndexReport) -> None:
    """What was written, and where."""
    of = (
        f"{console.count(report.record_count, 'record')} in "
        f"{console.count(len(report.files), 'shard')}"
    )
    old_count = len(report.files) - report.new_count
    if report.new_count:
        done = console.bold(f"wrote {console.count(report.new_count, 'index', 'indexes')}")
        print(f"{done}, of {of}" + (f"; {old_count:,} right already" if old_count else ""))
    else:
        print(f"{console.bold('nothing to do')}: the indexes of {of} are right")
    for file in report.files[:_LISTED]:
        print(f"  {console.printable(file.path)}")
    if len(report.files) > _LISTED:
        count = len(report.files)
        print(f"  {console.and_more(count - _LISTED, count, _LISTED)}")
