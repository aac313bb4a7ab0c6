"""`recordsmith append`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, WritingThreads, one_or_all

if TYPE_CHECKING:
    from recordsmith.reshaping import AppendReport


def append(
    paths: Paths,
    out: Annotated[
        str,
        typer.Argument(
            help="The dataset to add the records to.",
            metavar="OUT",
            show_default=False,
        ),
    ],
    split: Annotated[
        str | None,
        typer.Option(
            help="The split to add them to; a new name creates a split. [default: the split of "
            "each file]",
            metavar="SPLIT",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Append files even if they were appended before.")
    ] = False,
    no_lock_notice: Annotated[
        bool,
        typer.Option(
            "--no-lock",
            help="For file systems without locks: make sure that no other job changes OUT.",
        ),
    ] = False,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Add records to a dataset as new shards.

    Renumbers the shards of the split and updates schema, class names and manifest. If the command
    is interrupted, rerun it to finish. Files that were appended before are skipped.

    Example: `recordsmith append 'today/*.tfrecord' out --split train`
    """
    with console.progress_bar("appending", of_bytes=True, speed=False) as progress:
        report = rs.append(
            one_or_all(paths),
            out,
            split=split,
            again=again,
            lock=not no_lock_notice,
            threads=threads,
            progress=progress,
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_append_report(report)


def print_append_report(report: AppendReport) -> None:
    """Print the summary of a job."""
    folder = console.printable(str(report.folder))
    what = console.count(report.appended_count, "record")
    if report.is_new:
        title = f"appended {what} to {folder}"
    else:
        done = f"nothing to do: these files were already appended to {folder}, {what}"
        title = f"{done}; use --again to append them once more"
    console.print_summary(title, report.splits)
    if report.renamed_count and report.is_new:
        print(f"  {console.count(report.renamed_count, 'shard')} renumbered")
    console.print_list("notices", report.notices)
