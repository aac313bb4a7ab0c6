"""What all tables of rivals need: images, environments, the processes of rivals, rounds."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rival import Rival, digest_of, photos_of, written_once

from clock import process_ticks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS: dict[str, str | None] = {"torch": "torch==2.13.0", "tensorflow": None}
"""Each has a lock file here, `NAME.txt`. What is installed before it is in none, as its build
depends on the machine: torch for the CPU, or for a GPU."""

RIVALS = (
    "recordsmith_shards",
    "torch_files",
    "webdataset_tars",
    "mds",
    "litdata_chunks",
    "energon_tars",
    "tf_data",
    "dali_records",
    "spdl_files",
    "grain_array_record",
    "hf_arrow",
    "hf_parquet",
    "lance_table",
)
"""The modules here that have a `RIVAL`, in the order of the tables."""

SETTINGS = tuple((threads, prefetch) for threads in (1, 2) for prefetch in (1, 2, 4))
"""Threads and batches ahead, all of which every rival tries."""

_NO_RESULT = ("missing", "unsupported", "failed")
_SAMPLE_SECONDS = 0.05

Measured = dict[str, Any]
"""What a job printed, or one of "missing", "unsupported" or "failed" with the reason."""


@cache
def rival_of(module: str) -> Rival:
    rival: Rival = importlib.import_module(module).RIVAL
    return rival


def with_variants(modules: Iterable[str], variants: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Each module, and those that a table has next to it."""
    for module in modules:
        yield from (module, *variants.get(module, ()))


def reason(measured: Measured) -> str | None:
    """Why there is no result, in words for a table; None if there is one."""
    for name in _NO_RESULT:
        if name in measured:
            return f"{name}: {measured[name]}".replace("|", "/").replace("\n", " ")
    return None


def error_class(text: str) -> str:
    """The class that an error, or the end of a traceback, names.

    Messages may have folders of this machine, which do not belong in a table.
    """
    found = re.findall(r"^(?:failed: )?(?:\w+\.)*([A-Z]\w*[a-z]\w*): ", text, re.MULTILINE)
    return found[-1] if found else "an error"


def spread(values: Iterable[float], digits: int = 3) -> str:
    """The median, and the least and the most."""
    chosen = sorted(values)
    middle, least, most = (
        number_text(value, digits) for value in (statistics.median(chosen), chosen[0], chosen[-1])
    )
    return middle if least == most else f"{middle} ({least} to {most})"


def number_text(value: float, digits: int = 3) -> str:
    """Rounded to some digits, all of those before the point shown."""
    return f"{value:,.0f}" if abs(value) >= 10**digits / 10 else f"{value:.{digits}g}"


