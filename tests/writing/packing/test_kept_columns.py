"""Column files that pack writes: what the records have, in every store, and never of other ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.killed_jobs import killed_before
from tests.raising import raises

import recordsmith as rs
from recordsmith.dataset import column_file
from recordsmith.dataset.column_file import record_counts, record_steps, record_values
from recordsmith.stores import Location, as_folder
from recordsmith.writing.building.shards import final_location, partial_location
from recordsmith.writing.building.table_writing import _rename

LABEL = "image/class/label"
TEXTS = ["daisy", "rose", "tulip"]


def rows(shift: int = 0, count: int = 40) -> list[dict[str, Any]]:
    """Rows of one size, whatever the shift."""
    return [
        {
            "n": number,
            "kind": (number + shift) % 3,
            "weight": ((number + shift) % 7) / 4,
            "name": TEXTS[number % 3],
            "tokens": [1] * (number % 5),
        }
        for number in range(count)
    ]


def pack(out: Location, shift: int = 0, **options: Any) -> rs.PackReport:
    return rs.pack(rs.Rows(rows(shift)), out, **{"shards": 3, "shuffle": False, **options})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the columns that are read from records."""
    names: list[str] = []
    read = column_file._read

    def noted(shard: Any, key: str, *args: Any) -> Any:
        names.append(key)
        return read(shard, key, *args)

    monkeypatch.setattr(column_file, "_read", noted)
    return names


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}, {"keys": {"kind": "class"}}])
def test_equal_to_the_rows(place: Location, reads: list[str], options: dict[str, Any]) -> None:
    kind = "class" if "keys" in options else "kind"
    keys = [kind, "weight", "name", "tokens"]
    assert not pack(place / "out", numbers_of=keys, threads=2, **options).notices
    dataset = rs.open(place / "out")
    assert record_values(dataset, kind).numbers.tolist() == [row["kind"] for row in rows()]
    assert record_values(dataset, "weight").numbers.tolist() == [row["weight"] for row in rows()]
    numbers, texts = record_values(dataset, "name")
    assert [texts[number] for number in numbers] == [row["name"] for row in rows()]
    assert record_counts(dataset, "tokens").tolist() == [len(row["tokens"]) for row in rows()]
    assert not reads
    record_values(dataset, "n")
    assert reads == ["n"] * 3


@pytest.mark.parametrize("keys", [None, {LABEL: "y"}, {LABEL: None}])
@pytest.mark.parametrize("is_decoded", [False, True])
def test_labels_are_kept(
    flowers: Path, place: Location, reads: list[str], keys: Any, is_decoded: bool
) -> None:
    out = place / "out"
    options = {"keys": keys, "check_images": is_decoded, "threads": 3, "shards": 2}
    rs.pack(rs.ImageFolder(flowers), out, **options)
    key = LABEL if keys is None else keys[LABEL]
    assert (out / ".recordsmith" / "train-00000-of-00002.tfrecord.columns").exists() == bool(key)
    if key:
        balanced = rs.Weighted(rs.open(out), by=key)
        assert not reads
        labels = [int(row[key][0]) for row in rs.open(out)]  # type: ignore[index]
        assert balanced.record_counts == np.bincount(labels).tolist()


def test_tasks_write_them(flowers: Path, tmp_path: Path, reads: list[str]) -> None:
    plan = rs.plan(rs.ImageFolder(flowers), tmp_path, shards=2, numbers_of=["image/height"])
    rs.finish(plan, [rs.run(task.to_json()) for task in plan.tasks()])
    heights = record_values(rs.open(tmp_path), "image/height").numbers.tolist()
    assert heights == [row["image/height"][0] for row in rs.open(tmp_path)]  # type: ignore[index]
    assert len(reads) == 0


