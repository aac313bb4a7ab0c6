"""Plans: saving, packing shard by shard, and completing the dataset."""

from __future__ import annotations

import dataclasses
import errno
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs

from ..raising import raises

OPTIONS: dict[str, Any] = {
    "splits": {"train": 0.7, "test": 0.3},
    "shards": 3,
    "seed": 5,
    "keys": {"image/width": None},
    "compression": "gzip",
    "shard_names": "x-{split}-{shard}",
}


@pytest.fixture
def flowers(tmp_path: Path, images: ModuleType) -> Path:
    return images.make_folder(tmp_path / "flowers", {"daisy": 10, "rose": 6})  # type: ignore[no-any-return]


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_shards_written_one_by_one_equal_those_of_pack(flowers: Path, tmp_path: Path) -> None:
    rs.pack(rs.ImageFolder(flowers), tmp_path / "plain", **OPTIONS)
    rs.plan(rs.ImageFolder(flowers), **OPTIONS).save(tmp_path / "plan.json")
    plan = rs.PackPlan.load(tmp_path / "plan.json")
    assert plan == rs.plan(rs.ImageFolder(flowers), **OPTIONS)
    assert [task.file for task in plan.shards][:2] == [
        "x-train-0.tfrecord.gz",
        "x-train-1.tfrecord.gz",
    ]
    assert sum(task.sample_count for task in plan.shards) == 16
    out = tmp_path / "out"

    def work(number: int) -> None:
        (result,) = plan.pack_shards(rs.ImageFolder(flowers), out, [number])
        assert result.file == plan.shards[number].file
        assert result.record_count == plan.shards[number].sample_count

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, (4, 0, 2, 0, 5)))
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.open(out)
    assert caught.value.defect is rs.Defect.UNFINISHED_DATASET
    assert "4 complete shards" in caught.value.problem
    seen = []

    class Counting(rs.ImageFolder):
        def list_samples(self) -> Any:
            listing = super().list_samples()
            self.reader = listing.reader
            return dataclasses.replace(listing, reader=self)

        def kinds(self) -> Any:
            return {}

        def to_json(self) -> Any:
            return {}

        def read(self, sample: Any, *arguments: Any) -> Any:
            seen.append(sample.name)
            return self.reader.read(sample, *arguments)

        def describe(self) -> Any:
            return {**super().describe(), "kind": "ImageFolder"}

    report = plan.pack(Counting(flowers), out)
    assert report.is_new
    assert len(seen) == plan.shards[1].sample_count + plan.shards[3].sample_count
    assert _files(out) == _files(tmp_path / "plain")


def test_changed_source_is_refused(flowers: Path, tmp_path: Path, images: ModuleType) -> None:
    plan = rs.plan(rs.ImageFolder(flowers))
    (flowers / "rose" / "new.jpg").write_bytes(images.jpeg())
    for act in (
        lambda: plan.pack_shards(rs.ImageFolder(flowers), tmp_path / "out", [0]),
        lambda: plan.pack(rs.ImageFolder(flowers), tmp_path / "out"),
    ):
        with pytest.raises(rs.SourceError, match=r"16 .*17"):
            act()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [-1, 6])
def test_shard_number_out_of_range(flowers: Path, tmp_path: Path, number: int) -> None:
    plan = rs.plan(rs.ImageFolder(flowers), **OPTIONS)
    with pytest.raises(rs.OptionError) as caught:
        plan.pack_shards(rs.ImageFolder(flowers), tmp_path / "out", [number])
    error = caught.value
    assert (error.option, error.value) == ("numbers", str(number))
    assert error.expected == "integers from 0 to 5"


def test_pack_is_refused_while_shards_are_written(flowers: Path, tmp_path: Path) -> None:
    refused = []

    def pack(_done: int, _total: int) -> None:
        with raises(rs.FileAccessError, operation="write", errno=errno.EBUSY):
            rs.pack(rs.ImageFolder(flowers), tmp_path / "out")
        refused.append(True)

    rs.plan(rs.ImageFolder(flowers)).pack_shards(
        rs.ImageFolder(flowers), tmp_path / "out", [0], progress=pack
    )
    assert refused


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 1},
        {"version": 3},
        {"options": {"unknown": 1}},
        {"options": 5},
        {"shards": [{}]},
        {"fingerprint": None, "shards": None},
    ],
)
def test_invalid_plan_documents(flowers: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "plan.json"
    rs.plan(rs.ImageFolder(flowers)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(rs.OptionError) as caught:
        rs.PackPlan.load(path)
    assert (caught.value.option, caught.value.value) == ("path", f"{str(path)!r:.80}")


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff"])
def test_files_that_are_not_plans(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(data)
    with pytest.raises(rs.OptionError) as caught:
        rs.PackPlan.load(tmp_path / "plan.json")
    assert caught.value.option == "path"


def test_options_that_do_not_affect_the_shards(flowers: Path) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.plan(rs.ImageFolder(flowers), overwrite=True)
    assert caught.value.option == "overwrite"


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("image_options", {"store": "png"}, "recordsmith.ImageOptions(...)"),
        ("shard_size_bytes", "1MB", "a positive integer"),
        ("shard_names", 5, "a template"),
    ],
)
def test_options_of_invalid_types(flowers: Path, option: str, value: Any, expected: str) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.plan(rs.ImageFolder(flowers), **{option: value})
    assert (caught.value.option, caught.value.value) == (option, repr(value))
    assert caught.value.expected.startswith(expected)


def test_arguments_of_invalid_types(flowers: Path, tmp_path: Path) -> None:
    source, out = rs.ImageFolder(flowers), tmp_path / "out"
    for other in (None, [{"a": 1}], "flowers"):
        for job in (lambda: rs.plan(other), lambda: rs.pack(other, out)):  # type: ignore[arg-type]  # noqa: B023 - called here
            with pytest.raises(rs.OptionError) as caught:
                job()
            assert (caught.value.option, caught.value.value) == ("source", repr(other))
    with raises(rs.OptionError, option="threads", value="2"):
        rs.pack(source, out, threads="2")  # type: ignore[arg-type]
    with pytest.raises(rs.OptionError) as caught:
        rs.plan(source).pack_shards(source, out, ["0"])  # type: ignore[list-item]
    assert (caught.value.option, caught.value.value) == ("numbers", "'0'")


def test_image_that_is_a_number(tmp_path: Path) -> None:
    options = rs.ImageOptions(store="png")
    with pytest.raises(rs.SourceError, match=r"'image/encoded' .*5"):
        rs.pack(rs.Rows([{"image/encoded": 5}]), tmp_path / "out", image_options=options)
