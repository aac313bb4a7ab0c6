"""`recordsmith run`: tasks of a plan."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, parse_numbers
from recordsmith.cli.pack import print_skipped
from recordsmith.stores import write_atomically

if TYPE_CHECKING:
    from recordsmith.building import ShardResult

PlanPath = Annotated[
    str,
    typer.Argument(
        help="A plan, as `recordsmith pack --write-plan` writes it.",
        metavar="PLAN",
        show_default=False,
    ),
]


def run(
    plan: PlanPath,
    only: Annotated[
        str | None,
        typer.Option(help="Only these tasks, such as 3 or 0-9. [default: all]", metavar="NUMBERS"),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option(
            help="Write the results to this file, for `recordsmith finish`. [default: it finds "
            "them in the folder of the dataset]",
            metavar="FILE",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write shards of a plan, on any machine that sees the source and the dataset.

    Each task writes one shard and verifies it. Shards that are complete already are kept, unless
    samples could not be read. When all tasks have run, `recordsmith finish PLAN` completes the
    dataset.

    Example: `recordsmith run plan.jsonl --only 0-9`
    """
    loaded = rs.PackPlan.load(plan)
    numbers = range(len(loaded.shards)) if only is None else parse_numbers(only, "only")
    found: list[ShardResult] = []
    with console.progress_bar("packing") as progress:
        total = sum(loaded.shards[number].sample_count for number in loaded.checked(numbers))
        done = 0
        for task in loaded.tasks(numbers):
            found.append(rs.run(task))
            done += task.size
            if progress is not None:
                progress(done, total)
    if results is not None:
        lines = (json_module.dumps(result.to_json()).encode() + b"\n" for result in found)
        write_atomically(results, b"".join(lines))
    planned = {shard.file: shard.sample_count for shard in loaded.shards}
    _print_shards(found, planned, json=json)


def _print_shards(results: list[ShardResult], planned: dict[str, int], *, json: bool) -> None:
    """Print results of tasks; `planned` is the number of samples of each shard."""
    skipped = {result.file: planned[result.file] - result.record_count for result in results}
    if json:
        shards = [
            {
                "file": result.file,
                "records": result.record_count,
                "size_bytes": result.size_bytes,
                "is_new": not result.was_reused,
                "skipped": list(result.skipped.values()),
                "skipped_count": skipped[result.file],
            }
            for result in results
        ]
        console.print_json({"shards": shards})
        return
    for result in results:
        print(
            f"{console.printable(result.file)}: {console.count(result.record_count, 'record')}, "
            f"{console.size(result.size_bytes)}"
            + (", already complete" if result.was_reused else "")
        )
        print_skipped(list(result.skipped.values()), skipped[result.file], indent="  ")
