"""Kill training from S3 in the middle of an epoch, and resume it from its last checkpoint.

    python tests/soak/remote_training.py --count 10

Two ranks of torch.distributed, each with two worker processes of a DataLoader, train from a bucket
through one cache, which is smaller than the dataset. Both are killed at a random moment, perhaps
again after they have resumed; then one rank trains to the end of the second epoch, while workers of
the others may still run.

The records of all steps that a checkpoint contains must be those of an undisturbed run from a local
disk, in the same order. Each image shows its number, so records are recognized by their pixels.
Also checked: which records a selection has, the size of the cache, and that no processes, shared
memory or temporary files are left.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from shared import fork, option_parser, print_outcomes  # first: it makes `tests` a package
from tests.servers.s3 import S3
from torch.utils.data import DataLoader

import recordsmith as rs
from recordsmith.torch.stream import batches

_EPOCHS = 2
_CACHE_BYTES = 5 << 20
_CLASSES = ("aster", "daisy", "rose")
_HEIGHT, _WIDTH = 64, 128
_BITS = 16  # of a number, one for each square in the first rows of pixels
_RUN_SECONDS = 120  # of one run, which fails then
_END_SECONDS = 15  # torch's workers look every 5 s whether their main process lives
_SHARED = "/dev/shm"
_ORDERS = {"global": True, "blocks": rs.BlockShuffle(16, 4)}
_STARTS = ("spawn", "forkserver")


@dataclass(frozen=True)
class Job:
    """How ranks train in one round.

    dataset: the options of `recordsmith.remote`, with the URL.
    """

    dataset: Mapping[str, Any]
    selection: str
    order: str
    start_method: str
    folder: Path


@dataclass(frozen=True)
class Run:
    """Ranks that train together, until they are killed or done."""

    number: int
    world_size: int
    worker_count: int
    batch_size: int
    save_every: int

    def log(self, folder: Path, rank: int) -> Path:
        return folder / f"run-{self.number}-rank-{rank}.log"


# -- the dataset -----------------------------------------------------------------------------------


def make_images(folder: Path, count: int) -> None:
    """Write images that show their numbers, above noise."""
    from PIL import Image

    side = _WIDTH // _BITS
    for name in _CLASSES:
        (folder / name).mkdir(parents=True)
    for number in range(count):
        bits = number >> np.arange(_BITS) & 1
        pixels = np.random.default_rng(number).integers(0, 255, (_HEIGHT, _WIDTH), dtype=np.uint8)
        pixels[:side] = np.repeat(bits * 255, side)
        path = folder / _CLASSES[number % len(_CLASSES)] / f"{number}.jpg"
        Image.fromarray(pixels).save(path, quality=90)


def numbers_in(pixels: npt.NDArray[np.uint8]) -> list[int]:
    """Return the numbers that images show."""
    side = _WIDTH // _BITS
    squares = pixels[:, 2 : side - 2, side // 2 :: side].mean(axis=(1, 3))
    return ((squares > 127) @ (1 << np.arange(_BITS))).tolist()  # type: ignore[no-any-return]


def selected(dataset: rs.Dataset, selection: str) -> rs.Dataset:
    if selection == "filter":
        return dataset.filter(f"image/class/text != '{_CLASSES[0]}'")
    if selection == "select":
        return dataset.select(chosen_positions(len(dataset)))
    return dataset


def chosen_positions(count: int) -> list[int]:
    """Return some positions in a random order, one of them twice."""
    positions = np.random.default_rng(5).permutation(count)[: count * 2 // 3].tolist()
    return [*positions, positions[0]]


def make_loader(dataset: rs.Dataset, order: str, **options: Any) -> rs.Loader:
    features = {
        "image": rs.Image(size=(_HEIGHT, _WIDTH)),
        "name": rs.Text("image/filename"),
        "label": "image/class/label",
    }
    return rs.Loader(dataset, features, shuffle=_ORDERS[order], seed=3, **options)


def numbers_of(batch: Mapping[str, Any]) -> list[int]:
    """Return the numbers of the records of a batch, by their pixels and by their names."""
    found = numbers_in(np.asarray(batch["image"]))
    named = [int(Path(name).stem) for name in batch["name"]]
    if found != named:
        raise AssertionError(f"images {found} have the names {named}")
    return found


# -- in a rank -------------------------------------------------------------------------------------


def train(job: Job, run: Run, rank: int) -> None:
    """Train until the last epoch ends: log the numbers of each step, and save checkpoints."""
    signal.alarm(2 * _RUN_SECONDS)  # whatever happens to the process that watches
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    rendezvous = f"file://{job.folder}/rendezvous-{run.number}"
    dist.init_process_group("gloo", rendezvous, rank=rank, world_size=run.world_size)
    options = dict(job.dataset)
    dataset = selected(rs.open(rs.remote(options.pop("url"), **options)), job.selection)
    loader = make_loader(
        dataset, job.order, batch_size=run.batch_size, rank=rank, world_size=run.world_size
    )
    steps_before = {}
    checkpoint = job.folder / "checkpoint"
    if checkpoint.exists():
        saved = json.loads(checkpoint.read_text())
        steps_before = saved["steps"]
        loader.load_state_dict(saved["loader"])
    context = job.start_method if run.worker_count else None
    stream = DataLoader(
        batches(loader),
        batch_size=None,
        num_workers=run.worker_count,
        multiprocessing_context=context,
    )
    log = os.open(run.log(job.folder, rank), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    step = 0
    for _ in range(loader.epoch, _EPOCHS):
        for batch in stream:
            os.write(log, json.dumps(numbers_of(batch)).encode() + b"\n")
            dist.all_reduce(torch.zeros(1))  # as of gradients: all ranks have logged this step
            step += 1
            if rank == 0 and step % run.save_every == 0:
                save(checkpoint, {**steps_before, run.number: step}, loader.state_after(step))
    if rank == 0:
        save(checkpoint, {**steps_before, run.number: step}, loader.state_after(step))
    dist.barrier()
    dist.destroy_process_group()


def save(path: Path, steps: Mapping[Any, int], state: Mapping[str, Any]) -> None:
    """Save a checkpoint; `steps`: how many steps of each run it contains."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"steps": steps, "loader": state}))
    new.rename(path)


