"""`recordsmith export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import At, Json, OnePath, Split, Where, chosen_records
from recordsmith.errors import MOST_PROBLEMS, SourceError

if TYPE_CHECKING:
    from recordsmith.exporting import ExportReport


def export(
    path: OnePath,
    out: Annotated[
        str, typer.Argument(help="The folder to write.", metavar="OUT", show_default=False)
    ],
    options: Annotated[dict[str, Any], OptionsOf("export")],
    split: Split = None,
    at: At = None,
    where: Where = None,
    restore_types: Annotated[
        bool | None,
        typer.Option(
            "--restore-types/--stored-types",
            help="csv, parquet, feather: the types of the table that was packed, or those of the "
            "records: int64, float32 and bytes. [default: those of the table, where known]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Images are written byte for byte. Names that are not valid file names are changed and
    reported. OUT appears when it is complete; an interrupted job leaves no output.

    Example: `recordsmith export out images --format coco`

    Filter: `recordsmith export out daisies --where 'image/class/text == "daisy"'`
    """
    chosen = chosen_records(path, split, at, where)
    try:
        with console.progress_bar("exporting") as progress:
            report = rs.export(
                chosen.dataset, out, restore_types=restore_types, **options, progress=progress
            )
    except SourceError as error:
        if error.records:
            error.advise(f"`{chosen.command([path], split, error.records)}` shows the first ones.")
        raise
    console.print_result(report, lambda: _print_report(report), json=json)
    if report.skipped_positions and not json:
        command = chosen.command([path], split, report.skipped_positions)
        console.print_line(f"show it: `{command}`", "  ")


def _print_report(report: ExportReport) -> None:
    """Print the summary of a job."""
    records = console.count(report.record_count, "record")
    files = console.count(report.file_count, "file")
    folder = console.printable(str(report.folder))
    title = f"exported {records} to {folder} ({report.format} format, {files})"
    console.print_summary(title, report.splits, console.size(report.size_bytes))
    changes = [
        f"{'' if change.position is None else f'record {change.position}: '}"
        f"{change.name} -> {change.file}"
        for change in report.changed_names
    ]
    console.print_list(f"changed names, {len(changes):,}", changes)
    dropped_features = [
        f"{key} of {console.count(records, 'record')}"
        for key, records in report.dropped_features.items()
    ]
    console.print_list(f"features that {report.format} cannot represent", dropped_features)
    for title, number, lines in (
        (f"skipped {report.skipped_count:,}", report.skipped_count, report.skipped),
        (f"problems, {report.problem_count:,}", report.problem_count, report.problems),
    ):
        with console.not_quiet():
            console.print_list(title, lines, MOST_PROBLEMS, number=number)
