"""`recordsmith append`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, WritingThreads, one_or_all


def append(
    paths: Paths,
    out: Annotated[
        str,
        typer.Argument(
            help="The folder of the dataset that gets the records.",
            metavar="OUT",
            show_default=False,
        ),
    ],
    split: Annotated[
        str | None,
        typer.Option(
            help="The split that gets them. [default: that which each file is of]", metavar="NAME"
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also append files that were appended before.")
    ] = False,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Add records to a dataset: new shards beside those that are there.

    All shards of a split are renumbered; schema, class names and manifest stay true. A job that is
    stopped, at any moment, is finished by the same command, and the same files are not appended a
    second time.

    Example: `recordsmith append 'today/*.tfrecord' out --split train`
    """
    with console.progress_bar("appending", of_bytes=True, speed=False) as progress:
        report = rs.append(
            one_or_all(paths), out, split=split, again=again, threads=threads, progress=progress
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_append_report(report)


def print_append_report(report: rs.AppendReport) -> None:
    """The summary of a job, in a few lines."""
    folder = console.printable(str(report.folder))
    what = console.count(report.appended_count, "record")
    if report.is_new:
        title = console.bold(f"appended {what} to {folder}")
    else:
        said = f"nothing to do: these files were appended to {folder} before, {what}"
        title = f"{console.bold(said)}; --again appends them once more"
    console.print_summary(title, report.splits)
    if report.renamed_count and report.is_new:
        print(f"  {console.count(report.renamed_count, 'shard')} renumbered")
    console.print_list("notices", report.notices)
