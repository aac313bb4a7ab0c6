"""Jobs on selections of a dataset: each equals the same job on files with just these records."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from ..numbered_examples import ids_of
from ..raising import raises

COUNTS = {"train": [30, 0, 25], "test": [12]}
Select = Callable[[rs.Dataset], rs.Dataset]

IN_ORDER: dict[str, Select] = {
    "slice": lambda data: data[10:45],
    "step": lambda data: data[1::3],
    "take": lambda data: data.take(31),
    "positions": lambda data: data[[0, 1, 2, 29, 30, 54, 55, 66]],
    "mask": lambda data: data[np.arange(len(data)) % 7 > 2],
    "filter": lambda data: data.filter("label == 1"),
    "filter of a part": lambda data: data.split_by({"a": 0.5, "b": 0.5}, seed=1)["b"].filter(
        "id>9"
    ),
    "one split": lambda data: data.splits["train"][5:],
}
SHUFFLED: dict[str, Select] = {
    "shuffle": lambda data: data.shuffle(1),
    "shuffled part": lambda data: data.shuffle(2)[:20],
    "reversed": lambda data: data[::-1],
}


def example(number: int) -> dict[str, Any]:
    features = {"id": number, "label": number % 3, "name": f"record {number % 20}"}
    return features | ({"score": number / 2} if number % 2 else {})


def write(folder: Path, ids: dict[str, list[list[int]]], compression: str = "none") -> Path:
    folder.mkdir()
    for split, shards in ids.items():
        for at, numbers in enumerate(shards):
            path = folder / f"{split}-{at:05d}-of-{len(shards):05d}.tfrecord"
            with rs.ShardWriter(path, compression=compression) as writer:
                for number in numbers:
                    writer.write_example(example(number))
    return folder


def all_ids() -> dict[str, list[list[int]]]:
    numbers = itertools.count()
    return {
        split: [[*itertools.islice(numbers, count)] for count in counts]
        for split, counts in COUNTS.items()
    }


@pytest.fixture(params=["foreign", "packed", "gzip"])
def dataset(request: Any, tmp_path: Path) -> rs.Dataset:
    compression = "gzip" if request.param == "gzip" else "none"
    folder = write(tmp_path / "in", all_ids(), compression)
    if request.param == "packed":
        rs.reshard(folder, tmp_path / "packed", shards={"train": 3, "test": 1})
        folder = tmp_path / "packed"
    dataset = rs.open(folder)
    assert sorted(ids_of(dataset)) == list(range(67))
    return dataset


def files_of(dataset: rs.Dataset, folder: Path) -> Path:
    """Files with the records of a dataset, of the same splits."""
    ids = {name: [sorted(ids_of(split))] for name, split in dataset.splits.items()}
    return write(folder, {name: shards for name, shards in ids.items() if shards[0]})


def unordered(dataset: rs.Dataset, select: Select, folder: Path) -> tuple[rs.Dataset, Path]:
    """A shuffled selection, and files with its records."""
    part = select(dataset)
    plain = rs.open(write(folder / "plain", all_ids()))
    return part, files_of(select(plain), folder / "files")


def comparable(document: Any) -> Any:
    """A document without paths, shards and sizes of files."""
    if isinstance(document, dict):
        left_out = ("shards", "size_bytes", "splits", "examples", "first", "place", "places",
                    "remarks", "groups", "compression", "from_manifest", "min_at", "max_at", "at",
                    "path", "position")  # fmt: skip
        return {key: comparable(one) for key, one in document.items() if key not in left_out}
    return [comparable(one) for one in document] if isinstance(document, list) else document


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IN_ORDER, *SHUFFLED])
def test_statistics_inspect_and_schema(dataset: rs.Dataset, tmp_path: Path, name: str) -> None:
    if name in SHUFFLED:
        part, files = unordered(dataset, SHUFFLED[name], tmp_path)
    else:
        part = IN_ORDER[name](dataset)
        files = files_of(part, tmp_path / "files")
    found, expected = rs.inspect(part), rs.inspect(files)
    assert comparable(found.to_json()) == comparable(expected.to_json())
    counts = {
        split: sum(one.record_count for one in shards) for split, shards in found.splits.items()
    }
    assert counts == {
        split: sum(one.record_count for one in shards) for split, shards in expected.splits.items()
    }
    assert rs.schema(part).to_json() == rs.schema(files).to_json()
    done: list[tuple[int, int]] = []
    statistics = rs.stats(part, progress=lambda *numbers: done.append(numbers))
    assert comparable(statistics.to_json()) == comparable(rs.stats(files).to_json())
    assert all(0 <= now <= total for now, total in done)
    assert done[-1][0] == done[-1][1]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_places_are_those_in_the_files(tmp_path: Path, compression: str) -> None:
    folder = write(tmp_path / "in", {"train": [[0, 1, 2], [3, 2, 1, 9]]}, compression)
    part = rs.open(folder)[[2, 3, 4, 6]]  # ids 2, 3, 2, 9
    _, second = (str(shard.location) for shard in part.shards)
    report = rs.diff(part, write(tmp_path / "other", {"train": [[2, 3, 2]]}), by="id")
    (lone,) = report.left_only
    assert (lone.place.path, lone.place.record) == (second, 3)
    with pytest.raises(rs.OptionError):
        rs.stats(part, split="tset")


def test_a_damaged_record_of_a_selection_is_located(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", {"train": [[*range(9)]]})
    (path,) = folder.glob("*.tfrecord")
    payloads = [*rs.open(folder).records()]
    with rs.ShardWriter(path, overwrite=True) as writer:
        for number, payload in enumerate(payloads):
            writer.write(b"\xff" if number == 6 else payload)
    for part in (rs.open(folder)[1::5], rs.open(folder).shuffle(1), rs.open(folder)[3:]):
        for job in (lambda part: part.read_columns(["id"]), list):
            with raises(rs.NotAnExampleError, path=path, record=6):
                job(part)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # the checksum of the last record
    path.write_bytes(data)
    for part in (rs.open(folder)[2::3], rs.open(folder).shuffle(1), rs.open(folder)[7:]):
        with raises(rs.CorruptDataError, path=path, record=8):
            rs.stats(part)


@pytest.mark.parametrize("name", IN_ORDER)
def test_diff(dataset: rs.Dataset, tmp_path: Path, name: str) -> None:
    part = IN_ORDER[name](dataset)
    files = files_of(part, tmp_path / "files")
    assert rs.diff(part, files).is_equal
    assert rs.diff(files, part).is_equal
    report = rs.diff(part, part[1:], by="id")
    assert (report.a.record_count, report.b.record_count) == (len(part), len(part) - 1)
    assert report.same_bytes_count == len(part) - 1


@pytest.mark.parametrize("name", SHUFFLED)
def test_diff_and_reshard_need_the_order_of_the_files(
    dataset: rs.Dataset, tmp_path: Path, name: str
) -> None:
    part = SHUFFLED[name](dataset)
    for job in (
        lambda: rs.diff(part, dataset),
        lambda: rs.reshard(part, tmp_path / "out"),
        lambda: rs.edit(part, tmp_path / "out", drop=["name"]),
    ):
        with raises(rs.OptionError, option="dataset"):
            job()
    assert not (tmp_path / "out").exists()


def test_verify_reads_whole_files(dataset: rs.Dataset) -> None:
    folder = dataset.shards[0].location.parent
    assert rs.verify(dataset).to_json() == rs.verify(folder).to_json()
    train = rs.verify(dataset.splits["train"])
    assert train.to_json() == rs.verify(folder, "train").to_json()
    assert rs.verify(rs.open(folder, "test+train")).record_count == 67
    for select in [*IN_ORDER.values(), *SHUFFLED.values()]:
        with raises(rs.OptionError, option="dataset"):
            rs.verify(select(dataset))


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_ORDER)
def test_reshard_and_edit(dataset: rs.Dataset, tmp_path: Path, name: str) -> None:
    part = IN_ORDER[name](dataset)
    files = files_of(part, tmp_path / "files")
    options: dict[str, Any] = {"shuffle": True, "seed": 3, "shards": 2, "compression": "none"}
    report = rs.reshard(part, tmp_path / "a", **options)
    rs.reshard(files, tmp_path / "b", **options)
    assert report.record_count == len(part)
    for split in rs.open(tmp_path / "b").splits:
        assert ids_of(rs.open(tmp_path / "a", split)) == ids_of(rs.open(tmp_path / "b", split))
    assert rs.verify(tmp_path / "a", deep=True).is_good
    assert not rs.reshard(part, tmp_path / "a", **options).is_new  # resumes
    with pytest.raises(rs.OptionError):
        rs.reshard(part[1:], tmp_path / "a", **options)  # another selection
    rs.edit(part, tmp_path / "c", drop=["name"], where="label < 2")
    edited = rs.open(tmp_path / "c")
    assert ids_of(edited) == [number for number in ids_of(part) if number % 3 < 2]
    assert "name" not in edited.schema.features


def test_whole_datasets_and_splits_are_inputs_as_their_paths_are(
    dataset: rs.Dataset, tmp_path: Path
) -> None:
    folder = dataset.shards[0].location.parent
    rs.reshard(folder, tmp_path / "a", split="train")
    assert not rs.reshard(dataset.splits["train"], tmp_path / "a").is_new
    assert not rs.reshard(rs.open(folder, "train"), tmp_path / "a").is_new
    rs.reshard(folder, tmp_path / "b", split="train[:50%]")
    assert ids_of(rs.open(tmp_path / "b")) == list(range(28))  # 27.5, to the even number
    rs.reshard(rs.open(folder, "test+train"), tmp_path / "c", shards=1)
    assert sorted(ids_of(rs.open(tmp_path / "c"))) == list(range(67))


def test_records_that_repeat_or_none_are_refused(dataset: rs.Dataset, tmp_path: Path) -> None:
    for part in (dataset[[1, 1, 2]], dataset[:0], dataset.filter("id > 100")):
        with raises(rs.OptionError, option="dataset"):
            rs.reshard(part, tmp_path / "out")


@pytest.mark.parametrize("name", [*IN_ORDER, *SHUFFLED])
def test_export(dataset: rs.Dataset, tmp_path: Path, name: str) -> None:
    part = (IN_ORDER | SHUFFLED)[name](dataset)
    if name in SHUFFLED and dataset.shards[0].compression != "none":
        with pytest.raises(rs.OptionError):
            rs.export(part, tmp_path / "out", "csv")
        return
    rs.export(part, tmp_path / "out", "csv")
    found = [
        int(line.split(",")[column])
        for path in sorted((tmp_path / "out").rglob("*.csv"), reverse=True)
        for lines in [path.read_text().splitlines()]
        for column in [lines[0].split(",").index("id")]
        for line in lines[1:]
    ]
    by_split = [ids_of(part.splits[name]) for name in sorted(part.splits, reverse=True)]
    assert found == [number for ids in by_split for number in ids]
