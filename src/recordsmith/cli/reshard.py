"""`recordsmith reshard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import (
    SHARDS,
    WHICH,
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
    parse_share,
    parse_shares,
    shard_names_option,
    shard_options,
    shard_size_option,
    shards_option,
)
from recordsmith.engines import parse_engine
from recordsmith.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.reshaping import ReshardReport


_ORDER = "Order and splits"


def reshard(
    paths: Paths,
    out: Out,
    split: Split = None,
    where: Where = None,
    sample: Annotated[
        str | None,
        typer.Option(
            help="Random share of each split, such as 10% or 0.1. [default: all]",
            metavar="SHARE",
            rich_help_panel=WHICH,
        ),
    ] = None,
    take: Annotated[
        int | None,
        typer.Option(
            help="The first N records of each split, after shuffling. [default: all]",
            metavar="N",
            rich_help_panel=WHICH,
        ),
    ] = None,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="Shuffle each split.", rich_help_panel=_ORDER),
    ] = False,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed.", rich_help_panel=_ORDER)
    ] = 0,
    splits: Annotated[
        str | None,
        typer.Option(
            help="Names and shares of new random splits, such as train=0.8,test=0.2. "
            "[default: as they are]",
            metavar="NAME=SHARE,…",
            rich_help_panel=_ORDER,
        ),
    ] = None,
    tiles: Annotated[
        bool,
        typer.Option(
            "--tiles",
            help="Divide baseline JPEGs into tiles, without loss, so that crops decode faster.",
        ),
    ] = False,
    shards: Annotated[str | None, shards_option(SHARDS)] = None,
    shard_size: Annotated[str | None, shard_size_option(SHARDS)] = None,
    shard_names: Annotated[str | None, shard_names_option(SHARDS)] = None,
    compression: KeptCompression = None,
    overwrite: Overwrite = False,
    engine: EngineName = None,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Write records into new shards: merge, filter, shuffle, sample, split.

    Verifies checksums and copies records byte for byte, with class names and label map. If
    the job is interrupted, rerun it to resume; until then, every command refuses OUT as unfinished.

    Example: `recordsmith reshard out smaller --shard-size 100MB`

    Merge: `recordsmith reshard first second 'more/*.tfrecord' merged`

    Filter: `recordsmith reshard out daisies --where 'image/class/text == "daisy"'`

    Shuffle: `recordsmith reshard out shuffled --shuffle --seed 1 --shards 16`

    Sample: `recordsmith reshard out tenth --sample 10%`

    Split: `recordsmith reshard out halves --splits train=0.5,test=0.5`

    Tile: `recordsmith reshard out tiled --tiles`
    """
    from recordsmith.dataset import DEFAULT_TEMPLATE

    if split is not None and splits is None and "=" in split:
        raise OptionError(
            option="split",
            value=split,
            expected="the name of one split to read",
            remedy=f"Draw new splits with {option('splits', split)}.",
        )
    with console.progress_bar("resharding", of_bytes=True, speed=False) as progress:
        report = rs.reshard(
            one_or_all(paths),
            out,
            split=split,
            **shard_options(shards, shard_size),
            shuffle=shuffle,
            seed=seed,
            take=take,
            sample=None if sample is None else parse_share(sample, "sample"),
            splits=None if splits is None else parse_shares(splits, "splits"),
            where=where,
            tiles=tiles,
            compression=compression,
            overwrite=overwrite,
            engine=parse_engine(engine),
            threads=threads,
            progress=progress,
            shard_names=DEFAULT_TEMPLATE if shard_names is None else shard_names,
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_reshard_report(report)


def print_reshard_report(report: ReshardReport) -> None:
    """Print the summary of a job."""
    what = console.count(report.record_count, "record")
    if report.records_in != report.record_count:
        what += f" of {report.records_in:,}"
    console.print_written(report, "wrote", what)
    console.print_list("notices", report.notices)
