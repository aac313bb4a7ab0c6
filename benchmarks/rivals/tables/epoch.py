"""An epoch of images on this machine: CPU, wall and memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import Bench, Measured, number_text, reason, rival_of, spread

from case import Table

_WHAT = (
    "{count:,} JPEG files to shuffled batches of 32 images of 224 by 224 pixels, uint8, the second "
    "epoch of a process. Median of the rounds, in brackets the least and the most. CPU is the user "
    "and system time of all processes; files are in the page cache. Memory is the most that all "
    "processes of a run of two epochs have at the same time, shared pages counted once, measured "
    "apart from the times."
)


def report(bench: Bench) -> Table:
    return _report(bench, "epoch", "An epoch of images", _WHAT, what="images")


def report_crops(bench: Bench) -> Table:
    what = "Of each image, a random rectangle of 8 to 100 % of the area is resized. " + _WHAT
    return _report(bench, "crops", "An epoch of random crops", what, what="crops")


def _report(bench: Bench, name: str, title: str, text: str, **options: Any) -> Table:
    def measure(module: str, place: Path, *, memory: bool = False) -> Measured:
        settings = bench.settings(module)
        return bench.job(module, "epochs", memory=memory, place=str(place), **settings, **options)

    count = bench.count()
    results = bench.rounds_of(measure)
    base: dict[str, float] = {}
    rows, data = [], {}
    for module, found in results.items():
        title_of = rival_of(module).title
        why = reason(found[0])
        if why is not None:
            rows.append((title_of, why, "", "", "", "", ""))
            data[module] = found
            continue
        place = bench.packed(module)
        assert isinstance(place, Path)
        memory = measure(module, place, memory=True)
        last = [run["epochs"][-1] for run in found]
        taken = {clock: [epoch[clock] * 1e6 / count for epoch in last] for clock in ("cpu", "wall")}
        middle = {clock: sorted(values)[len(values) // 2] for clock, values in taken.items()}
        base = base or middle
        settings = bench.settings(module)
        rows.append(
            (
                title_of,
                f"{settings['threads']}, {settings['prefetch']}",
                spread(taken["cpu"]),
                spread(taken["wall"]),
                f"{middle['cpu'] / base['cpu']:.3g}",
                f"{middle['wall'] / base['wall']:.3g}",
                number_text(memory.get("memory", 0) / (1 << 20)),
            )
        )
        data[module] = [{**taken, "memory": memory.get("memory"), **settings}]
    return Table(
        name,
        title,
        text.format(count=count),
        (
            "",
            "threads, batches ahead",
            "CPU µs an image",
            "wall µs an image",
            "CPU, first row = 1",
            "wall, first row = 1",
            "memory MiB",
        ),
        tuple(rows),
        data=data,
    )
