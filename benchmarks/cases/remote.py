"""Data on a server: `slow_server` and the jobs of `remote_jobs`, next to their targets.

Every figure is of a process of its own, with an empty cache folder.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from case import Settings, Table
from inputs import Inputs
from measure import make_inputs, say
from slow_server import DELAY_SECONDS, LINK_RATE, Request, SlowServer, longest_chain, most_at_once

HERE = Path(__file__).resolve().parent.parent
_BATCH = 32
_MIB = 1 << 20

_LINK = (
    f"Responses begin after {DELAY_SECONDS * 1e3:.0f} ms; 50 MB/s a connection, "
    f"{LINK_RATE / 1e6:.0f} MB/s in all; S3 without signatures. CPU time is that of the client."
)


class Remote:
    """The server with the inputs, and the jobs that read from it."""

    def __init__(self, settings: Settings, *names: str) -> None:
        make_inputs(settings, tuple(f"remote/{name}" for name in names))
        self.settings = settings
        self.folder = Inputs(settings.folder, settings.quick).path("remote")
        self.server = SlowServer(self.folder)

    def __enter__(self) -> Self:
        self._scratch = Path(tempfile.mkdtemp(dir=self.folder.parent))
        self.server.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: PYI036
        self.server.__exit__(*error)
        shutil.rmtree(self._scratch)

    def local(self, name: str, job: str = "loader", **options: Any) -> dict[str, Any]:
        """Run a job on the files themselves."""
        return self._run(job, place=str(self.folder / name), **options)

    def remote(self, name: str, job: str = "loader", **options: Any) -> dict[str, Any]:
        """Run a job through the server; its requests are added."""
        return self._with_requests(job, place=f"{self.server.bucket}/{name}", **options)

    def cache_folder(self) -> str:
        """Return an empty folder for a cache."""
        return tempfile.mkdtemp(dir=self._scratch)

    def _with_requests(self, job: str, **options: Any) -> dict[str, Any]:
        mark = self.server.mark()
        measured = self._run(job, **options)
        return {**measured, "requests": self.server.requests(mark)}

    def _run(self, job: str, **options: Any) -> dict[str, Any]:
        given = {"store_options": self.server.store_options, **options}
        with tempfile.TemporaryDirectory(dir=self._scratch) as cache:
            done = subprocess.run(
                [sys.executable, str(HERE / "remote_jobs.py"), job, json.dumps(given)],
                stdout=subprocess.PIPE,
                check=True,
                env={**os.environ, **self.server.aws_environment, "XDG_CACHE_HOME": cache},
            )
        return json.loads(done.stdout)  # type: ignore[no-any-return]


def sequential(settings: Settings) -> Table:
    """`records()` and `verify` of a gigabyte."""
    say("remote-sequential")
    jobs = {"`records()`": "records", "`verify`": "verify", "obstore alone": "plain"}
    runs: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {name: [] for name in jobs}
    with Remote(settings, "large") as server:
        for _ in _rounds(settings):
            for name, job in jobs.items():
                if job == "plain":
                    measured = server.remote("large/train.tfrecord", job)
                    runs[name].append((measured, measured))
                else:
                    runs[name].append((server.remote("large", job), server.local("large", job)))
    rows = []
    for name, pairs in runs.items():
        share = _median(remote["count"] / remote["wall"] / LINK_RATE for remote, _ in pairs)
        memory = _median(remote["memory"] / _MIB for remote, _ in pairs)
        cpu, local = (_median(pair[which]["cpu"] / pair[which]["count"] * 1e9 for pair in pairs)
                      for which in (0, 1))  # fmt: skip
        requests = pairs[-1][0]["requests"]
        if jobs[name] == "plain":
            rows.append((name, f"{share:.1%}", "", "", f"{memory:.0f}", "", "", f"{cpu:.2f}", "",
                         f"{len(requests):,}", str(most_at_once(requests))))  # fmt: skip
            continue
        rows.append(
            (name, f"{share:.1%}", "90%", _met(share >= 0.9), f"{memory:.0f}", "64",
             _met(memory <= 64), f"{cpu:.2f}", f"{local:.2f}", f"{len(requests):,}",
             str(most_at_once(requests)))
        )  # fmt: skip
    return Table(
        "remote-sequential",
        "Read and verify a gigabyte on a server",
        f"10,000 records of 110 kB in one shard. {_LINK} Memory is above the imports. "
        "obstore alone: the bytes in requests of 2 MiB, 16 at the same time, which shows what this "
        "machine can do now.",
        ("", "of the bandwidth", "target", "met", "MiB", "target", "met", "CPU s a GB", "local",
         "requests", "at once"),
        tuple(rows),
        data={name: [_plain(remote) for remote, _ in pairs] for name, pairs in runs.items()},
    )  # fmt: skip


def loader(settings: Settings) -> Table:
    """Training at half the local rate: what decoders wait for, and the CPU time of an image."""
    say("remote-loader")
    rows = []
    runs: dict[str, list[dict[str, Any]]] = {"local": [], "blocks": [], "all": []}
    targets = {"blocks": 0.05, "all": 0.10}
    titles = {
        "local": "local, shuffled globally",
        "blocks": "remote, `BlockShuffle(32, 16)`",
        "all": "remote, shuffled globally",
    }
    most = 20 if settings.quick else None  # a whole epoch: what is read ahead is used
    with Remote(settings, "camera") as server:
        fastest = max(
            _rate(server.local("camera", most_batches=most)["epochs"][0]) for _ in range(2)
        )
        options: dict[str, Any] = {"step_seconds": 2 * _BATCH / fastest, "most_batches": most}
        for _ in _rounds(settings):
            runs["local"].append(server.local("camera", **options)["epochs"][0])
            for shuffle in targets:
                run = server.remote("camera", shuffle=shuffle, **options)
                runs[shuffle].append({**run["epochs"][0], "requests": len(run["requests"])})
    waited = {name: _median(run["decoders_waited"] for run in all_) for name, all_ in runs.items()}
    cpu = {name: _median(run["cpu"] / run["count"] for run in all_) for name, all_ in runs.items()}
    for name, title in titles.items():
        count = runs[name][0]["count"]
        shown = [title, f"{_median(map(_rate, runs[name])):,.0f}", f"{waited[name]:.1%}"]
        if name == "local":
            rows.append((*shown, "", "", f"{cpu[name] * 1e6:,.0f}", "", "", "", ""))
            continue
        extra, ratio = waited[name] - waited["local"], cpu[name] / cpu["local"]
        requests = _median(run["requests"] / count for run in runs[name])
        rows.append(
            (*shown, f"{targets[name]:.0%} more", _met(extra <= targets[name]),
             f"{cpu[name] * 1e6:,.0f}", f"{ratio:.3f}", "1.15", _met(ratio <= 1.15),
             f"{requests:.2f}")
        )  # fmt: skip
    return Table(
        "remote-loader",
        "Train from images on a server, at half the local rate",
        f"JPEG files of 107 kB in ten shards, batches of {_BATCH}, two threads; the loop takes "
        f"{options['step_seconds'] * 1e3:.0f} ms for each batch, as fast as half of "
        f"{fastest:,.0f} images a second. {_LINK} Decoders read in both cases: the share of "
        "their time that is reading may be larger by the target.",
        ("", "images/s", "decoders read", "target", "met", "CPU µs an image", "local = 1",
         "target", "met", "requests an image"),
        tuple(rows),
        data=runs,
    )  # fmt: skip


def cached(settings: Settings) -> Table:
    """Later epochs from a cache, and a cache that is much too small."""
    say("remote-cache")
    with Remote(settings, "camera") as server:
        size = sum(path.stat().st_size for path in (server.folder / "camera").glob("*.tfrecord"))
        tenth, ample = size // 10, 2 * size
        ways: dict[str, Callable[[], dict[str, Any]]] = {
            "local": lambda: server.local("camera", epochs=3),
            "cache of everything, third epoch": lambda: server.remote(
                "camera", epochs=3, cache=server.cache_folder(), cache_bytes=ample
            ),
            "without a cache": lambda: server.remote("camera", epochs=3),
            "cache of a tenth, third epoch": lambda: server.remote(
                "camera", epochs=3, cache=server.cache_folder(), cache_bytes=tenth
            ),
        }
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
        for _ in _rounds(settings):
            for name, run in ways.items():
                runs[name].append(run())
    rates = {name: _median(_rate(run["epochs"][-1]) for run in all_)
             for name, all_ in runs.items()}  # fmt: skip
    cpu = {name: _median(run["epochs"][-1]["cpu"] / run["epochs"][-1]["count"] for run in all_)
           for name, all_ in runs.items()}  # fmt: skip
    targets = {
        "cache of everything, third epoch": ("local", 0.97),
        "cache of a tenth, third epoch": ("without a cache", 1.0),
    }
    rows = []
    for name in runs:
        shown = (name, f"{rates[name]:,.0f}", f"{cpu[name] * 1e6:,.0f}")
        if name not in targets:
            rows.append((*shown, "", "", "", ""))
            continue
        other, target = targets[name]
        by_clock, by_cpu = rates[name] / rates[other], cpu[other] / cpu[name]
        rows.append(
            (*shown, f"{by_clock:.3f}", f"{by_cpu:.3f}", f"{target:.2f} of {other}",
             _met(max(by_clock, by_cpu) >= target))
        )  # fmt: skip
    return Table(
        "remote-cache",
        "Later epochs through a cache",
        f"The same images, shuffled globally, as fast as it goes. {_LINK} A target is met by "
        "either clock: other work of the machine disturbs the one, idle threads the other.",
        ("", "images/s", "CPU µs an image", "images/s, ratio", "CPU, ratio", "target", "met"),
        tuple(rows),
        data={name: [_plain(run) for run in all_] for name, all_ in runs.items()},
    )


def requests(settings: Settings) -> Table:
    """How many requests, bytes and latencies small questions take."""
    say("remote-requests")
    with Remote(settings, "1000-shards", "sparse.tfrecord", "camera") as server:
        questions = {
            "`inspect` of 1,000 shards": (server.remote("1000-shards", "inspect"), 4, None, None),
            "`head` of an object of 100 GB": (
                server.remote("sparse.tfrecord", "head"),
                None,
                2,
                None,
            ),
            "first batch, shuffled globally": (
                server.remote("camera", "first_batch"),
                None,
                None,
                8,
            ),
        }
    rows = []
    for name, (measured, most_requests, most_mib, most_in_a_row) in questions.items():
        until = measured.get("until", math.inf)  # the loader goes on reading
        seen = [one for one in measured["requests"] if one.stop <= until]
        counts = (
            len(seen),
            sum(request.size_bytes for request in seen) / _MIB,
            longest_chain(_without_ahead(seen) if "until" in measured else seen),
        )
        limits = (most_requests, most_mib, most_in_a_row)
        which = next(at for at, limit in enumerate(limits) if limit is not None)
        limit = limits[which]
        assert limit is not None
        what = ("requests", "MiB", "in a row")[which]
        rows.append(
            (name, f"{counts[0]:,}", f"{counts[1]:.2f}", str(counts[2]),
             f"{measured['wall'] * 1e3:,.0f}", f"{limit} {what}", _met(counts[which] <= limit))
        )  # fmt: skip
    return Table(
        "remote-requests",
        "Small questions to data on a server",
        f"{_LINK} In a row: the longest chain of requests, each of which began after the end of "
        "the one before. A listing has 1,000 keys a page, and the 1,000 shards have one more.",
        ("", "requests", "MiB", "in a row", "ms", "target", "met"),
        tuple(rows),
        data={name: _plain(measured) for name, (measured, *_) in questions.items()},
    )


def _without_ahead(requests: list[Request]) -> list[Request]:
    """Requests for records are those of the first batch: the others are of later batches."""
    of_records = [one for one in requests if one.path.endswith(".tfrecord")]
    later = set(of_records[_BATCH:])
    return [one for one in requests if one not in later]


REPORTS = {
    "remote-sequential": sequential,
    "remote-loader": loader,
    "remote-cache": cached,
    "remote-requests": requests,
}


def _rounds(settings: Settings) -> range:
    say(f"  {settings.repeat} rounds")
    return range(settings.repeat)


def _rate(epoch: dict[str, Any]) -> float:
    """Images a second after the first batch."""
    return float((epoch["count"] - _BATCH) / (epoch["wall"] - epoch["first"]))


def _median(values: Any) -> float:
    return float(statistics.median(values))


def _met(is_met: bool) -> str:
    return "yes" if is_met else "**no**"


def _plain(measured: dict[str, Any]) -> dict[str, Any]:
    """The same for JSON: the number of requests."""
    return (
        {**measured, "requests": len(measured["requests"])} if "requests" in measured else measured
    )
