"""`recordsmith index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, SplitName, one_or_all

if TYPE_CHECKING:
    from recordsmith.dataset import IndexReport


_LISTED = 10


def index(
    paths: Paths,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="recordsmith: binary indexes in a hidden folder. dali: a text file NAME.idx per "
            "shard, for NVIDIA DALI and the tfrecord package.",
            metavar="FORMAT",
        ),
    ] = "recordsmith",
    to: Annotated[
        str | None,
        typer.Option(
            help="dali: folder of the text files. [default: next to the shards]",
            metavar="FOLDER",
        ),
    ] = None,
    split: SplitName = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace index files that differ."),
    ] = False,
    json: Json = False,
) -> None:
    """Write indexes, which make random access to records fast.

    recordsmith builds its own indexes when it first needs them; this builds them in advance.

    Example: `recordsmith index out --format dali`
    """
    with console.progress_bar("indexing", of_bytes=True, speed=False) as progress:
        options: dict[str, Any] = {"format": format_, "to": to, "overwrite": overwrite}
        report = rs.index(one_or_all(paths), split, progress=progress, **options)
    if json:
        console.print_json(report.to_json())
    else:
        print_index_report(report)


def print_index_report(report: IndexReport) -> None:
    """Print what was written."""
    of = (
        f"{console.count(report.record_count, 'record')} in "
        f"{console.count(len(report.files), 'shard')}"
    )
    old_count = len(report.files) - report.new_count
    if report.new_count:
        done = console.bold(f"wrote {console.count(report.new_count, 'index', 'indexes')}")
        print(f"{done}, of {of}" + (f"; {old_count:,} were up to date" if old_count else ""))
    else:
        print(f"{console.bold('nothing to do')}: the indexes of {of} are up to date")
    for file in report.files[:_LISTED]:
        console.print_path(file.path, "  ")
    if len(report.files) > _LISTED:
        count = len(report.files)
        print(f"  {console.and_more(count - _LISTED, count, _LISTED)}")
