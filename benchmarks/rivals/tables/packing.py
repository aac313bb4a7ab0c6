"""Packing: what it costs, whether its output is checked, and what a killed job leaves."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from bench import Bench, Measured, error_class, number_text, reason, rival_of, spread
from rival import photos_of

from case import Table

_LOOK_SECONDS = 0.002


def report(bench: Bench) -> Table:
    photos = bench.photos()
    size_bytes = sum(photo.path.stat().st_size for photo in photos_of(photos))
    folder = bench.folder / "out"

    def measure(module: str, _place: Path) -> Measured:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return bench.job(module, "pack", images=str(photos), out=str(folder / module))

    results = bench.rounds_of(measure)
    rows: list[tuple[str, ...]] = []
    data: dict[str, Any] = {}
    for module, found in results.items():
        rival = rival_of(module)
        why = reason(found[0])
        if why is not None:
            rows.append((rival.title, why, "", "", "", "", ""))
            data[module] = {"runs": found}
            continue
        left, again = _kill(bench, module, found[0]["size_bytes"])
        rows.append(
            (
                rival.title,
                spread(run["cpu"] * 1e6 / run["count"] for run in found),
                spread(run["wall"] * 1e6 / run["count"] for run in found),
                f"{found[0]['size_bytes'] / size_bytes - 1:+.2%}",
                rival.checked,
                left,
                again,
            )
        )
        data[module] = {"runs": found, "left": left, "again": again}
    shutil.rmtree(folder, ignore_errors=True)
    return Table(
        "packing",
        "Packing",
        (
            f"{bench.count():,} JPEG files of {size_bytes / bench.count() / 1e3:.0f} kB, stored as "
            "they are. Median of the rounds, in brackets the least and the most; bytes beyond "
            "those of the files. Then a job is killed (SIGKILL) when half of the bytes are "
            "written: what the rival's own loader reads from what is left, and what packing again "
            "into the same folder does."
        ),
        (
            "",
            "CPU µs an image",
            "wall µs an image",
            "bytes",
            "output checked",
            "after a kill: the loader",
            "packing again",
        ),
        tuple(rows),
        data=data,
    )


def _kill(bench: Bench, module: str, size_bytes: int) -> tuple[str, str]:
    """What a loader reads after a kill, and what packing again does."""
    photos, out = str(bench.photos()), bench.folder / "out" / module
    shutil.rmtree(out.parent, ignore_errors=True)
    out.parent.mkdir(parents=True)
    process = bench.start(module, "pack", images=photos, out=str(out))
    while process.poll() is None and _size(out.parent) < size_bytes / 2:
        time.sleep(_LOOK_SECONDS)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if process.returncode != -signal.SIGKILL:
        return "packing ended before half of it was seen", ""
    read = bench.job(module, "content", place=str(out), timeout=120)
    why = reason(read)
    count = bench.count()
    left = f"reads {read.get('count', 0):,} of {count:,} without an error"
    if why is not None:
        left = error_class(why)
    files = sum(1 for path in out.parent.rglob("*") if path.is_file())
    left = f"{left} ({files} files, {_size(out.parent) / 1e6:.0f} MB)"
    packed = bench.job(module, "pack", images=photos, out=str(out))
    why = reason(packed)
    if why is not None:
        return left, f"refused: {error_class(why)}"
    again = bench.job(module, "content", place=str(out), timeout=120)
    if reason(again) is None and again["digest"] == bench.expected_digest():
        return left, f"complete, {number_text(packed['wall'])} s"
    why = reason(again)
    wrong = error_class(why) if why else f"{again['count']:,} of {count:,} images"
    return left, f"**wrong**: {wrong}"


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # renamed meanwhile
            continue
    return total
