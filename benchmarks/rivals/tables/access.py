"""Records at random positions: what a sampler, a viewer or an evaluation asks of a dataset."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from bench import Bench, Measured, reason, rival_of, spread

from case import Table

_POSITION_COUNT, _BATCH = 2_000, 32


def report(bench: Bench) -> Table:
    rng = random.Random(6)
    count = bench.count()
    positions = [rng.randrange(count) for _ in range(_POSITION_COUNT - 1)] + [count - 1]

    def measure(module: str, place: Path) -> Measured:
        options: dict[str, Any] = {
            "place": str(place),
            "positions": positions,
            "batch_size": _BATCH,
        }
        return bench.job(module, "access", **options)

    results = bench.rounds_of(measure)
    sizes = {run["total"] for found in results.values() for run in found if "total" in run}
    assert len(sizes) <= 1, f"the readers disagree on the size of all images: {sizes}"
    rows = []
    for module, found in results.items():
        why = reason(found[0])
        cells = [why, ""]
        if why is None:
            cells = [
                spread(run[clock] * 1e6 / _POSITION_COUNT for run in found)
                for clock in ("cpu", "wall")
            ]
        rows.append((rival_of(module).title, *map(str, cells)))
    return Table(
        "access",
        "Random access",
        (
            f"{_POSITION_COUNT:,} of {count:,} JPEG files at random positions, {_BATCH} with each "
            "call, not decoded, in one thread; all were read once before. Median, in brackets the "
            "least and the most."
        ),
        ("", "CPU µs an image", "wall µs an image"),
        tuple(rows),
        data={"positions": positions, "results": results},
    )