@dataclass
class Bench:
    """What a run measures.

    folder: where inputs are kept.
    environments: the folder of the environments.
    rivals: the modules to be compared.
    rounds: each rival runs once in each.
    quick: little data; no settings are tried.
    own_photos: a folder of images of the user, or None for drawn ones.
    """

    folder: Path
    environments: Path
    rivals: tuple[str, ...]
    rounds: int
    quick: bool
    own_photos: Path | None = None
    _disagreeing: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _pixels: Measured = field(default_factory=dict)

    def photos(self, kind: str = "photos") -> Path:
        """The folder of images, made if it is missing: "photos", "tiny" or a "few" tiny ones."""
        if self.own_photos is not None and kind == "photos":
            name = hashlib.sha256(str(self.own_photos.resolve()).encode()).hexdigest()[:8]
            return self._make(f"own-{name}", self._link_own)
        counts = {"photos": (128, 2_048), "tiny": (2_000, 20_000), "few": (200, 600)}
        count = counts[kind][not self.quick]
        return self._make(f"{kind}-{count}", lambda out: _draw(out, kind, count))

    def count(self, kind: str = "photos") -> int:
        return len(photos_of(self.photos(kind)))

    def packed(self, module: str, kind: str = "photos") -> Path | str:
        """Where the packed form of the images is, made if it is missing; or why there is none."""
        photos = self.photos(kind)
        if rival_of(module).pack is None:
            return photos
        out = self.folder / "packed" / photos.name / module
        if not out.exists():
            partial = out.with_name(f"{module}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.parent.mkdir(parents=True, exist_ok=True)
            why = reason(self.job(module, "pack", images=str(photos), out=str(partial)))
            if why is not None:
                return why
            partial.rename(out)
        return out

    def python(self, module: str) -> str:
        return str(self.environments / rival_of(module).environment / "bin" / "python")

    def start(self, module: str, job: str, **options: Any) -> subprocess.Popen[str]:
        """Begin a job in a process of the rival's environment; its last line is the result.

        job: a function of `job`, or "MODULE:FUNCTION" of another module.
        """
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TF_CPP_MIN_LOG_LEVEL": "3"}
        # compiled modules are kept, as installing a package does
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment |= {"HF_HOME": str(self.folder / "hugging-face"), "HF_HUB_OFFLINE": "1"}
        command = [self.python(module), str(HERE / "job.py"), module, job, json.dumps(options)]
        try:
            return subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=HERE,
                env=environment,
                start_new_session=True,
            )
        except FileNotFoundError:
            message = f"{command[0]} is missing: run `python {HERE.name}/run.py install`"
            raise SystemExit(message) from None

    def job(
        self, module: str, job: str, *, timeout: float = 900, memory: bool = False, **options: Any
    ) -> Measured:
        """Do a job, and return what it printed.

        memory: add "memory", the most bytes that its processes had at the same time (the
            proportional set size: pages that several share count once).
        """
        process = self.start(module, job, **options)
        peak = _PeakMemory(process.pid) if memory else None
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"failed": f"no result after {timeout:.0f} s"}
        finally:
            memory_bytes = 0 if peak is None else peak.end()
        if not out.strip():
            lines = errors.strip().splitlines() or [f"ended with code {process.returncode}"]
            return {"failed": lines[-1][:200]}
        measured: Measured = json.loads(out.splitlines()[-1])
        return measured | ({"memory": memory_bytes} if memory else {})

    def settings(self, module: str) -> dict[str, Any]:
        """The threads and batches ahead with which a rival was the fastest; see `tables.settings`.

        Two of each if they were not tried.
        """
        try:
            chosen = json.loads(self.settings_file.read_text())[module]
        except (OSError, KeyError):
            chosen = (2, 2)
        return dict(zip(("threads", "prefetch"), chosen, strict=True))

    @property
    def settings_file(self) -> Path:
        return self.folder / "settings.json"

    def disagreement(self, module: str, kind: str = "photos") -> str | None:
        """The gate before anything is timed: why a rival's images are not those of the files."""
        key = module, kind
        if key not in self._disagreeing:
            self._disagreeing[key] = self._compare(module, kind)
        return self._disagreeing[key]

    def rounds_of(
        self, measure: Callable[[str, Path], Measured], kind: str = "photos"
    ) -> dict[str, list[Measured]]:
        """Measure all rivals, one after the other in each round.

        measure: called with a module and the place of its packed images.

        Returns the results of each rival, or one with the reason why there are none.
        """
        results: dict[str, list[Measured]] = {}
        places: dict[str, Path] = {}
        for module in self.rivals:
            place = self.packed(module, kind)
            why = place if isinstance(place, str) else self.disagreement(module, kind)
            if why is not None:
                results[module] = [{"failed": why.removeprefix("failed: ")}]
            else:
                assert isinstance(place, Path)
                results[module], places[module] = [], place
        for number in range(self.rounds):
            say(f"  round {number + 1} of {self.rounds}")
            for module, place in list(places.items()):
                say(f"    {module}")
                measured = measure(module, place)
                if reason(measured) is not None:
                    results[module] = [measured]
                    del places[module]
                else:
                    results[module].append(measured)
        return results

    def _compare(self, module: str, kind: str) -> str | None:
        say(f"  comparing the images of {module}")
        place = self.packed(module, kind)
        if isinstance(place, str):
            return place
        found = self.job(module, "content", place=str(place))
        why = reason(found)
        if why is not None:
            return why
        if found["digest"] != self.expected_digest(kind):
            return (
                f"failed: its {found['count']:,} images differ from the {self.count(kind):,} files"
            )
        if kind != "photos":
            return None
        pixels = self.job(module, "pixels", place=str(place))
        if reason(pixels) is not None:
            return reason(pixels)
        self._pixels = self._pixels or pixels  # of the first rival
        reference = self._pixels
        same = pixels["count"] == reference["count"] and pixels["shapes"] == reference["shapes"]
        # tf.data rounds down, which makes half a level, and has a faster, less exact decoder
        if not same or abs(pixels["mean"] - reference["mean"]) > 1.5:
            return f"failed: its pixels are {pixels}, those of the first rival {reference}"
        return None

    def expected_digest(self, kind: str = "photos") -> str:
        """Of the files themselves: what "content" of each rival must be."""
        if kind not in self._digests:
            self._digests[kind] = self._digest(kind)
        return self._digests[kind]

    def _digest(self, kind: str) -> str:
        return digest_of(
            (photo.key, hashlib.sha256(photo.path.read_bytes()).hexdigest())
            for photo in photos_of(self.photos(kind))
        )

    def _make(self, name: str, make: Callable[[Path], None]) -> Path:
        """An input, whole or not at all."""
        path = self.folder / name
        if not path.exists():
            say(f"  making {path}")
        return written_once(path, make)

    def _link_own(self, out: Path) -> None:
        assert self.own_photos is not None
        suffixes = {".jpg", ".jpeg"}
        files = [path for path in self.own_photos.glob("*/*") if path.suffix.lower() in suffixes]
        if not files:
            raise SystemExit(f"{self.own_photos} has no folders of JPEG files, one for each class")
        for number, path in enumerate(sorted(files)):
            (out / path.parent.name).mkdir(exist_ok=True)
            (out / path.parent.name / f"{number:06d}.jpg").symlink_to(path.resolve())


def _draw(out: Path, kind: str, count: int) -> None:
    from annotated import draw_camera

    shutil.rmtree(out)
    if kind == "photos":  # the camera of `inputs`
        draw_camera(out, count, 500, 375, grain=(6, 14), quality=95)
    else:
        draw_camera(out, count, 32, 24, grain=(3, 9), quality=75)


class _PeakMemory:
    """Looks at the memory of a process and its children again and again."""

    def __init__(self, process: int) -> None:
        self._process, self._most = process, 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> int:
        """The most bytes that they had."""
        self._is_over.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._is_over.wait(_SAMPLE_SECONDS):
            total = sum(map(_proportional_bytes, process_ticks(self._process)))
            self._most = max(self._most, total)


def _proportional_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