def test_steps_of_episodes(tmp_path: Path, reads: list[str]) -> None:
    lengths = [3, 1, 5, 2]
    episodes = [{"steps/is_first": [1] + [0] * (n - 1), "steps/a": [0.5] * n} for n in lengths]
    with rs.ShardWriter(tmp_path / "examples.tfrecord") as writer:
        for episode in episodes:
            writer.write_example(episode)
    with rs.ShardWriter(tmp_path / "sequences.tfrecord") as writer:
        for episode in episodes:
            lists: Any = {key: [[value] for value in values] for key, values in episode.items()}
            writer.write(rs.encode_sequence_example({}, lists))
    for name, steps_of in (("examples", record_counts), ("sequences", record_steps)):
        rs.pack(rs.Shards(tmp_path / f"{name}.tfrecord"), tmp_path / name, shuffle=False)
        dataset = rs.open(tmp_path / name)
        assert steps_of(dataset, "steps/is_first").tolist() == lengths
        assert rs.Episodes(dataset, window=1).record_count == sum(lengths)
        assert not reads


def test_features_without_a_number_in_each_record(place: Location, reads: list[str]) -> None:
    some = [{"n": n, "one": n, "late": None, "early": n} for n in range(9)]
    for row in some[4:]:
        row |= {"late": 1, "early": None}
    report = rs.pack(
        rs.Rows(some), place / "out", numbers_of=["one", "late", "early", "won"], shards=1
    )
    (notice,) = report.notices
    assert "no record has the feature 'won'" in notice
    assert re.findall(r"\w+", notice.partition("available:")[2]) == ["early", "late", "n", "one"]
    dataset = rs.open(place / "out")
    assert sorted(record_values(dataset, "one").numbers.tolist()) == list(range(9))
    assert not reads
    for key in ("late", "early"):
        with raises(rs.CorruptDataError, feature=key):
            record_values(dataset, key)


def test_bad_options(tmp_path: Path) -> None:
    values: Any = ("kind", [1], 5, None)
    for value in values:
        with raises(rs.OptionError, option="numbers_of", value=value):
            rs.pack(rs.Rows(rows()), tmp_path, numbers_of=value)


# -- jobs that replace or move shards --------------------------------------------------------------

SHARDS = [f"train-{number:05}-of-00003.tfrecord" for number in range(3)]


def large(out: Location, shift: int, **options: Any) -> None:
    """Shards of one size, whatever the shift."""
    differing = (4, 18, 32)
    some = [
        {"fill": bytes(20_000), "kind": number % 3 + shift * (number in differing)}
        for number in range(42)
    ]
    rs.pack(rs.Rows(some), out, shards=3, shuffle=False, **options)


def _rewrite(source: Location, out: Location) -> None:
    """Replace a shard without a job."""
    records = list(rs.open(source).records())[14:28]
    with rs.ShardWriter(out / SHARDS[1], overwrite=True) as writer:
        for record in records:
            writer.write(record)


CHANGES: dict[str, Callable[[Location, Location], Any]] = {
    "pack": lambda _, out: large(out, 1, overwrite=True),
    "pack other numbers": lambda _, out: large(out, 1, overwrite=True, numbers_of=["fill"]),
    "pack fewer shards, and again": lambda _, out: (
        rs.pack(rs.Rows([{"n": 1}]), out, overwrite=True),
        large(out, 1, overwrite=True),
    ),
    "reshard": lambda source, out: rs.reshard(source, out, shards=3, overwrite=True),
    "edit": lambda source, out: rs.edit(source, out, rename={"fill": "full"}, overwrite=True),
    "salvage": lambda source, out: rs.salvage(source, out, overwrite=True),
    "append": rs.append,
    "a writer": _rewrite,
}


@pytest.mark.parametrize("name", CHANGES)
def test_no_job_leaves_columns_of_other_records(
    place: Location, name: str, reads: list[str]
) -> None:
    large(place / "in", 1)
    large(place / "out", 0, numbers_of=["kind"])
    for shard in SHARDS:
        both = [place / folder / shard for folder in ("in", "out")]
        assert both[0].size() == both[1].size()
        assert both[0].read() != both[1].read()
    CHANGES[name](place / "in", place / "out")
    dataset: Any = rs.open(place / "out")
    assert record_values(dataset, "kind").numbers.tolist() == [row["kind"][0] for row in dataset]
    if name == "append":  # renamed with their shards, which stay
        assert len(reads) == len(rs.inspect(place / "out").shards) - 3


