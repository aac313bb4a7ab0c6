"""Arguments and options that several commands share, and the records that options choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import typer

from recordsmith.cli.function_options import OptionsOf
from recordsmith.support.errors import OptionError, option

WHICH, SHARDS = "Which records", "Shards"
"""Panels of the help that several commands share."""


def argument(metavar: str, text: str) -> Any:
    """Return an argument with its name and its help."""
    return typer.Argument(help=text, metavar=metavar, show_default=False)


def _which(metavar: str, text: str) -> Any:
    """Return an option that chooses records."""
    return typer.Option(help=text, metavar=metavar, rich_help_panel=WHICH)


Paths: TypeAlias = Annotated[
    list[str],
    argument("PATH", "TFRecord files, folders, or quoted patterns such as 'data/*.tfrecord'."),
]
Source: TypeAlias = Annotated[
    str,
    argument(
        "SOURCE",
        "Class folders, images and masks, VOC, COCO or YOLO annotations, a table, tar "
        "files, a folder of TensorFlow Datasets or LeRobot, or TFRecord shards.",
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
Out: TypeAlias = Annotated[str, argument("OUT", "The folder of the new dataset.")]
Split: TypeAlias = Annotated[
    str | None,
    _which("SPLIT", "Only this split, or part of one: train, train[:80%]. [default: all]"),
]
At: TypeAlias = Annotated[
    str | None,
    _which(
        "POSITIONS",
        "Only the records at these positions, such as 9 or 143,10-20; or those that a file "
        "lists: @positions.txt.",
    ),
]
Where: TypeAlias = Annotated[
    str | None,
    _which("CONDITION", "Only records that match, such as 'image/class/label in (1, 2)'."),
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


def check_html(path: str | None, options: Mapping[str, Any]) -> None:
    """Raise early if the page cannot be written.

    Args:
        options: those of the command; `overwrite` may also be about the file `findings`.
    """
    overwrite = bool(options.get("overwrite"))
    if path is None:
        if overwrite and "findings" not in options:
            needed = f"{option('html')} or {option('findings')}"
            raise OptionError(f"{option('overwrite')} needs {needed}", option="overwrite")
        return
    from recordsmith.stores import as_location
    from recordsmith.viewing import check_html_path

    check_html_path(as_location(path), overwrite=overwrite)
