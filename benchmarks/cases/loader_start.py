"""How long a process takes from its start to its first batch: imports, pipelines, threads."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import loaders
from case import OURS, Settings, Table
from inputs import Inputs
from measure import make_inputs, say

NAME = "loader-start"
_SCRIPT = Path(__file__).resolve().parent.parent / "first_batch.py"
_AT_MOST_SECONDS = 0.6
_AT_MOST_OF_TENSORFLOW = 1 / 8
_INPUTS = ("camera", "camera-packed", "camera.offsets")
_LOADERS = {
    OURS: "recordsmith",
    "by hand, libjpeg-turbo and OpenCV's resize": "by_hand",
    "tf.data": "tensorflow",
}
Taken = tuple[float, float]
"""Seconds: of CPU, on the wall."""


def report(settings: Settings) -> Table:
    """A fresh process for each row and round; one before, for the page cache."""
    say(NAME)
    make_inputs(settings, _INPUTS)
    folder = Inputs(settings.folder, settings.quick).folder
    runs: dict[str, list[Taken | None]] = {name: [] for name in _LOADERS}
    for number in range(-1, settings.repeat):
        say(f"  round {number + 1} of {settings.repeat}")
        for name, loader in _LOADERS.items():
            taken = _time(folder, loader)
            if number >= 0:
                runs[name].append(taken)
    return _table(runs)


def _time(folder: Path, loader: str) -> Taken | None:
    """CPU and wall seconds until the first batch, or None if there was none."""
    # compiled modules are kept, as installing a package does
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, str(_SCRIPT), str(folder), loader],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        wall = time.perf_counter() - start
    if not line:
        return None
    count, cpu = line.split()
    assert int(count) == loaders.BATCH
    return float(cpu), wall


def _table(runs: dict[str, list[Taken | None]]) -> Table:
    middle = {
        name: tuple(statistics.median(clock) for clock in zip(*good, strict=True))
        for name, taken in runs.items()
        if (good := [run for run in taken if run is not None])
    }
    ours = middle[OURS][1]
    rows = []
    for name in runs:
        if name not in middle:
            rows.append((name, "not installed", "", "", "", ""))
            continue
        cpu, wall = middle[name]
        target, met = "", ""
        if name == OURS:
            target = f"{_AT_MOST_SECONDS * 1e3:.0f} ms"
            met = "yes" if wall <= _AT_MOST_SECONDS else "**no**"
        elif name == "tf.data":
            target = f"recordsmith at most 1/{1 / _AT_MOST_OF_TENSORFLOW:.0f}"
            met = "yes" if ours <= wall * _AT_MOST_OF_TENSORFLOW else f"**no**: 1/{wall / ours:.3g}"
        rows.append(
            (name, f"{cpu * 1e3:,.0f}", f"{wall * 1e3:,.0f}", f"{wall / ours:.3g}", target, met)
        )
    return Table(
        NAME,
        "From the start of a process to its first batch",
        (
            "The interpreter, the imports, the loader as above, and 32 images of 224 by 224 "
            "pixels; indexes and offset tables are there."
        ),
        ("", "CPU ms", "wall ms", "wall, recordsmith = 1", "target, wall", "met"),
        tuple(rows),
        data={"cpu_and_wall_seconds": runs},
    )
