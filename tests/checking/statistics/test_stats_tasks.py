"""Statistics on an engine are those of threads."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import recordsmith as rs
from recordsmith.dataset import Shard
from recordsmith.engines.processes import Processes
from recordsmith.format.example.keys import IMAGE, MASK

from ...places import flip
from ...raising import raises
from ...repeating_engine import RepeatingEngine, plain

STATS = "recordsmith.checking.statistics"


def _assert_equal(paths: Any, split: str | None = None, engine: Any = None) -> Any:
    expected = rs.stats(paths, split)
    found = rs.stats(paths, split, engine=engine or RepeatingEngine())
    assert plain(found) == plain(expected)
    assert found.to_json() == expected.to_json()
    return found


def _png(values: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.asarray(values, np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(autouse=True)
def _small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shards are read alone."""
    monkeypatch.setattr(f"{STATS}.stats_report._READ_TOGETHER_BYTES", 1000)


@pytest.fixture
def folder(write, tmp_path: Path) -> Path:
    """Three splits of everything that has statistics."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for split, count in {"test": 20, "train": 200, "validation": 0}.items():
        for number in range(3):
            write(
                folder / f"{split}-0000{number}-of-00003.tfrecord",
                (
                    {
                        IMAGE: _png(rng.integers(0, 2, (2, at % 7 + 1))),
                        MASK: _png(rng.integers(0, 9, (4, 3 + at % 9))),
                        "image/height": at % 3,
                        "image/width": 2,
                        "image/object/bbox/xmin": rng.random(at % 4),
                        "image/object/bbox/xmax": rng.random(at % 4),
                        "image/object/bbox/ymin": rng.random(at % 4),
                        "image/object/bbox/ymax": rng.random(at % 4),
                        "image/class/label": at % 5,
                        "image/class/text": f"class {at % 5 if at else 7}",
                        "id": int(rng.integers(1 << 62)),
                        "score": rng.normal(size=3),
                        "name": f"n {rng.integers(300)}",
                    }
                    for at in range(count * number)
                ),
            )
    return folder


LIMITS = {
    "sampling.SAMPLE_SIZE": 50,
    "mask_stats.MAX_MASKS": 25,
    "class_counts.MAX_CLASSES": 6,
    "record_builder.MAX_FEATURES": 12,
}


@pytest.mark.parametrize("limits", [{}, LIMITS], ids=["exact", "sampled"])
def test_everything(folder: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]) -> None:
    for place, limit in limits.items():
        monkeypatch.setattr(f"{STATS}.{place}", limit)
    monkeypatch.chdir(folder.parent)
    found = _assert_equal("data")  # paths in the report are as typed
    assert found.record_count == 660
    sizes = found.sizes.sample
    assert sizes is not None
    assert sizes.size == (50 if limits else 660)
    if limits:
        assert found.masks[MASK].sampled == 25 < found.masks[MASK].count
        assert found.left_out
    else:
        assert found.boxes is not None
        assert found.classes
        assert not found.left_out


def test_samples_do_not_depend_on_the_division(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All shards together, or each alone: also the means of floats are the same."""
    for place, limit in LIMITS.items():
        monkeypatch.setattr(f"{STATS}.{place}", limit)
    alone = rs.stats(folder, threads=3)
    monkeypatch.setattr(f"{STATS}.stats_report._READ_TOGETHER_BYTES", 1 << 30)
    assert plain(rs.stats(folder)) == plain(alone)


def test_some_records(folder: Path) -> None:
    dataset = rs.open(folder)
    for some in (
        dataset.splits["train"],
        dataset[37:591],
        dataset[3:600:7],
        dataset.select([5, 600, 17, 18]),
        dataset.shuffle(seed=4)[:50],
    ):
        _assert_equal(some)
    _assert_equal(folder, "train[10%:55%]")


small = st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=4)
floats = st.lists(st.floats(width=32), max_size=4)
texts = st.lists(st.binary(max_size=3) | st.sampled_from([b"a", b"\xff"]), max_size=4)
keys = st.sampled_from(["a", "b/label", "", "n\x00\x1b"])
examples = st.dictionaries(keys, small.map(np.int64) | floats.map(np.float32) | texts)


@settings(max_examples=40)
@given(st.lists(st.lists(examples, max_size=5), min_size=1, max_size=4))
def test_any_records(
    write, tmp_path_factory: pytest.TempPathFactory, shards: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("stats")
    for number, records in enumerate(shards):
        write(folder / f"{number}.tfrecord", records)
    _assert_equal(sorted(folder.iterdir()))


@pytest.mark.parametrize("compression", ["gzip", pytest.param("none", marks=pytest.mark.slow)])
def test_no_shard_is_read_again(
    folder: Path, compression: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = folder.parent / "out"
    rs.reshard(folder, out, compression=compression)
    expected = rs.stats(out)
    dataset = rs.open(out)
    monkeypatch.setattr(Shard, "open_read", None)
    assert plain(rs.stats(dataset, engine=Processes(2))) == plain(expected)


def test_damage(folder: Path) -> None:
    path = max(folder.glob("train*"))
    flip(path)
    with pytest.raises(rs.CorruptDataError) as expected:
        rs.stats(folder)
    error = expected.value
    with raises(rs.CorruptDataError, path=path, record=error.record, defect=error.defect):
        rs.stats(folder, engine=RepeatingEngine())


def test_a_worker_that_sees_another_file(folder: Path) -> None:
    path = max(folder.glob("train*"))
    with raises(rs.FileAccessError, path=path, errno=errno.ESTALE):
        rs.stats(folder, engine=RepeatingEngine(lambda _: os.utime(path, ns=(1, 1))))
    with raises(rs.FileAccessError, path=path, errno=errno.ENOENT):
        rs.stats(folder, engine=RepeatingEngine(lambda _: path.unlink(missing_ok=True)))
