"""Which threads and batches ahead each rival is the fastest with; all other tables use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench import SETTINGS, Bench, Measured, number_text, reason, rival_of

from case import Table

_CLOSE = 1.03
"""Of settings that take as long, but for a difference of noise, the one with the least CPU time."""


def report(bench: Bench) -> Table:
    def measure(module: str, place: Path) -> Measured:
        tried = {}
        for threads, prefetch in SETTINGS:
            options: dict[str, Any] = {
                "place": str(place),
                "threads": threads,
                "prefetch": prefetch,
            }
            measured = bench.job(module, "epochs", **options)
            if reason(measured) is not None:
                return measured
            last = measured["epochs"][-1]
            tried[f"{threads}, {prefetch}"] = [last["wall"], last["cpu"]]
        return {"tried": tried}

    count = bench.count()
    results = bench.rounds_of(measure)
    rows, chosen = [], {}
    for module, found in results.items():
        why = reason(found[0])
        if why is not None:
            rows.append((rival_of(module).title, why, *[""] * len(SETTINGS)))
            continue
        tried = {
            setting: [min(run["tried"][setting][clock] for run in found) for clock in (0, 1)]
            for setting in found[0]["tried"]
        }
        fastest = min(wall for wall, _ in tried.values())
        best = min(
            (name for name, (wall, _) in tried.items() if wall <= _CLOSE * fastest),
            key=lambda name: tried[name][1],
        )
        chosen[module] = list(map(int, best.split(", ")))
        rows.append(
            (
                rival_of(module).title,
                best,
                *(
                    " / ".join(number_text(seconds * 1e6 / count) for seconds in clocks)
                    for clocks in tried.values()
                ),
            )
        )
    known = json.loads(bench.settings_file.read_text()) if bench.settings_file.exists() else {}
    bench.settings_file.write_text(json.dumps({**known, **chosen}, indent=1) + "\n")
    return Table(
        "settings",
        "Threads and batches ahead",
        (
            "An epoch of images as in the next table with each number of threads (or worker "
            "processes) and of batches ahead: wall µs / CPU µs an image, the least of the rounds. "
            "The fastest is chosen; of those within 3 % of it, the one with the least CPU time."
        ),
        ("", "chosen", *(f"{threads}, {prefetch}" for threads, prefetch in SETTINGS)),
        tuple(rows),
        data={"results": results, "chosen": chosen},
    )
