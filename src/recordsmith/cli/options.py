"""Arguments and options that several commands share, and the records that options choose."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from recordsmith.cli.function_options import OptionsOf
from recordsmith.support.errors import OptionError, option

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
Source: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="Class folders, images and masks, VOC, COCO or YOLO annotations, a table, tar "
        "files, a folder of TensorFlow Datasets or LeRobot, or TFRecord shards.",
        metavar="SOURCE",
        show_default=False,
    ),
]
SourceOptions: TypeAlias = Annotated[
    dict[str, Any],
    OptionsOf(
        "detect sources.formats:SourceOptions",
        "The source",
        {"Options": "format"},
        formats="sources.formats:formats_with",
    ),
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
        help="Only the records at these positions, such as 9 or 143,10-20; or those that a file "
        "lists: @positions.txt.",
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


def one_or_all(paths: list[str]) -> str | list[str]:
    """Return a single path as a string: a folder with a manifest is more than its shards."""
    return paths[0] if len(paths) == 1 else paths


def check_html(path: str | None, *, overwrite: bool) -> None:
    """Raise before the work begins if the page cannot be written."""
    if path is None:
        if overwrite:
            raise OptionError(f"{option('overwrite')} needs {option('html')}", option="overwrite")
        return
    from recordsmith.stores import as_location
    from recordsmith.viewing import check_html_path

    check_html_path(as_location(path), overwrite=overwrite)


def title_of(paths: list[str]) -> str:
    """Return the title of a page about these paths."""
    more = len(paths) - 1
    return f"{paths[0]} and {more:,} more" if more else paths[0]