# -- in the process that watches -------------------------------------------------------------------


class Problem(Exception):
    """Something that is wrong."""


class Soak:
    """A server with a dataset, the same dataset on a local disk, and rounds of training."""

    def __init__(self, root: Path, image_count: int, seed: int) -> None:
        self.found: Counter[str] = Counter()
        self._dice = random.Random(seed)
        self._root = root
        self._image_count = image_count
        self._orders: dict[tuple[str, str], list[list[int]]] = {}
        os.environ["XDG_CACHE_HOME"] = str(root / "home")
        self._server = S3()
        self._server.make_bucket()
        make_images(root / "images", image_count)
        self._options = self._server.options()
        options = {"store_options": self._options}
        for target in (root / "dataset", rs.remote("s3://bucket/dataset", **options)):
            output = root / "pack.log"
            end([fork(partial(self._pack, target), output)], output)
        objects = self._server.objects(prefix="dataset/")
        for path in (root / "dataset").glob("[!.]*"):
            if objects.get(path.name) != path.read_bytes():
                raise Problem(f"{path.name} differs in the bucket")
        size_bytes = sum(map(len, objects.values()))
        assert size_bytes > 1.5 * _CACHE_BYTES
        self.found["KiB of the dataset"] = size_bytes >> 10

    def close(self) -> None:
        with self._server:
            pass

    def _pack(self, target: Any) -> None:
        rs.pack(rs.ImageFolder(self._root / "images"), target, shards=6, threads=2)

    def round(self, selection: str, order: str, start_method: str) -> None:
        """Train with kills, and compare with an undisturbed run."""
        folder = self._root / "round"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        job = Job(self._dataset(), selection, order, start_method, folder)
        expected = self._expected(selection, order)
        shared_before = set(os.listdir(_SHARED))
        runs: list[Run] = []
        sessions: list[int] = []
        for number in range(1 + self._dice.choice([1, 1, 2])):
            runs.append(self._new_run(number, 2))
            sessions += self._killed(job, runs[-1], sum(map(len, expected)))
        runs.append(self._new_run(len(runs), 1))
        ranks = self._start(job, runs[-1])
        sessions += ranks
        end(ranks, folder / "output")
        trained = trained_numbers(folder, runs)
        if trained != list(chain(*expected)):
            raise Problem(difference(trained, expected))
        self.found["records"] += len(trained)
        self._check_left(folder, sessions, shared_before)

    def _dataset(self) -> dict[str, Any]:
        return {
            "url": "s3://bucket/dataset",
            "store_options": self._options,
            "cache": self._root / "cache",
            "cache_bytes": _CACHE_BYTES,
        }

    def _expected(self, selection: str, order: str) -> list[list[int]]:
        """Return the numbers of each epoch of an undisturbed local run."""
        key = selection, order
        if key not in self._orders:
            dataset = selected(rs.open(self._root / "dataset"), selection)
            loader = make_loader(dataset, order, batch_size=50, threads=0)
            epochs = [list(chain(*map(numbers_of, loader))) for _ in range(_EPOCHS)]
            if epochs[0] == epochs[1] or any(
                sorted(one) != self._numbers(key[0]) for one in epochs
            ):
                raise Problem(f"an undisturbed local run with {key} reads other records")
            self._orders[key] = epochs
        return self._orders[key]

    def _numbers(self, selection: str) -> list[int]:
        """Return the numbers of a selection, without asking for it."""
        numbers = range(self._image_count)
        if selection == "filter":
            return [number for number in numbers if number % len(_CLASSES) != 0]
        if selection == "select":
            names = [row["image/filename"][0].decode() for row in rs.open(self._root / "dataset")]
            packed = [int(Path(name).stem) for name in names]
            return sorted(packed[position] for position in chosen_positions(len(packed)))
        return list(numbers)

    def _new_run(self, number: int, world_size: int) -> Run:
        batch_size = self._dice.choice([8, 13])
        return Run(
            number,
            world_size,
            self._dice.choice([2, 2, 2, 0]),
            batch_size,
            self._dice.randint(1, 6),
        )

    def _start(self, job: Job, run: Run) -> list[int]:
        os.environ["TMPDIR"] = str(job.folder / "tmp")
        tempfile.tempdir = None
        return [
            fork(partial(train, job, run, rank), job.folder / "output", has_session=True)
            for rank in range(run.world_size)
        ]

    def _killed(self, job: Job, run: Run, record_count: int) -> list[int]:
        """Start ranks and kill them all; return their processes."""
        ranks = self._start(job, run)
        steps = record_count // (run.batch_size * run.world_size)
        kills_workers = self._dice.random() < 0.3
        wait_for = self._dice.randrange(int(0.4 * steps))  # so that another run can be killed, too
        log = run.log(job.folder, 0)
        deadline = time.monotonic() + _RUN_SECONDS
        while not log.exists() or log.read_bytes().count(b"\n") < wait_for:
            for rank in ranks:
                if os.waitpid(rank, os.WNOHANG)[0]:
                    raise Problem(f"a rank has ended\n{text_of(job.folder / 'output')}")
            if time.monotonic() > deadline:
                raise Problem("ranks that should be killed read nothing")
            time.sleep(0.005)
        time.sleep(self._dice.random() * 0.05)
        workers = chain(*map(processes_in, ranks)) if kills_workers else ()
        for process in (*ranks, *workers):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for rank in ranks:
            os.waitpid(rank, 0)
        self.found["ranks killed"] += len(ranks)
        return ranks

    def _check_left(self, folder: Path, sessions: Sequence[int], shared_before: set[str]) -> None:
        deadline = time.monotonic() + _END_SECONDS
        shared = set(os.listdir(_SHARED)) - shared_before  # also what other programs just use
        while left := [*chain(*map(processes_in, sessions)), *shared]:
            if time.monotonic() > deadline:
                raise Problem(f"processes or shared memory are left: {left}")
            time.sleep(0.05)
            shared &= set(os.listdir(_SHARED))
        # the sockets of Python's multiprocessing, whose folders it removes when a process ends
        if files := [name for name in os.listdir(folder / "tmp") if not name.startswith("pymp-")]:
            raise Problem(f"temporary files are left: {files}")
        cache = self._root / "cache"
        size_bytes = sum(path.lstat().st_blocks * 512 for path in [cache, *cache.rglob("*")])
        if size_bytes > _CACHE_BYTES:
            raise Problem(f"the cache has {size_bytes} bytes, more than {_CACHE_BYTES}")
        self.found["rounds"] += 1


