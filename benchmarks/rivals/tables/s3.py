"""An epoch of images in a bucket, on a server with a delay."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import Bench, Measured, number_text, reason, rival_of, spread
from rival import photos_of

from case import Table
from slow_server import SlowServer

_DELAY, _RATE = 0.02, 100_000_000
_SERVER_PROCESSORS = frozenset({0})


def report(bench: Bench) -> Table:
    if (ours := "recordsmith_shards") in bench.rivals:
        first = bench.rivals.index(ours) + 1
        blocks = ("recordsmith_blocks",)
        bench = replace(bench, rivals=bench.rivals[:first] + blocks + bench.rivals[first:])
    for module in bench.rivals:
        bench.packed(module)  # the bucket is listed when the server starts
    photos = bench.photos()
    count = bench.count()
    size_bytes = sum(photo.path.stat().st_size for photo in photos_of(photos))
    with SlowServer(
        bench.folder / "packed" / photos.name,
        delay=_DELAY,
        rate=_RATE,
        link_rate=0,
        processors=_SERVER_PROCESSORS,
    ) as server:
        os.environ |= server.aws_environment

        def measure(module: str, _place: Path) -> Measured:
            place = f"{server.bucket}/{module}"
            runs: Measured = {}
            ways: dict[str, dict[str, Any]] = {
                "decoded": {"epoch_count": 1},
                "bytes": {"epoch_count": 1, "what": "bytes"},
                "cached": {"epoch_count": 2},
            }
            for name, options in ways.items():
                mark, cpu = server.mark(), server.cpu_seconds
                with tempfile.TemporaryDirectory(dir=bench.folder) as cache:
                    settings: dict[str, Any] = {**bench.settings(module), **options}
                    if name == "cached":
                        settings["cache"] = f"{cache}/cache"
                    run = bench.job(module, "epochs", place=place, **settings)
                if reason(run) is not None:
                    return run
                requests = server.requests(mark)
                runs[name] = {
                    **{clock: run["epochs"][-1][clock] for clock in ("cpu", "wall", "first")},
                    "server_cpu": server.cpu_seconds - cpu,
                    "requests": len(requests),
                    "bytes": sum(request.size_bytes for request in requests),
                    "count": len(set(run["epochs"][-1]["keys"])),
                }
            return runs

        results = bench.rounds_of(measure)
    rows = []
    for module, found in results.items():
        why = reason(found[0])
        cells = [why, *[""] * 7] if why is not None else _cells(found, size_bytes)
        rows.append((rival_of(module).title, *map(str, cells)))
    return Table(
        "s3",
        "An epoch of images in a bucket",
        (
            f"{count:,} JPEG files of {size_bytes / count / 1e3:.0f} kB, in shuffled batches, in a "
            f"new process with nothing on the disk. The server is nginx on this machine, on one of "
            f"its processors: a response begins after {_DELAY * 1e3:.0f} ms, and a connection has "
            f"{_RATE / 1e6:.0f} MB/s, all together have no limit. Images a second are those of the "
            "whole epoch, with the time to its first batch. Then a new process that does not "
            "decode, and one that reads two epochs, with a folder as a cache where a loader has "
            "that option. Median, in brackets the least and the most."
        ),
        (
            "",
            "first batch, s",
            "images/s",
            "CPU µs an image",
            "requests",
            "bytes, images = 1",
            "not decoded: images/s",
            "second epoch: images/s",
            "CPU of the server, µs an image",
        ),
        tuple(rows),
        data={"size_bytes": size_bytes, "results": results},
    )


def _cells(found: list[Measured], size_bytes: int) -> list[str]:
    def of(run: str, value: str, scale: float = 1.0) -> str:
        return spread(one[run][value] * scale for one in found)

    def rates(run: str) -> str:
        return spread(one[run]["count"] / one[run]["wall"] for one in found)

    count = found[0]["decoded"]["count"]
    last: dict[str, Any] = found[-1]["decoded"]
    return [
        of("decoded", "first"),
        rates("decoded"),
        of("decoded", "cpu", 1e6 / count),
        f"{last['requests']:,}",
        number_text(last["bytes"] / size_bytes),
        rates("bytes"),
        rates("cached"),
        of("decoded", "server_cpu", 1e6 / count),
    ]
