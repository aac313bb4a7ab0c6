"""Arguments and options that several commands share, and the records that options choose."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

import recordsmith as rs
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.parsing import parse_numbers
from recordsmith.cli.wording import show_command
from recordsmith.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.dataset import Dataset

WHICH, SHARDS = "Which records", "Shards"
"""Panels of the help that several commands share."""

Paths: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="TFRecord files, folders, or quoted patterns such as 'data/*.tfrecord'.",
        metavar="PATH",
        show_default=False,
    ),
]
OnePath: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="One TFRecord file or folder; for several files, a quoted pattern such as "
        "'data/*.tfrecord'.",
        metavar="PATH",
        show_default=False,
    ),
]
Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Class folders, images and masks, VOC, COCO or YOLO annotations, a table, tar "
        "files, a folder of TensorFlow Datasets, or TFRecord shards.",
        metavar="SOURCE",
        show_default=False,
    ),
]
SourceOptions: TypeAlias = Annotated[
    dict[str, Any], OptionsOf("detect sources.detection:SourceOptions", "The source")
]
Out: TypeAlias = Annotated[
    str,
    typer.Argument(help="The folder of the new dataset.", metavar="OUT", show_default=False),
]
Split: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Only this split, or part of one: train, train[:80%]. [default: all]",
        metavar="SPLIT",
        rich_help_panel=WHICH,
    ),
]
At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Only the records at these positions, such as 9 or 143,10-20.",
        metavar="POSITIONS",
        rich_help_panel=WHICH,
    ),
]
Where: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Only records that match, such as 'image/class/label in (1, 2)'.",
        metavar="CONDITION",
        rich_help_panel=WHICH,
    ),
]
Html: TypeAlias = Annotated[
    str | None, typer.Option(help="Also write the report as an HTML page.", metavar="FILE")
]
OverwritePage: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


class ChosenRecords(NamedTuple):
    """The records that the options choose.

    dataset: these records.
    positions: their positions in the dataset as opened, in order.
    """

    dataset: Dataset
    positions: Sequence[int]

    def command(self, paths: Sequence[str], split: str | None, places: Sequence[int]) -> str:
        """Return the command that shows the records at some places of `dataset`.

        Args:
            paths, split: as typed.
        """
        return show_command(paths, [self.positions[place] for place in places], split)


def chosen_records(
    paths: str | list[str], split: str | None, at: str | None, where: str | None
) -> ChosenRecords:
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
        found = opened.filter(where)
        return ChosenRecords(found, _positions_in(opened, found))
    if at is None:
        return ChosenRecords(opened, range(sys.maxsize))
    positions = sorted({*parse_numbers(at, "at")})
    count = len(opened)
    if positions[-1] >= count:
        of_split = "" if split is None else f" in {split}"
        raise OptionError(
            f"there is no record {positions[-1]:,}{of_split}",
            option="at",
            value=at,
            expected=f"positions from 0 to {count - 1:,}" if count else "a dataset with records",
        )
    return ChosenRecords(opened.select(positions), positions)


def _positions_in(opened: Dataset, found: Dataset) -> list[int]:
    """Return the places in `opened` of the records of `found`, which is selected from it."""
    import numpy as np

    from recordsmith.dataset import records_of

    positions, whole = records_of(found).positions.all(), records_of(opened).positions
    if not whole.is_everything:
        known = whole.all()
        order = np.argsort(known)
        positions = order[np.searchsorted(known, positions, sorter=order)]
    return list(map(int, positions))


def one_or_all(paths: list[str]) -> str | list[str]:
    """Return a single path as a string: a folder with a manifest is more than its shards."""
    return paths[0] if len(paths) == 1 else paths


def check_html(path: str | None, *, overwrite: bool) -> None:
    """Raise before the work begins if the page cannot be written."""
    if path is None:
        if overwrite:
            raise OptionError(f"{option('overwrite')} needs {option('html')}", option="overwrite")
        return
    from recordsmith.drawing.html_page import check_html_path  # NumPy only when needed
    from recordsmith.stores import as_location

    check_html_path(as_location(path), overwrite=overwrite)


def title_of(paths: list[str]) -> str:
    """Return the title of a page about these paths."""
    first = paths[0]
    if not PurePath(first).name:  # such as `.`
        from recordsmith.stores import as_folder

        first = as_folder(first).identity.rpartition("/")[2] or first
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
