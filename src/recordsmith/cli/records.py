"""`recordsmith head`, `sheet` and `export`, which have options that choose records."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, At, Json, Paths, Split, Where, argument, one_or_all
from recordsmith.cli.parsing import names_findings, parse_positions
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.problems import MAX_PROBLEMS
from recordsmith.support.reports import show_command

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset
    from recordsmith.exporting import ExportReport

_PRINTED_COUNT = 5  # without options
_DRAWN_COUNT = 30
_MAX_IN_TERMINAL = 300

_OnePath: TypeAlias = Annotated[
    str,
    argument(
        "PATH",
        "One TFRecord file or folder; for several files, a quoted pattern such as "
        "'data/*.tfrecord'.",
    ),
]


def _number(least: int, text: str, *names: str) -> Any:
    """Return the option of a number of records."""
    return typer.Option(*names, help=text, min=least, metavar="N", rich_help_panel=WHICH)


def head(
    paths: Paths,
    *,
    count: Annotated[
        int | None, _number(0, "The first N records. [default: 5; all with --at]", "-n", "--count")
    ] = None,
    at: At = None,
    where: Where = None,
    split: Split = None,
    json: Json = False,
) -> None:
    """Of records that are not Examples, the first bytes are printed.

    Example: `recordsmith head out -n 3`

    Selected records: `recordsmith head out --at 143,9`

    Filter: `recordsmith head out --where 'image/class/label == 3'`
    """
    from recordsmith.cli import record_text
    from recordsmith.dataset import records_of, to_document

    chosen = chosen_records(one_or_all(paths), split, at, where)
    records: Any = zip(chosen.positions, records_of(chosen.dataset).located_records(), strict=False)
    if at is not None and not names_findings(at):  # in the order as typed
        order = {number: rank for rank, number in enumerate(dict.fromkeys(parse_positions(at)))}
        if [*order] != sorted(order):
            records = sorted(records, key=lambda numbered: order[numbered[0]])
    elif count is None:
        count = _PRINTED_COUNT
    documents = []
    is_empty = True
    for position, (_, _, record) in islice(records, count):
        is_empty = False
        if json:
            documents.append({"position": position, **to_document(record)})
        else:
            print(console.bold(f"record {position}") + f"  {console.size(len(record))}")
            for line in record_text.describe(record):
                print(f"  {line}")
    if json:
        console.print_json({"records": documents})
    elif count != 0 and is_empty:
        print("no records" if where is None else "no record matches")


def sheet(
    path: _OnePath,
    options: Annotated[dict[str, Any], OptionsOf("sheet", panels={WHICH: "seed"})],
    out: Annotated[
        str | None,
        argument("OUT", "The file to write: an image, .png or .jpg, or a page, .html."),
    ] = None,
    *,
    terminal: bool = False,
    count: Annotated[
        int | None,
        _number(1, "N records, evenly spread. [default: 30; all with --at]", "-n", "--count"),
    ] = None,
    sample: Annotated[int | None, _number(1, "N random records.")] = None,
    seed: int | None = None,
    split: Split = None,
    at: At = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Example: `recordsmith sheet out sheet.png --split train -n 24`

    Selected records: `recordsmith sheet out sheet.png --at 143,9`

    Sample: `recordsmith sheet out sheet.png --sample 30 --seed 1`

    In a terminal: `recordsmith sheet out --terminal -n 6`

    Args:
        terminal: draw in the terminal instead of a file.
        seed: random seed of --sample. [default: 0]
    """
    if (out is None) != terminal or (terminal and (options or json)):
        raise OptionError(
            f"pass either {option('out')} or {option('terminal')}"
            if (out is None) != terminal
            else f"{option('terminal')} excludes the options of a file",
            option="terminal",
        )
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
        count = sample or (_DRAWN_COUNT if at is None else len(dataset))
    drawn_seed = None if sample is None else seed or 0
    if out is None:
        from recordsmith.cli.half_blocks import print_tiles
        from recordsmith.viewing import draw_tiles

        count = min(count, _MAX_IN_TERMINAL)
        print_tiles(draw_tiles(dataset, split=split, count=count, seed=drawn_seed))
        return
    report = rs.sheet(dataset, out, split=split, count=count, seed=drawn_seed, **options)
    if positions:
        report.positions = [positions[row] for row in report.positions]
    if json:
        console.print_json(report.to_json())
        return
    drawn = console.count(len(report.positions), "record")
    size = f"{report.width}x{report.height} pixels"
    title = f"drew {drawn} into {console.printable(str(report.path))}"
    console.print_line(f"{title}, {size}" if report.height else title, title=title)
    console.print_list(f"{report.problem_count:,} could not be drawn", report.problems)
    console.print_list("masks that are not drawn", report.mask_problems)


