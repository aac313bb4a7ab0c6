"""Interrupted jobs leave no partial output and can be resumed."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs

from ...killed_jobs import killed_before
from ...places import contents
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


def _stop() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("options", [OPTIONS, {**OPTIONS, "overwrite": True}])
def test_changed_images_and_damaged_shards_are_packed_again(
    tmp_path: Path, images: ModuleType, options: dict[str, Any]
) -> None:
    root = images.make_folder(tmp_path / "flowers", {"daisy": 10, "rose": 6, "tulip": 5})
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        rs.pack(Meddling(root, 20, _stop), out, **OPTIONS, threads=1)
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


def test_overwritten_dataset_stays_until_the_job_is_done(flowers: Path, tmp_path: Path) -> None:
    """Also if shards of an interrupted job, with the same names, are damaged."""
    rs.pack(rs.ImageFolder(flowers), tmp_path, **OPTIONS)
    before = visible(contents(tmp_path))

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            rs.pack(
                Meddling(flowers, 20, _stop), tmp_path, **{**OPTIONS, "seed": 4},
                threads=1, overwrite=True,
            )  # fmt: skip
        assert visible(contents(tmp_path)) == before
        left = list((tmp_path / ".recordsmith").glob("*.tfrecord.partial"))
        assert left
        for path in left:
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["new", "overwritten"])
def test_killed_before_any_change(
    flowers: Path, tmp_path: Path, undisturbed: dict[str, bytes], kind: str
) -> None:
    """No partial dataset can be opened, and a rerun gives the same bytes and leaves nothing."""
    old = {"shards": {"train": 1, "old": 2}, "splits": {"train": 0.5, "old": 0.5}, "seed": 8}
    options = {**OPTIONS, "overwrite": kind == "overwritten", "threads": 1}
    for step in count(1):
        folder = tmp_path / str(step)
        if kind == "overwritten":
            rs.pack(rs.ImageFolder(flowers), folder, **old)

        def pack() -> None:
            rs.pack(rs.ImageFolder(flowers), folder, **options)  # noqa: B023 - called in this round

        killed = killed_before(step, pack)
        assert _is_whole_or_refused(folder), step
        pack()
        assert contents(folder) == undisturbed, step
        if not killed:
            break
    assert step > 20


def _is_whole_or_refused(folder: Path) -> bool:
    """False if a part of the dataset can be opened as the whole."""
    try:
        dataset = rs.open(folder)
    except rs.RecordsmithError:
        return True
    return len(list(dataset)) == 21
