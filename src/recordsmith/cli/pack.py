"""`recordsmith pack`."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Threads, parse_counts, parse_shares, parse_size


def pack(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder with one folder of pictures for each class.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Argument(help="The folder of the new dataset.", metavar="OUT", show_default=False),
    ],
    split: Annotated[
        str | None,
        typer.Option(
            help="Names and shares, such as train=0.7,validation=0.3 or train=70%,validation=30%. "
            "[default: train=1]",
            metavar="NAME=SHARE,…",
        ),
    ] = None,
    shards: Annotated[
        str | None,
        typer.Option(
            help="How many shards each split has, such as 2 or train=8,validation=2.", metavar="N"
        ),
    ] = None,
    shard_size: Annotated[
        str | None,
        typer.Option(
            help="About how large a shard shall be instead. [default: 256MB]", metavar="SIZE"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the shuffled order.")] = 0,
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Give all splits the same mix of classes.")
    ] = False,
    compression: Annotated[str, typer.Option(help="none, gzip or zlib.", metavar="NAME")] = "none",
    skip_errors: Annotated[
        bool,
        typer.Option(
            "--skip-errors", help="Leave out pictures that cannot be read, and report them."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset that is there.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Pack a folder of pictures into TFRecord shards, and prove them right.

    The pictures' bytes are stored as they are. Each shard is read back and checked before it gets
    its name; a job that is stopped leaves nothing behind.

    Example: `recordsmith pack flowers out --split train=0.7,validation=0.3 --shards 2`
    """
    with console.progress_bar("packing") as progress:
        report = rs.pack(
            rs.ImageFolder(source),
            out,
            splits=None if split is None else parse_shares(split, "--split"),
            shards=None if shards is None else parse_counts(shards, "--shards"),
            shard_size_bytes=None if shard_size is None else parse_size(shard_size, "--shard-size"),
            seed=seed,
            stratify=stratify,
            compression=compression,
            on_error="skip" if skip_errors else "stop",
            overwrite=overwrite,
            threads=threads,
            progress=progress,
        )
    if json:
        console.print_json(report.to_json())
    else:
        print_pack_report(report)


def print_pack_report(report: rs.PackReport) -> None:
    """The summary of a job, in a few lines."""
    of_classes = "" if report.class_count is None else f" of {_classes(report.class_count)}"
    what = f"{console.count(report.sample_count, 'picture')}{of_classes}"
    into = (
        f"{console.count(report.shard_count, 'shard')} in {console.printable(str(report.folder))}"
    )
    if report.is_new:
        print(console.bold(f"packed {what} into {into}"))
    else:
        print(console.bold(f"nothing to do: {what} are packed already into {into}"))
    for name, records in report.splits.items():
        print(f"  {console.printable(name)}: {console.count(records, 'record')}")
    print(f"  {console.size(report.bytes_in)} in, {console.size(report.bytes_out)} out")
    if report.is_new:
        print("  every record was read back and its checksums are right")
    console.print_list(f"skipped {len(report.skipped):,}", report.skipped)
    console.print_list("passed over", report.notices)


def _classes(number: int) -> str:
    return console.count(number, "class", "classes")