def export(
    path: _OnePath,
    out: str,
    options: Annotated[
        dict[str, Any], OptionsOf("export", formats="exporting.export_dataset:formats_with")
    ],
    *,
    split: Split = None,
    at: At = None,
    where: Where = None,
    restore_types: Annotated[
        bool | None,
        typer.Option(
            "--restore-types/--stored-types",
            help="the types of the table that was packed, or those of the "
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

    Args:
        out: the folder to write.
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
    console.print_result(report, lambda: _print_export_report(report), json=json)
    if report.skipped_positions and not json:
        command = chosen.command([path], split, report.skipped_positions)
        console.print_line(f"show it: `{command}`", "  ")


def _print_export_report(report: ExportReport) -> None:
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
            more = ["…"] if number > len(lines) == MAX_PROBLEMS else []
            console.print_list(title, [*lines, *more], MAX_PROBLEMS + 1)


# -- which records ---------------------------------------------------------------------------------


class _ChosenRecords(NamedTuple):
    """The records that the options choose, and their positions in the dataset as opened."""

    dataset: Dataset
    positions: Sequence[int]

    def command(self, paths: Sequence[str], split: str | None, rows: Sequence[int]) -> str:
        """Return the command that shows some records of `dataset`."""
        return show_command(paths, [self.positions[row] for row in rows], split)


def chosen_records(
    paths: str | list[str], split: str | None, at: str | None, where: str | None
) -> _ChosenRecords:
    """Open paths and apply --at and --where; positions count in the dataset as opened.

    Raises:
        OptionError: a position is not below the number of records, or both options are given.
    """
    if at is not None and where is not None:
        raise OptionError(
            f"{option('at')} and {option('where')} exclude each other",
            option="at",
            remedy="Pass only one of them.",
        )
    opened = rs.open(paths, split)
    if where is not None:
        matching = opened.filter(where)
        return _ChosenRecords(matching, _positions_in(opened, matching))
    if at is None:
        return _ChosenRecords(opened, range(sys.maxsize))
    if names_findings(at):
        positions = _found_in(opened, at)
        return _ChosenRecords(opened.select(positions), positions)
    positions = sorted({*parse_positions(at)})
    count = len(opened)
    if positions[-1] >= count:
        of_split = "" if split is None else f" in {split}"
        raise OptionError(
            f"there is no record {positions[-1]:,}{of_split}",
            option="at",
            value=at,
            expected=f"positions from 0 to {count - 1:,}" if count else "a dataset with records",
        )
    return _ChosenRecords(opened.select(positions), positions)


def _found_in(opened: Dataset, file: str) -> list[int]:
    """Return the positions in `opened` of the records of a file of findings."""
    import numpy as np

    from recordsmith.dataset import RecordPositions, read_findings

    findings = read_findings(file, "at")
    whole = RecordPositions.of(opened)
    findings.check_dataset(whole.digest)
    found = np.array([place.position for place in findings if place.position is not None], int)
    return [*map(int, np.flatnonzero(np.isin(whole.in_dataset(opened), found)))]


def _positions_in(opened: Dataset, selected: Dataset) -> list[int]:
    """Return the positions in `opened` of the records that are selected from it."""
    import numpy as np

    from recordsmith.dataset import records_of

    positions, whole = records_of(selected).selection.all(), records_of(opened)
    if not whole.has_all:
        known = whole.selection.all()
        order = np.argsort(known)
        positions = order[np.searchsorted(known, positions, sorter=order)]
    return list(map(int, positions))
