"""`recordsmith export`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, OnePath, Split, parse_size
from recordsmith.cli.wording import in_options


def export(
    path: OnePath,
    out: Annotated[
        str, typer.Argument(help="The folder to make.", metavar="OUT", show_default=False)
    ],
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            help="folder, voc, coco, yolo, csv, parquet, webdataset or npz.",
            metavar="FORMAT",
        ),
    ] = "folder",
    split: Split = None,
    shard_size: Annotated[
        str | None,
        typer.Option(
            help="Of webdataset: about how large a tar shall be. [default: 256MB]", metavar="SIZE"
        ),
    ] = None,
    skip_errors: Annotated[
        bool,
        typer.Option(
            "--skip-errors",
            help="Leave out records that the format cannot hold, and report them. A damaged shard "
            "stops the job all the same: `recordsmith salvage` comes first.",
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the export that is there.")
    ] = False,
    json: Json = False,
) -> None:
    """Write records back as files that other tools read: folders, annotations, tables, archives.

    Pictures come out byte for byte. A name that a file system would not take is changed and
    reported. OUT appears when all of it is there; a job that is stopped leaves nothing behind.

    Example: `recordsmith export out pictures --as folder`
    """
    with console.progress_bar("exporting") as progress:
        report = rs.export(
            path,
            out,
            as_,
            split=split,
            shard_size_bytes=None if shard_size is None else parse_size(shard_size, "--shard-size"),
            on_error="skip" if skip_errors else "stop",
            overwrite=overwrite,
            progress=progress,
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_export_report(report)


def print_export_report(report: rs.ExportReport) -> None:
    """The summary of a job, in a few lines."""
    what = f"{console.count(report.record_count, 'record')} as {report.format}"
    into = console.place(report.file_count, "file", report.folder)
    title = console.bold(f"exported {what} into {into}")
    console.print_summary(title, report.splits, console.size(report.size_bytes))
    changes = [
        f"{'' if change.position is None else f'record {change.position}: '}"
        f"{change.name} is {change.file}"
        for change in report.changed_names
    ]
    console.print_list(f"changed names, {len(changes):,}", changes)
    left_out = [
        f"{key} of {console.count(records, 'record')}" for key, records in report.left_out.items()
    ]
    console.print_list(f"features that {report.format} has no place for", left_out)
    console.print_list(f"skipped {len(report.skipped):,}", [*map(in_options, report.skipped)])
    console.print_list(f"problems, {len(report.problems):,}", report.problems)
