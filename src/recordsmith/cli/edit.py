"""`recordsmith edit`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.kept import print_kept
from recordsmith.cli.options import (
    Json,
    Paths,
    Split,
    Threads,
    one_or_all,
    parse_counts,
    parse_pairs,
    parse_size,
    parse_value,
)
from recordsmith.cli.reshard import print_reshard_report
from recordsmith.errors import FileAccessError

_WHAT, _WHICH, _SHARDS = "What changes", "Which records", "Shards"


def edit(
    paths: Paths,
    out: Annotated[
        str,
        typer.Argument(help="The folder of the new dataset.", metavar="OUT", show_default=False),
    ],
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature to leave out, or a pattern such as 'image/object/*'. Can be repeated, "
            "as the next ones can.",
            metavar="KEY",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(help="A new name for a feature.", metavar="OLD=NEW", rich_help_panel=_WHAT),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            help='A feature that all records get: a number, text, or a list such as [1,2]; "3" '
            "in quotes is text.",
            metavar="KEY=VALUE",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    recode: Annotated[
        list[str] | None,
        typer.Option(
            help="New values for old ones: a CSV, TSV or JSON file with the columns old, new and "
            "perhaps name.",
            metavar="KEY=TABLE",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            help='Only records for which this holds, such as "image/class/label in (1, 2)".',
            metavar="CONDITION",
            rich_help_panel=_WHICH,
        ),
    ] = None,
    split: Split = None,
    shards: Annotated[
        str | None,
        typer.Option(
            help="How many shards each split has. [default: those that are there]",
            metavar="N",
            rich_help_panel=_SHARDS,
        ),
    ] = None,
    shard_size: Annotated[
        str | None,
        typer.Option(
            help="About how large a shard shall be instead.",
            metavar="SIZE",
            rich_help_panel=_SHARDS,
        ),
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(
            help="none, gzip or zlib. [default: as it was, if all files are alike]",
            metavar="NAME",
            rich_help_panel=_SHARDS,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset that is there.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Write a dataset once more with features dropped, renamed, added, or with other values.

    Records keep their order and shards; what does not change in them is copied as it is. Class
    names move with the labels that are recoded.

    Example: `recordsmith edit out smaller --drop 'image/object/*'`

    Rename: `recordsmith edit out renamed --rename label=image/class/label`

    Add: `recordsmith edit out dated --add year=2024 --add 'camera="7D"'`

    Recode: `recordsmith edit out merged --recode image/class/label=labels.csv`
    """
    try:
        with console.progress_bar("editing", of_bytes=True) as progress:
            report = rs.edit(
                one_or_all(paths),
                out,
                drop=drop or (),
                rename=parse_pairs(rename or (), "--rename", "OLD=NEW"),
                add=_values(add),
                recode=parse_pairs(recode or (), "--recode", "KEY=TABLE"),
                where=where,
                split=split,
                shards=None if shards is None else parse_counts(shards, "--shards"),
                shard_size_bytes=(
                    None if shard_size is None else parse_size(shard_size, "--shard-size")
                ),
                compression=compression,
                overwrite=overwrite,
                threads=threads,
                progress=progress,
            )
    except (KeyboardInterrupt, FileAccessError):
        print_kept(out)
        raise
    if json:
        console.print_json(report.to_json())
    else:
        print_reshard_report(report)


def _values(add: list[str] | None) -> dict[str, Any]:
    pairs = parse_pairs(add or (), "--add", "KEY=VALUE")
    return {key: parse_value(text) for key, text in pairs.items()}