# -- what runs leave -------------------------------------------------------------------------------


def trained_numbers(folder: Path, runs: Sequence[Run]) -> list[int]:
    """Return the numbers of the steps that the last checkpoint contains, in their order."""
    steps = json.loads(text_of(folder / "checkpoint"))["steps"]
    trained: list[int] = []
    for run in runs:
        step_count = steps.get(str(run.number), 0)
        logs = [
            [json.loads(line) for line in text_of(run.log(folder, rank)).splitlines()[:step_count]]
            for rank in range(run.world_size)
        ]
        for parts in zip(*logs, strict=True):  # records are dealt out to the ranks in turn
            trained += [one for turn in zip_longest(*parts) for one in turn if one is not None]
    return trained


def difference(trained: list[int], epochs: Sequence[list[int]]) -> str:
    """Describe how what was trained differs from an undisturbed run."""
    expected = list(chain(*epochs))
    missing, twice = Counter(expected) - Counter(trained), Counter(trained) - Counter(expected)
    first = next(
        (at for at, pair in enumerate(zip(trained, expected, strict=False)) if len(set(pair)) > 1),
        min(len(trained), len(expected)),
    )
    return (
        f"{len(trained)} records of {len(expected)}, {missing.total()} missing, "
        f"{twice.total()} too often, the first difference at {first}"
    )


