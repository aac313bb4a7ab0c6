"""How far a shuffled epoch takes records from where they are stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import Bench, Measured, reason, rival_of

from case import Table


def report(bench: Bench) -> Table:
    def measure(module: str, place: Path) -> Measured:
        options: dict[str, Any] = {"place": str(place), "what": "bytes", **bench.settings(module)}
        alone = {**options, "threads": 1, "shuffle": False, "epoch_count": 1}
        stored = bench.job(module, "epochs", **alone)
        shuffled = bench.job(module, "epochs", **options)
        if reason(stored) is not None or reason(shuffled) is not None:
            return stored if reason(stored) is not None else shuffled
        (kept,), (first, second) = stored["epochs"], shuffled["epochs"]
        return {"stored": kept["keys"], "first": first["keys"], "second": second["keys"]}

    once = replace(bench, rounds=1)
    results = once.rounds_of(measure, "tiny")
    rows: list[tuple[str, ...]] = []
    data: dict[str, Any] = {}
    for module, (found,) in results.items():
        why = reason(found)
        if why is not None:
            rows.append((rival_of(module).title, why, "", "", "", ""))
            data[module] = found
            continue
        stored, first, second = found["stored"], found["first"], found["second"]
        whole = sorted(stored) == sorted(first) == sorted(second)
        figures = [*travelled(stored, first), *travelled(first, second)]
        cells = [f"{figures[0]:.3f}", f"{figures[1]:.0%}", f"{figures[2]:.3f}", f"{figures[3]:.0%}"]
        rows.append((rival_of(module).title, "yes" if whole else "**no**", *cells))
        data[module] = {"each_once": whole, "figures": figures}
    return Table(
        "order",
        "Order of a shuffled epoch",
        (
            f"{bench.count('tiny'):,} small images. The rank correlation of where a record is "
            "stored and when it comes (0: none), and the mean distance between the two as a share "
            "of that of a uniform shuffle; the same for one epoch and the next."
        ),
        (
            "",
            "each record once",
            "stored and epoch: correlation",
            "distance",
            "two epochs: correlation",
            "distance",
        ),
        tuple(rows),
        data=data,
    )


def travelled(before: list[int], after: list[int]) -> tuple[float, float]:
    """The rank correlation of two orders, and the mean distance, as a share of a uniform one's."""
    places = {key: place for place, key in enumerate(before)}
    moves = [place - places[key] for place, key in enumerate(after) if key in places]
    count = len(moves)
    if count < 2:
        return 0.0, 0.0
    correlation = 1 - 6 * sum(move * move for move in moves) / (count * (count * count - 1))
    uniform = (count * count - 1) / (3 * count)
    return correlation, sum(map(abs, moves)) / count / uniform
