"""Jobs on data behind a network, each in a process of its own.

    python remote_jobs.py JOB OPTIONS       OPTIONS is JSON; prints what was measured as JSON

A job imports what it needs first, so that imports are neither in its time nor in its memory.
`place` is a path, or a URL of the server; `store_options` are those for obstore.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from clock import cpu_seconds

SIDE, BATCH, THREADS = 224, 32, 2
_BLOCKS = (32, 16)
"""Of BlockShuffle: a window of 512 records of 110 kB is 56 MB."""


def _location(options: dict[str, Any], **more: Any) -> Any:
    from recordsmith.stores import remote

    if "://" not in options["place"]:
        return options["place"]
    return remote(options["place"], store_options=options["store_options"], **more)


def _import_ours(*names: str) -> Any:
    """Import what the jobs use when they are called, also what is imported late."""
    import numpy as np  # noqa: F401

    import recordsmith as rs
    import recordsmith.stores.network

    for name in names:
        getattr(rs, name)
    return rs


def records(options: dict[str, Any]) -> dict[str, Any]:
    """`Dataset.records()` of everything."""
    rs = _import_ours("open")

    def run() -> int:
        return sum(len(record) for record in rs.open(_location(options)).records())

    return _measured_memory(run)


def verify(options: dict[str, Any]) -> dict[str, Any]:
    """`rs.verify` of everything."""
    rs = _import_ours("verify")

    def run() -> int:
        report = rs.verify(_location(options))
        assert report.is_good
        return report.size_bytes  # type: ignore[no-any-return]

    return _measured_memory(run)


def plain(options: dict[str, Any]) -> dict[str, Any]:
    """The object in requests of 2 MiB, 16 at the same time, by obstore alone."""
    from concurrent.futures import ThreadPoolExecutor

    import obstore.store

    bucket, _, key = options["place"].removeprefix("s3://").partition("/")
    store = obstore.store.from_url(f"s3://{bucket}", **options["store_options"])
    size, block = obstore.head(store, key)["size"], 2 << 20

    def read(number: int) -> int:  # every 16th block
        wanted = [(at, min(at + block, size)) for at in range(number * block, size, 16 * block)]
        results = (obstore.get(store, key, options={"range": one}) for one in wanted)
        return sum(len(result.bytes()) for result in results)

    def run() -> int:
        with ThreadPoolExecutor(16) as pool:
            return sum(pool.map(read, range(16)))

    return _measured_memory(run)


def inspect(options: dict[str, Any]) -> dict[str, Any]:
    rs = _import_ours("inspect")
    return _measured_memory(lambda: rs.inspect(_location(options)).record_count)


def head(options: dict[str, Any]) -> dict[str, Any]:
    """What `recordsmith head` reads: the first five records."""
    from itertools import islice

    rs = _import_ours("open")
    return _measured_memory(lambda: sum(1 for _ in islice(rs.open(_location(options)), 5)))


def first_batch(options: dict[str, Any]) -> dict[str, Any]:
    """Open a dataset and take one batch of a global shuffle."""
    _import_ours("Loader", "Image", "Scalar")
    started = time.perf_counter()
    loader = _loader(options)
    batches = iter(loader)
    count = len(next(batches)["label"])
    return {"wall": time.perf_counter() - started, "until": time.time(), "count": count}


def loader(options: dict[str, Any]) -> dict[str, Any]:
    """Epochs of a Loader, whose consumer takes `step_seconds` for each batch.

    Options: shuffle ("blocks" or "all"), epochs, step_seconds, most_batches, cache, cache_bytes.
    """
    _import_ours("Loader", "Image", "Scalar", "BlockShuffle")
    made = _loader(options)
    return {"epochs": [_epoch(options, made) for _ in range(options.get("epochs", 1))]}


def _loader(options: dict[str, Any]) -> Any:
    import recordsmith as rs

    names = ("cache", "cache_bytes")
    more = {name: options[name] for name in names if options.get(name) is not None}
    blocks = rs.BlockShuffle(*_BLOCKS)
    return rs.Loader(
        rs.open(_location(options, **more)),
        {
            "image": rs.Image("image/encoded", size=(SIDE, SIDE)),
            "label": rs.Scalar("image/class/label"),
        },
        batch_size=BATCH,
        shuffle=blocks if options.get("shuffle") == "blocks" else True,
        threads=THREADS,
    )


def _epoch(options: dict[str, Any], made: Any) -> dict[str, Any]:
    measured = _consume(options, (len(batch["label"]) for batch in made))
    stats = made.stats()
    busy = stats.elapsed_seconds - stats.first_batch_seconds
    return {
        **measured,
        "decoders_waited": stats.reading_seconds / (stats.thread_count * busy),
        "loop_waited": stats.waited_seconds / (stats.waited_seconds + stats.between_seconds),
    }


def _consume(options: dict[str, Any], sizes: Iterator[int]) -> dict[str, Any]:
    """Take an epoch's batches, given by their sizes, as a training loop does."""
    most, step = options.get("most_batches"), options.get("step_seconds", 0.0)
    cpu, started = cpu_seconds(), time.perf_counter()
    first, count = 0.0, 0
    for number, size in enumerate(sizes, 1):
        first = first or time.perf_counter() - started
        count += size
        time.sleep(step)
        if number == most:
            break
    wall, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    return {"count": count, "wall": wall, "cpu": cpu, "first": first}


def _measured_memory(run: Callable[[], Any]) -> dict[str, Any]:
    from worker import peak_bytes, reset_peak

    resident = reset_peak()
    cpu, started = cpu_seconds(), time.perf_counter()
    count = run()
    wall, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    return {"count": count, "wall": wall, "cpu": cpu, "memory": peak_bytes() - resident}


JOBS = (
    records,
    verify,
    plain,
    inspect,
    head,
    first_batch,
    loader,
)


def main() -> None:
    name, given = sys.argv[1:]
    results = os.dup(1)
    os.dup2(2, 1)  # output of libraries is not a result
    job = next(job for job in JOBS if job.__name__ == name)
    measured = job(json.loads(given))
    os.write(results, (json.dumps(measured) + "\n").encode())


if __name__ == "__main__":
    main()
