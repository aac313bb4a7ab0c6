"""`recordsmith edit`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import (
    SHARDS,
    EngineName,
    Json,
    KeptCompression,
    Out,
    Overwrite,
    Paths,
    Split,
    Where,
    WritingThreads,
    one_or_all,
    parse_pairs,
    parse_value,
    shard_options,
    shard_size_option,
    shards_option,
)
from recordsmith.cli.reshard import print_reshard_report
from recordsmith.engines import parse_engine

_WHAT = "What changes"


def edit(
    paths: Paths,
    out: Out,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="Drop a feature, or all that match a pattern such as 'image/object/*'. "
            "Repeatable.",
            metavar="KEY",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            help="Rename a feature. Repeatable.", metavar="OLD=NEW", rich_help_panel=_WHAT
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            help="Add a feature to all records: a number, text, or a list such as [1,2]. A number "
            'in quotes, "3", is text. Repeatable.',
            metavar="KEY=VALUE",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    recode: Annotated[
        list[str] | None,
        typer.Option(
            help="Replace values by a CSV, TSV or JSON file with the columns old, new and "
            "optionally name. Repeatable.",
            metavar="KEY=FILE",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    where: Where = None,
    split: Split = None,
    shards: Annotated[str | None, shards_option(SHARDS, "as they are")] = None,
    shard_size: Annotated[str | None, shard_size_option(SHARDS, None)] = None,
    compression: KeptCompression = None,
    overwrite: Overwrite = False,
    engine: EngineName = None,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Write a dataset again with features dropped, renamed, added or recoded.

    Records keep their order and shards; unchanged parts are copied byte for byte. Class names
    follow recoded labels.

    Example: `recordsmith edit out smaller --drop 'image/object/*'`

    Rename: `recordsmith edit out renamed --rename image/class/label=label`

    Add: `recordsmith edit out dated --add year=2024 --add 'camera="7D"'`

    Recode: `recordsmith edit out merged --recode image/class/label=labels.csv`
    """
    with console.progress_bar("editing", of_bytes=True, speed=False) as progress:
        report = rs.edit(
            one_or_all(paths),
            out,
            drop=drop or (),
            rename=parse_pairs(rename or (), "rename", "OLD=NEW"),
            add=_values(add),
            recode=parse_pairs(recode or (), "recode", "KEY=FILE"),
            where=where,
            split=split,
            **shard_options(shards, shard_size),
            compression=compression,
            overwrite=overwrite,
            engine=parse_engine(engine),
            threads=threads,
            progress=progress,
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_reshard_report(report)


def _values(add: list[str] | None) -> dict[str, Any]:
    pairs = parse_pairs(add or (), "add", "KEY=VALUE")
    return {key: parse_value(text, "add", key) for key, text in pairs.items()}
