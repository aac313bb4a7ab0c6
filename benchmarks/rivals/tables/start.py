"""From the start of a process to its first batch."""

from __future__ import annotations

import time
from pathlib import Path

from bench import Bench, Measured, reason, rival_of, spread

from case import Table


def report(bench: Bench) -> Table:
    def measure(module: str, place: Path) -> Measured:
        started = time.time()
        measured = bench.job(module, "first_batch", place=str(place), **bench.settings(module))
        if reason(measured) is None:
            measured["wall"] = measured["at"] - started
        return measured

    results = bench.rounds_of(measure)
    rows = []
    for module, found in results.items():
        why = reason(found[0])
        clocks = ("cpu", "wall")
        cells = [spread(run[clock] * 1e3 for run in found) for clock in clocks] if not why else []
        rows.append((rival_of(module).title, *(cells or (why or "", ""))))
    return Table(
        "start",
        "From the start of a process to its first batch",
        (
            "The interpreter, the imports, the dataset and a shuffled batch of 32 images of 224 by "
            "224 pixels. Median, in brackets the least and the most."
        ),
        ("", "CPU ms", "wall ms"),
        tuple(rows),
        data={"results": results},
    )