def _put_of_another(folder: Location, other: Location, name: str) -> None:
    """Replace a shard by one of the same size, as a program does that knows nothing of columns."""
    data = (other / name).read()
    assert len(data) == (folder / name).size()
    (folder / name).put([data])


def test_of_a_shard_that_another_program_replaced(place: Location, reads: list[str]) -> None:
    """Over a network as well, where the version of the object shows it."""
    large(place / "in", 1)
    large(place / "out", 0, numbers_of=["kind"])
    _put_of_another(place / "out", place / "in", SHARDS[1])
    dataset: Any = rs.open([place / "out" / name for name in SHARDS])
    kinds = [row["kind"][0] for row in dataset]
    assert record_values(dataset, "kind").numbers.tolist() == kinds
    assert len(reads) == 1
    drawn = rs.Weighted(dataset, by="kind").record_counts
    assert drawn == [kinds.count(kind) for kind in sorted({*kinds})]


def test_of_another_manifest(tmp_path: Path, reads: list[str]) -> None:
    """Shards with the size and the time of those that the columns were made from."""
    large(as_folder(tmp_path / "in"), 1)
    large(as_folder(tmp_path / "out"), 0, numbers_of=["kind"])
    for name in (*SHARDS, "dataset.json"):
        old, new = tmp_path / "out" / name, tmp_path / "in" / name
        times = old.stat().st_atime_ns, old.stat().st_mtime_ns
        old.write_bytes(new.read_bytes())
        os.utime(old, ns=times)
    dataset: Any = rs.open(tmp_path / "out")
    kinds = [row["kind"][0] for row in dataset]
    assert record_values(dataset, "kind").numbers.tolist() == kinds
    assert len(reads) == 3


def test_of_a_copy_in_a_bucket(place: Location, reads: list[str]) -> None:
    """Its objects have no time, so columns of local files say nothing of them."""
    large(place / "in", 1)
    large(place / "out", 0, numbers_of=["kind"])
    columns = f"{SHARDS[0]}.columns"
    (place / "in" / ".recordsmith" / columns).put([(place / "out/.recordsmith" / columns).read()])
    dataset: Any = rs.open([place / "in" / name for name in SHARDS])
    kinds = [row["kind"][0] for row in dataset]
    assert record_values(dataset, "kind").numbers.tolist() == kinds
    assert len(reads) == 3


@pytest.mark.slow
def test_killed_at_every_change(tmp_path: Path) -> None:
    """A job over a dataset with columns of the same names; shards may be read by name."""

    def is_consistent(folder: Path) -> bool:
        dataset: Any = rs.open(sorted(folder.glob("*.tfrecord")))
        kinds = [row["kind"][0] for row in dataset]
        return record_values(dataset, "kind").numbers.tolist() == kinds

    for step in count(1):
        folder = tmp_path / str(step)
        job = partial(large, as_folder(folder), 1, numbers_of=["kind"], threads=1, overwrite=True)
        large(as_folder(folder), 0, numbers_of=["kind"])
        is_killed = killed_before(step, job)
        assert is_consistent(folder), step
        job()
        assert is_consistent(folder), step
        kept = {path.name for path in (folder / ".recordsmith").iterdir()}
        assert kept == {f"{name}{end}" for name in SHARDS for end in (".index", ".columns")}, step
        if not is_killed:
            break
    assert step > 20


def test_of_an_earlier_job_when_shards_get_their_numbers(tmp_path: Path) -> None:
    """Those of the dataset that is replaced later stay; those that a killed job left do not."""
    folder = as_folder(tmp_path)
    published = final_location(folder, "b.tfrecord.columns")
    left = partial_location(folder, "b.tfrecord.columns")
    for location in (published, left, partial_location(folder, "a.tfrecord")):
        location.put(b"content")
    result: Any = SimpleNamespace(file="a.tfrecord")
    _rename(folder, [result], ["b.tfrecord"], is_resumed=False)
    assert published.exists()
    assert not left.exists()