def text_of(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


# -- processes -------------------------------------------------------------------------------------


def end(children: Sequence[int], output: Path) -> None:
    """Wait until children are done."""
    deadline = time.monotonic() + _RUN_SECONDS
    left = set(children)
    while left:
        for child in list(left):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended and status:
                raise Problem(f"a process ended with status {status}\n{text_of(output)}")
            left -= {ended}
        if time.monotonic() > deadline:
            raise Problem(f"a process hangs\n{text_of(output)}")
        time.sleep(0.005)


def processes_in(session: int) -> Iterator[int]:
    """Yield the processes of a session that run, but Python's, which cleans up after them."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_bytes()
            if int(of) == session and state != "Z" and b"resource_tracker" not in command:
                yield int(folder.name)


def rounds(dice: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield selections, orders and start methods: each combination before one comes again."""
    combinations = list(product(("all", "filter", "select"), _ORDERS, _STARTS))
    while True:
        yield from dice.sample(combinations, len(combinations))


def main() -> int:
    parser = option_parser(__doc__, 12, "rounds")
    parser.add_argument("--images", type=int, default=3000)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as root:
        soak = Soak(Path(root), options.images, dice.randrange(1 << 32))
        try:
            for number, combination in zip(range(options.count), rounds(dice), strict=False):
                try:
                    soak.round(*combination)
                except Problem as problem:
                    soak.found[f"WRONG: round {number} with {combination}: {problem}"] += 1
        finally:
            soak.close()
    return print_outcomes(soak.found, options.seed, "the same records in the same order")


if __name__ == "__main__":
    sys.exit(main())
