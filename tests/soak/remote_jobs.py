"""Jobs that write to S3 are killed at random moments, or their requests fail, and are run again.

In the end there are the same bytes as on a local disk and nothing else, and the manifest was never
there before the last shard. The credentials are in nothing that was written or printed.

    python tests/soak/remote_jobs.py --kills 300 --faults 1000
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from shared import (
    exit_code,
    fork,
    option_parser,
    print_outcomes,
)  # first: it makes `tests` a package
from tests.servers.s3 import QUICK, S3, SECRETS

import recordsmith as rs
from recordsmith.stores import Location
from recordsmith.stores.network.multipart import PART_BYTES
from recordsmith.stores.network.object_store import ObjectStore

IMAGES = 24
LARGE_IMAGES = 6
"""Of 10 MiB: two in each of the large shards, which are written in parts of the usual size."""

FAULT_KINDS = ("reset", "500", "503", "lost", "done-500", "truncated")
REFUSED = 4

_MAX_RUNS = 60
_MAX_SECONDS = 60  # of one run
_CODES = {0: "done", 1: "broke", 3: "failed", REFUSED: "refused"}


def jobs(root: Path) -> dict[str, Callable[..., Any]]:
    """What is done, by name: functions of the folder that they write."""

    def pack(out: Any, **options: Any) -> None:
        given = {"splits": {"train": 0.7, "test": 0.3}, "shards": 2, "threads": 3, **options}
        rs.pack(rs.ImageFolder(root / "source"), out, **given)

    def reshard(out: Any, **options: Any) -> None:
        given = {"shards": {"train": 3, "test": 1}, "shuffle": True, "threads": 3, **options}
        rs.reshard(root / "dataset", out, **given)

    def edit(out: Any, **options: Any) -> None:
        rs.edit(root / "dataset", out, **{"drop": ["image/filename"], "threads": 3, **options})

    def append(out: Any) -> None:
        rs.append(root / "dataset", out, threads=3)

    def pack_large(out: Any, **options: Any) -> None:
        given = {"shards": 3, "threads": 3, **options}
        rs.pack(rs.ImageFolder(root / "large-source"), out, **given)

    def reshard_large(out: Any, **options: Any) -> None:
        given = {"shards": 3, "shuffle": True, "threads": 3, **options}
        rs.reshard(root / "large-dataset", out, **given)

    return {
        "pack": pack,
        "reshard": reshard,
        "edit": edit,
        "append": append,
        "pack-large": pack_large,
        "reshard-large": reshard_large,
    }


class Soak:
    """A server with faults, and the jobs that write to it."""

    def __init__(self, root: Path, seed: int) -> None:
        self.found: Counter[str] = Counter()
        self.problems: list[str] = []
        self._dice = random.Random(seed)
        self._folder_count = 0
        self._log = root / "log"
        self._root = root
        self._server = S3()
        self._server.make_bucket()
        _make_images(root / "source", IMAGES, 40)
        _make_images(root / "large-source", LARGE_IMAGES, 1870)
        self._jobs = jobs(root)
        self._jobs["pack"](root / "dataset", shards=1)
        self._jobs["pack-large"](root / "large-dataset", shards=1)
        self._wanted: dict[str, dict[str, bytes]] = {}
        self._seconds: dict[str, float] = {}
        self._other = _visible(root / "dataset")
        self._jobs["pack"](root / "append")
        self._base = _visible(root / "append")
        for name, job in self._jobs.items():
            job(root / name)
            self._wanted[name] = _visible(root / name)
            if name.endswith("-large"):
                _check_samples(root / name, LARGE_IMAGES, 1)
                sizes = [len(data) for data in self._wanted[name].values()]
                assert sum(size > 2 * PART_BYTES for size in sizes) == 3
            else:
                _check_samples(root / name, IMAGES, 1 + (name == "append"))
            self._put(name, self._base if name == "append" else {})
            started = time.monotonic()
            assert exit_code(self._start(name, name)) == 0, self._log.read_text()
            self._seconds[name] = time.monotonic() - started
        self._server.requests()

    def kill(self, count: int) -> None:
        """Kill jobs until `count` were killed; each folder is finished afterwards."""
        while self.found["kills"] < count:
            name, folder, options = self._begin()
            for _ in range(self._dice.randint(1, 4)):
                child = self._start(name, folder, **options)
                time.sleep(self._dice.random() * self._seconds[name] * 1.1)
                os.kill(child, signal.SIGKILL)
                self.found["kills"] += exit_code(child) == -signal.SIGKILL
                self._check_unfinished(name, folder)
            if self._dice.random() < 0.3:
                self._check_refused(name, folder)
            code = exit_code(self._start(name, folder, **options))
            if code:
                self._report(f"rerun of {name} {_CODES.get(code, code)}")
            self._check_finished(name, folder)

    def fail(self, count: int) -> None:
        """Let requests fail until `count` have; a job that fails is run again until it is done."""
        while self.found["faults"] < count:
            name, folder, options = self._begin()
            self._server.fail(
                FAULT_KINDS, rate=self._dice.uniform(0.05, 0.4), seed=self._dice.randrange(1 << 32)
            )
            code = -1
            for _ in range(_MAX_RUNS):
                code = exit_code(self._start(name, folder, **options))
                self.found[f"runs with faults that were {_CODES.get(code, code)}"] += 1
                self._check_unfinished(name, folder)
                if code != 3:
                    break
            self._server.fail(rate=0)
            if code:
                self._report(f"{name} with faults {_CODES.get(code, code)}")
            self._check_finished(name, folder)

    def close(self) -> None:
        self._check_secrets()
        with self._server:
            pass

    def _begin(self) -> tuple[str, str, dict[str, Any]]:
        """Choose a job, a new folder, which may have a dataset, and options."""
        self._folder_count += 1
        folder = str(self._folder_count)
        name = self._dice.choice(["pack", "reshard"] * 2 + [*self._jobs][2:])
        options = {}
        if name == "append":
            self._put(folder, self._base)
        elif self._dice.random() < 0.3:
            self._put(folder, self._other)
            options["overwrite"] = True
        self._server.requests()
        return name, folder, options

    def _put(self, folder: str, dataset: Mapping[str, bytes]) -> None:
        for file, data in dataset.items():
            self._server.put(f"{folder}/{file}", data)

    def _start(self, name: str, folder: str, **options: Any) -> int:
        """Run a job in a child; return its process."""
        return fork(lambda: self._run(name, folder, options), self._log)

    def _run(self, name: str, folder: str, options: Mapping[str, Any]) -> int:
        signal.alarm(_MAX_SECONDS)
        for attribute, value in QUICK.items():
            module, _, last = attribute.rpartition(".")
            if last != "PART_BYTES" or not name.endswith("-large"):
                setattr(import_module(module), last, value)
        store = ObjectStore("s3://bucket", **self._server.options())
        try:
            self._jobs[name](Location(store, folder), **options)
        except rs.FileAccessError:
            traceback.print_exc()
            return 3
        except rs.OptionError:
            traceback.print_exc()
            return REFUSED
        return 0

    # -- checks ------------------------------------------------------------------------------------

    def _check_unfinished(self, name: str, folder: str) -> None:
        """If there is a new manifest, everything else is there."""
        found = self._server.objects(prefix=f"{folder}/")
        wanted = self._wanted[name]
        is_new = found.get("dataset.json") == wanted["dataset.json"]
        self.found["complete after a kill or failure"] += is_new
        if is_new and any(found.get(file) != data for file, data in wanted.items()):
            self._report(f"{name}: a manifest before its shards")
        known = (wanted, self._other, self._base)
        if "dataset.json" in found and all(
            found["dataset.json"] != dataset["dataset.json"] for dataset in known
        ):
            self._report(f"{name}: another manifest")

    def _check_refused(self, name: str, folder: str) -> None:
        """Another plan neither starts nor changes anything."""
        before = self._server.objects(prefix=f"{folder}/")
        if ".recordsmith/begun.json" not in before or name == "append":
            return
        code = exit_code(self._start(name, folder, shards=4))
        if code != REFUSED or self._server.objects(prefix=f"{folder}/") != before:
            self._report(f"another plan of {name} {_CODES.get(code, code)}")
        self.found["other plans refused"] += 1

    def _check_finished(self, name: str, folder: str) -> None:
        """There are the bytes of a local disk, and only indexes and columns next to them."""
        found = self._server.objects(prefix=f"{folder}/")
        wanted = self._wanted[name]
        left = [
            file
            for file in found
            if file not in wanted
            and not (file.startswith(".recordsmith/") and file.endswith((".index", ".columns")))
        ]
        if left:
            self._report(f"{name}: left over: {left}")
        if any(found.get(file) != data for file, data in wanted.items()):
            self._report(f"{name}: other bytes")
        requests = self._server.requests()
        is_complete = False
        for one in requests:
            file = one.key.removeprefix(f"{folder}/")
            if file == "dataset.json" and (one.has_written or one.has_deleted):
                is_complete = one.has_written
            elif file in wanted and one.has_written and is_complete and name != "append":
                self._report(f"{name}: {file} after the manifest")
        if not is_complete:
            self._report(f"{name}: no manifest was written")
        faults = Counter(one.fault for one in requests if one.fault)
        self.found["faults"] += sum(faults.values())
        self.found += Counter({f"faults: {kind}": count for kind, count in faults.items()})
        self.found[f"datasets: {name}"] += 1
        self._server.delete(f"{folder}/")
        # uploads of which the job does not know, or could not remove
        unknown = sum(
            bool(one.fault)
            and ((one.method == "POST" and "uploads" in one.query) or one.method == "DELETE")
            for one in requests
        )
        left_uploads = [key for key in self._server.uploads() if key.startswith(f"{folder}/")]
        if faults and len(left_uploads) > unknown:
            self._report(f"{name}: {len(left_uploads)} uploads left, {unknown} unknown")

    def _check_secrets(self) -> None:
        files = {str(path): path.read_bytes() for path in self._root.rglob("*") if path.is_file()}
        for name, data in (files | self._server.objects()).items():
            hidden = [word for word in (*SECRETS.values(), "Signature=") if word.encode() in data]
            if hidden:
                self._report(f"{name} has a secret: {hidden}")

    def _report(self, what: str) -> None:
        self.found[f"WRONG: {what}"] += 1
        self.problems.append(self._log.read_text()[-3000:])


def _make_images(folder: Path, count: int, width: int) -> None:
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    for number in range(count):
        image = random.integers(0, 255, (width, width, 3), dtype=np.uint8)
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path, compress_level=0)


def _check_samples(folder: Path, count: int, times: int) -> None:
    """Every image is there, as often as it was packed."""
    images = Counter(row["image/encoded"][0] for row in rs.open(folder))
    assert sorted(images.values()) == [times] * count
    assert rs.verify(folder, deep=True).is_good


def _visible(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def work(kills: int, faults: int, seed: int) -> Counter[str]:
    """What was found in one process."""
    with tempfile.TemporaryDirectory() as root:
        soak = Soak(Path(root), seed)
        try:
            soak.kill(kills)
            soak.fail(faults)
        finally:
            soak.close()
    for problem in soak.problems:
        print(problem, file=sys.stderr)
    return soak.found


def main() -> int:
    parser = option_parser(__doc__, 300, "kills; thrice as many faults")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--faults", type=int)
    parser.add_argument("--processes", type=int, default=4)
    options = parser.parse_args()
    import moto  # noqa: F401 - here, so that a run without it is skipped

    kills = options.count if options.kills is None else options.kills
    faults = 3 * options.count if options.faults is None else options.faults
    processes = options.processes
    shares = repeat(-(-kills // processes)), repeat(-(-faults // processes))
    seeds = range(options.seed, options.seed + processes)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        outcomes = sum(pool.map(work, *shares, seeds), Counter[str]())
    return print_outcomes(outcomes, options.seed, "the same bytes, and nothing left over")


if __name__ == "__main__":
    sys.exit(main())
