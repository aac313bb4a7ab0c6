"""Interrupted jobs leave no partial output and can be resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import recordsmith as rs

from ..places import contents
from .flower_jobs import OPTIONS, Meddling, is_done_or_nothing, visible

# -- interrupted jobs ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("at", [0, 7, 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_stopped_by_the_source(
    flowers: Path,
    tmp_path: Path,
    undisturbed: dict[str, bytes],
    error: type[BaseException],
    at: int,
    threads: int,
) -> None:
    def stop() -> None:
        raise error

    with pytest.raises(error):
        rs.pack(Meddling(flowers, at, stop), tmp_path, **OPTIONS, threads=threads)
    assert is_done_or_nothing(tmp_path)
    done_count = len(list((tmp_path / ".recordsmith").glob("*.done")))
    again = Meddling(flowers, -1, None)
    report = rs.pack(again, tmp_path, **OPTIONS)
    assert report.reused_count == done_count
    assert contents(tmp_path) == undisturbed
    if threads == 1:  # shard after shard: what was complete is not read again
        lengths = [len(rs.open(file)) for file in sorted(tmp_path.glob("*.tfrecord"))]
        complete = [sum(lengths[:count]) for count in range(5) if sum(lengths[:count]) <= at]
        assert again.read_count <= 21 - complete[-1]  # one more may have been finished


_KILLER = """
import dataclasses, os, signal, sys, json, threading
import recordsmith as rs
root, out, setup, options, moments = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Killing(rs.ImageFolder):
    count, at, lock = 0, -1, threading.Lock()
    def list_samples(self):
        listing = super().list_samples()
        self.reader = listing.reader
        return dataclasses.replace(listing, reader=self)
    def kinds(self):
        return {}
    def read(self, sample, note):
        with self.lock:
            self.count += 1
            if self.count == self.at:
                die()
        return self.reader.read(sample, note)
    def describe(self):
        return {**super().describe(), "kind": "ImageFolder"}

def arm(name, left):
    real = getattr(os, name)
    def armed(*arguments, **keywords):
        left[0] -= 1
        if left[0] < 0:
            die()
        return real(*arguments, **keywords)
    setattr(os, name, armed)

rs.pack, rs.open, rs.ShardWriter  # everything is imported before the first fork
import PIL.Image, recordsmith.image.formats.probe
for kind, number in moments:
    folder = f"{out}/{kind}-{number}"
    child = os.fork()
    if child == 0:
        if setup is not None:
            rs.pack(rs.ImageFolder(root), folder, **setup)
        source = Killing(root)
        if kind == "read":
            source.at = number
        else:
            left = [number]
            for name in ("replace", "unlink", "rmdir"):
                arm(name, left)
        rs.pack(source, folder, **options)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(int(os.WIFSIGNALED(status)), flush=True)
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills copies of a process")


