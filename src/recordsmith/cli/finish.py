"""`recordsmith finish`: the dataset of a plan."""

from __future__ import annotations

from typing import Annotated

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Overwrite
from recordsmith.cli.pack import print_pack_report
from recordsmith.cli.run import PlanPath


def finish(
    plan: PlanPath,
    results: Annotated[
        list[str] | None,
        typer.Argument(
            help="What `recordsmith run --results` wrote. [default: found in the folder of the "
            "dataset]",
            metavar="RESULTS",
            show_default=False,
        ),
    ] = None,
    skip_errors: Annotated[
        bool,
        typer.Option("--skip-errors", help="Accept samples that could not be read; report them."),
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Complete the dataset of a plan whose tasks have run.

    Writes names, labels and the manifest. Reads no shard. Fails if the result of a task is missing.

    Example: `recordsmith finish plan.jsonl`
    """
    from recordsmith.packing.pack_plan import read_results  # NumPy only when needed

    loaded = rs.PackPlan.load(plan)
    found = loaded.noted_results() if not results else read_results(results)
    report = rs.finish(loaded, found, skip_errors=skip_errors, overwrite=overwrite)
    if json:
        console.print_json(report.to_json())
    else:
        print_pack_report(report, "sample")
