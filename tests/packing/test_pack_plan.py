"""A plan is a document, its shards are tasks for any machine; together they are a dataset."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs

OPTIONS: dict[str, Any] = {
    "splits": {"train": 0.7, "test": 0.3},
    "shards": 3,
    "seed": 5,
    "keys": {"image/width": None},
    "compression": "gzip",
    "shard_names": "x-{split}-{shard}",
}


@pytest.fixture
def flowers(tmp_path: Path, pictures: ModuleType) -> Path:
    return pictures.make_folder(tmp_path / "flowers", {"daisy": 10, "rose": 6})  # type: ignore[no-any-return]


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_shards_written_one_by_one_are_those_of_pack(flowers: Path, tmp_path: Path) -> None:
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
    with pytest.raises(rs.CorruptDataError, match="4 complete shards"):
        rs.open(out)
    seen = []

    class Counting(rs.ImageFolder):
        def read_sample(self, sample: Any, *arguments: Any) -> Any:
            seen.append(sample.name)
            return super().read_sample(sample, *arguments)

        def describe(self) -> Any:
            return {**super().describe(), "kind": "ImageFolder"}

    report = plan.pack(Counting(flowers), out)
    assert report.is_new
    assert len(seen) == plan.shards[1].sample_count + plan.shards[3].sample_count
    assert _files(out) == _files(tmp_path / "plain")


def test_source_that_has_changed_is_refused(
    flowers: Path, tmp_path: Path, pictures: ModuleType
) -> None:
    plan = rs.plan(rs.ImageFolder(flowers))
    (flowers / "rose" / "new.jpg").write_bytes(pictures.jpeg())
    for act in (
        lambda: plan.pack_shards(rs.ImageFolder(flowers), tmp_path / "out", [0]),
        lambda: plan.pack(rs.ImageFolder(flowers), tmp_path / "out"),
    ):
        with pytest.raises(rs.SourceError, match="16 samples were, 17 are there now"):
            act()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [-1, 6])
def test_shards_that_the_plan_does_not_have(flowers: Path, tmp_path: Path, number: int) -> None:
    plan = rs.plan(rs.ImageFolder(flowers), **OPTIONS)
    with pytest.raises(rs.OptionError, match="the plan has 6, counted from 0"):
        plan.pack_shards(rs.ImageFolder(flowers), tmp_path / "out", [number])


def test_whole_job_waits_for_no_part(flowers: Path, tmp_path: Path) -> None:
    refused = []

    def pack(_done: int, _total: int) -> None:
        with pytest.raises(rs.FileAccessError, match="another process"):
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
        {"version": 2},
        {"options": {"unknown": 1}},
        {"options": 5},
        {"shards": [{}]},
        {"fingerprint": None, "shards": None},
    ],
)
def test_documents_that_are_no_plan(flowers: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "plan.json"
    rs.plan(rs.ImageFolder(flowers)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(rs.OptionError, match=r"plan\.json is no plan"):
        rs.PackPlan.load(path)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff"])
def test_files_that_are_no_plan(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "plan.json").write_bytes(data)
    with pytest.raises(rs.OptionError, match="is no plan"):
        rs.PackPlan.load(tmp_path / "plan.json")


def test_options_that_do_not_decide_the_shards(flowers: Path) -> None:
    with pytest.raises(rs.OptionError, match="overwrite does not decide"):
        rs.plan(rs.ImageFolder(flowers), overwrite=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pictures": {"format": "png"}}, r"expected recordsmith\.PictureOptions"),
        ({"shard_size_bytes": "1MB"}, "shard_size_bytes is '1MB'; expected bytes"),
        ({"shard_names": 5}, "shard_names is 5; expected a template"),
    ],
)
def test_options_of_other_types(flowers: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(rs.OptionError, match=words):
        rs.plan(rs.ImageFolder(flowers), **options)


def test_arguments_of_other_types(flowers: Path, tmp_path: Path) -> None:
    source, out = rs.ImageFolder(flowers), tmp_path / "out"
    for none in (None, [{"a": 1}]):
        with pytest.raises(rs.OptionError, match="expected a source, such as"):
            rs.plan(none)  # type: ignore[arg-type]
        with pytest.raises(rs.OptionError, match="expected a source, such as"):
            rs.pack(none, out)  # type: ignore[arg-type]
    with pytest.raises(rs.OptionError, match="threads is '2'; expected a number"):
        rs.pack(source, out, threads="2")  # type: ignore[arg-type]
    with pytest.raises(rs.OptionError, match="there is no shard '0'"):
        rs.plan(source).pack_shards(source, out, ["0"])  # type: ignore[list-item]


def test_a_picture_that_is_a_number(tmp_path: Path) -> None:
    options = rs.PictureOptions(format="png")
    with pytest.raises(rs.SourceError, match=r"feature 'image/encoded' has the value .*5.*bytes"):
        rs.pack(rs.Rows([{"image/encoded": 5}]), tmp_path / "out", pictures=options)