def _kill(
    root: Path, out: Path, setup: Any, options: Mapping[str, Any], moments: list[tuple[str, int]]
) -> list[bool]:
    """Pack into out/<kind>-<number> for each moment and kill it then; return which were killed."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, str(root), str(out),
         *map(json.dumps, (setup, options, moments))],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return [line == "1" for line in done.stdout.split()]


@needs_fork
def test_killed_while_writing(flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    moments = [("read", number) for number in (1, 2, 5, 10, 15, 20, 21)]
    assert all(_kill(flowers, tmp_path, None, {**OPTIONS, "threads": 2}, moments))
    for kind, number in moments:
        folder = tmp_path / f"{kind}-{number}"
        assert all(name.startswith(".") for name in contents(folder))
        with pytest.raises((rs.OptionError, rs.CorruptDataError)):
            rs.open(folder)
        report = rs.pack(rs.ImageFolder(flowers), folder, **OPTIONS)
        assert report.is_new
        assert contents(folder) == undisturbed


@needs_fork
@pytest.mark.parametrize("options", [OPTIONS, {**OPTIONS, "overwrite": True}])
def test_changed_images_and_damaged_shards_are_packed_again(
    tmp_path: Path, images: ModuleType, options: dict[str, Any]
) -> None:
    root = images.make_folder(tmp_path / "flowers", {"daisy": 10, "rose": 6, "tulip": 5})
    assert all(_kill(root, tmp_path, None, {**OPTIONS, "threads": 1}, [("read", 21)]))
    out = tmp_path / "read-21"
    done = sorted((out / ".recordsmith").glob("*.done"))
    assert len(done) >= 3
    one, _two, three = (path.with_suffix(".partial") for path in done[:3])
    data = bytearray(one.read_bytes())
    data[len(data) // 2] ^= 1  # a bit of a finished shard is lost
    one.write_bytes(data)
    done[1].write_text("{}")  # and a note
    packed = json.loads(done[2].read_bytes())
    dataset = rs.open(three)
    name = dataset[0]["image/filename"][0].decode()  # type: ignore[call-overload,index]
    changed = bytearray((root / name).read_bytes())
    changed[-3] ^= 1  # and an image changes, at the same length
    (root / name).write_bytes(changed)
    again = Meddling(root, -1, None)
    rs.pack(again, out, **options)
    reused = done[3:]
    counts = {shard["file"]: shard["records"] for shards in
              json.loads((out / "dataset.json").read_text())["splits"].values()
              for shard in shards}  # fmt: skip
    assert again.read_count == 21 - sum(counts[path.name.removesuffix(".done")] for path in reused)
    assert packed["records"] == counts[packed["file"]]
    assert rs.verify(out).is_good
    rs.pack(rs.ImageFolder(root), tmp_path / "plain", **OPTIONS)
    assert contents(out) == contents(tmp_path / "plain")


@needs_fork
def test_overwritten_dataset_stays_until_the_job_is_done(flowers: Path, tmp_path: Path) -> None:
    """Also if shards of an interrupted job, with the same names, are damaged."""
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    before = visible(contents(tmp_path))

    def stop() -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            rs.pack(
                Meddling(flowers, 20, stop), tmp_path, **{**OPTIONS, "seed": 4},
                threads=1, overwrite=True,
            )  # fmt: skip
        assert visible(contents(tmp_path)) == before
        left = list((tmp_path / ".recordsmith").glob("*.tfrecord.partial"))
        assert left
        for path in left:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)


class Aftermath(NamedTuple):
    """The steps of publishing at which a killed job had each consequence."""

    killed: list[int]
    shown_in_part: list[int]
    refused: list[int]  # to resume
    finished_otherwise: list[int]
    left_behind: list[int]


def _aftermath(
    root: Path, out: Path, setup: Any, options: Mapping[str, Any], wanted: dict[str, bytes]
) -> Aftermath:
    """Kill a job at every step, check the folder, and rerun the job."""
    moments = [("step", number) for number in range(80)]
    killed = _kill(root, out, setup, {**options, "threads": 2}, moments)
    assert killed == sorted(killed, reverse=True)
    assert not killed[-1]  # every step was tried
    found = Aftermath([], [], [], [], [])
    for kind, number in moments:
        folder = out / f"{kind}-{number}"
        if killed[number]:
            found.killed.append(number)
        if not _is_whole_or_refused(folder):
            found.shown_in_part.append(number)
        try:
            rs.pack(rs.ImageFolder(root), folder, **options)
        except rs.RecordsmithError:
            found.refused.append(number)
            continue
        if visible(contents(folder)) != visible(wanted):
            found.finished_otherwise.append(number)
        if any(name.endswith((".partial", ".done")) for name in contents(folder)):
            found.left_behind.append(number)
    return found


@pytest.fixture(scope="module", params=["new", "overwritten"])
def aftermath(
    request: pytest.FixtureRequest,
    flowers: Path,
    undisturbed: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> Aftermath:
    setup, options = None, OPTIONS
    if request.param == "overwritten":
        setup = {"shards": {"train": 1, "old": 2}, "splits": {"train": 0.5, "old": 0.5}, "seed": 8}
        options = {**OPTIONS, "overwrite": True}
    out = tmp_path_factory.mktemp(request.param)
    return _aftermath(flowers, out, setup, options, undisturbed)


@pytest.mark.slow
@needs_fork
def test_killed_while_publishing_leaves_no_partial_dataset(
    aftermath: Aftermath,
) -> None:
    assert aftermath.killed[:6] == list(range(6))  # four shards, the labels, the manifest
    assert aftermath.shown_in_part == []


@needs_fork
def test_killed_while_publishing_can_resume(aftermath: Aftermath) -> None:
    assert aftermath.refused == []


@needs_fork
def test_killed_while_publishing_finishes_with_the_same_bytes(
    aftermath: Aftermath,
) -> None:
    assert aftermath.finished_otherwise == []


@needs_fork
def test_killed_while_publishing_leaves_no_temporary_files(aftermath: Aftermath) -> None:
    assert aftermath.left_behind == []


def _is_whole_or_refused(folder: Path) -> bool:
    """False if a part of the dataset can be opened as the whole."""
    try:
        dataset = rs.open(folder)
    except rs.RecordsmithError:
        return True
    return len(list(dataset)) == 21
