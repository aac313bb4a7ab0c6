"""`recordsmith reshard`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.kept import telling_what_is_kept
from recordsmith.cli.options import (
    SHARDS,
    WHICH,
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
from recordsmith.errors import OptionError

_ORDER = "Order and splits"


def reshard(
    paths: Paths,
    out: Out,
    split: Split = None,
    where: Where = None,
    sample: Annotated[
        str | None,
        typer.Option(
            help="A share of each split, drawn at random, such as 10% or 0.1. [default: all]",
            metavar="SHARE",
            rich_help_panel=WHICH,
        ),
    ] = None,
    take: Annotated[
        int | None,
        typer.Option(
            help="So many records of each split, the first after shuffling. [default: all]",
            metavar="N",
            rich_help_panel=WHICH,
        ),
    ] = None,
    shuffle: Annotated[
        bool,
        typer.Option("--shuffle", help="A random order within each split.", rich_help_panel=_ORDER),
    ] = False,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Decides all that is random.", rich_help_panel=_ORDER)
    ] = 0,
    splits: Annotated[
        str | None,
        typer.Option(
            help="New splits instead of those that are there, drawn at random: names and shares, "
            "such as train=0.8,validation=0.2. [default: as they are]",
            metavar="NAME=SHARE,…",
            rich_help_panel=_ORDER,
        ),
    ] = None,
    shards: Annotated[str | None, shards_option(SHARDS)] = None,
    shard_size: Annotated[str | None, shard_size_option(SHARDS)] = None,
    shard_names: Annotated[str | None, shard_names_option(SHARDS)] = None,
    compression: KeptCompression = None,
    overwrite: Overwrite = False,
    threads: WritingThreads = None,
    json: Json = False,
) -> None:
    """Write records into other shards: merge, filter, shuffle, sample and split datasets.

    Records are copied as they are, with their checksums, after these were checked. Class names,
    label map and manifest go along. A job that is stopped shows nothing by halves; run again, it
    goes on where it was.

    Example: `recordsmith reshard out smaller --shard-size 100MB`

    Merge: `recordsmith reshard first second 'more/*.tfrecord' merged`

    Filter: `recordsmith reshard out cats --where "image/class/text == 'cat'"`

    Shuffle: `recordsmith reshard out shuffled --shuffle --seed 1 --shards 16`

    Sample: `recordsmith reshard out tenth --sample 10%`

    Split: `recordsmith reshard out halves --splits train=0.8,validation=0.2`
    """
    from recordsmith.dataset import DEFAULT_TEMPLATE

    if split is not None and splits is None and "=" in split:
        raise OptionError(
            f"--split is {split!r}, and names one split to read; new ones are drawn with "
            f"--splits {split}"
        )
    bar = console.progress_bar("resharding", of_bytes=True, speed=False)
    with telling_what_is_kept(out), bar as progress:
        report = rs.reshard(
            one_or_all(paths),
            out,
            split=split,
            **shard_options(shards, shard_size),
            shuffle=shuffle,
            seed=seed,
            take=take,
            sample=None if sample is None else parse_share(sample, "--sample"),
            splits=None if splits is None else parse_shares(splits, "--splits"),
            where=where,
            compression=compression,
            overwrite=overwrite,
            threads=threads,
            progress=progress,
            shard_names=DEFAULT_TEMPLATE if shard_names is None else shard_names,
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_reshard_report(report)


def print_reshard_report(report: rs.ReshardReport) -> None:
    """The summary of a job, in a few lines."""
    what = console.count(report.record_count, "record")
    if report.records_in != report.record_count:
        what += f" of {report.records_in:,}"
    console.print_written(report, "wrote", what)
    console.print_list("notices", report.notices)
