"""`recordsmith.append`: what the dataset is afterwards, and whenever the job is killed."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import LABELS_NAME, read_manifest
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.writing import AppendReport
from recordsmith.writing.reshaping.append import renumber

from ... import numbered_examples as numbered
from ...killed_jobs import killed_before
from ...places import AnyPlace, contents
from ...raising import raises


def write_packed(folder: AnyPlace) -> AnyPlace:
    """12 examples in two splits, with manifest and class names; `id` counts."""
    return numbered.packed(folder / "out", {"train": [5, 4], "validation": [3]})  # type: ignore[no-any-return]


def write_more(folder: AnyPlace) -> AnyPlace:
    """Two foreign shards, of ids 100 to 105."""
    more = folder / "more"
    as_folder(more).make_folder()
    numbered.write_shard(more / "train-00000-of-00002.tfrecord", [100, 101, 102, 103])
    numbered.write_shard(more / "train-00001-of-00002.tfrecord", [104, 105])
    return more


@pytest.fixture
def packed(place: Location) -> Location:
    return write_packed(place)


@pytest.fixture
def more(place: Location) -> Location:
    return write_more(place)


def shards_of(folder: PlaceLike) -> list[str]:
    return sorted(name for name in contents(folder) if "/" not in name and ".tfrecord" in name)


# ---- what is there afterwards ------------------------------------------------------------------


def test_new_shards_follow_the_old_ones(packed: Location, more: Location) -> None:
    validation = contents(packed)["validation-00000-of-00001.tfrecord"]
    report = rs.append(more, packed)
    assert (report.appended_count, report.record_count, report.shard_count) == (6, 18, 5)
    assert (report.splits, report.renamed_count) == ({"train": 15, "validation": 3}, 2)
    assert report.is_new
    assert shards_of(packed) == [
        *(f"train-0000{number}-of-00004.tfrecord" for number in range(4)),
        "validation-00000-of-00001.tfrecord",
    ]
    assert contents(packed)["validation-00000-of-00001.tfrecord"] == validation
    assert numbered.ids_of(rs.open(packed, split="train")) == [*range(9), *range(100, 106)]
    assert numbered.ids_of(rs.open(packed, split="validation")) == [9, 10, 11]
    dataset = rs.open(packed, split="train")
    numbered.assert_is_example(dataset[-1], 105)
    assert dataset.schema.record_count == 15
    assert dataset.schema.features["id"].present == 15
    assert dataset.class_names == rs.open(packed).class_names
    assert rs.verify(packed).is_good
    hidden = {location.name for location in (packed / ".recordsmith").list()}
    assert all(name.endswith(".index") for name in hidden)


def test_appended_again_and_again(packed: Location, more: Location) -> None:
    rs.append(more, packed)
    same = rs.append(more, packed)
    assert (same.is_new, same.appended_count, same.record_count) == (False, 6, 18)
    numbered.write_shard(more / "extra.tfrecord", [200])
    other = rs.append(more / "extra.tfrecord", packed, split="train")
    assert (other.is_new, other.record_count) == (True, 19)
    assert not rs.append(more / "extra.tfrecord", packed, split="train").is_new
    for location in (more / ".recordsmith").list():
        location.delete()
    (more / "extra.tfrecord").delete()
    assert not rs.append(more, packed).is_new  # though something else came after it
    twice = rs.append(more, packed, again=True)
    assert (twice.is_new, twice.record_count) == (True, 25)
    ids = [*range(9), *range(100, 106), 200, *range(100, 106)]
    assert numbered.ids_of(rs.open(packed, split="train")) == ids
    assert rs.verify(packed).is_good
    steps = json.loads((packed / "dataset.json").read())["provenance"]["changes"]
    assert [step["records"] for step in steps] == [6, 1, 6]


def test_into_a_split_of_its_own(packed: Location, more: Location) -> None:
    report = rs.append(more, packed, split="test")
    assert report.splits == {"train": 9, "validation": 3, "test": 6}
    assert report.renamed_count == 0
    assert "test-00001-of-00002.tfrecord" in shards_of(packed)
    assert numbered.ids_of(rs.open(packed, split="test")) == list(range(100, 106))
    assert rs.open(packed, split="test").schema.record_count == 6
    assert rs.verify(packed).is_good


@pytest.mark.parametrize(("ours", "theirs"), [("gzip", "none"), ("none", "zlib")])
def test_in_the_compression_of_the_dataset(place: Location, ours: str, theirs: str) -> None:
    packed = numbered.packed(place / "out", {"train": [2, 2]}, ours)
    with rs.ShardWriter(place / "train-x.tfrecord", compression=theirs) as writer:
        writer.write_example(numbered.features(7), {"steps": "int64"})
    rs.append(place / "train-x.tfrecord", packed, split="train")
    manifest = read_manifest(packed)
    assert manifest is not None
    assert manifest.compression == ours
    assert numbered.ids_of(rs.open(packed)) == [0, 1, 2, 3, 7]
    assert rs.verify(packed).is_good


def test_names_from_a_template(more: Location, place: Location) -> None:
    numbered.write_shard(place / "in.tfrecord", [0, 1, 2])
    template = "{split}_x{shard:03d}-of-{shards:03d}.record"
    rs.reshard(place / "in.tfrecord", place / "out", shards=2, shard_names=template)
    assert (place / "out" / "in_x001-of-002.record").exists()
    rs.append(more, place / "out", split="in")
    rs.append(more, place / "out", split="test")
    names = [f"in_x00{number}-of-004.record" for number in range(4)]
    assert sorted(path.name for path in (place / "out" / "*.record").glob()) == names
    assert (place / "out" / "test-00001-of-00002.tfrecord").exists()
    assert rs.verify(place / "out").is_good


def test_numbers_that_get_wider() -> None:
    files = {"a": [f"a-{number}-of-9" for number in range(9)]}
    renamed, added = renumber(files, {"a": 3}, "none")
    assert renamed["a-8-of-9"] == "a-8-of-12"
    assert added == {"a": ["a-9-of-12", "a-10-of-12", "a-11-of-12"]}


def test_indexes_are_renamed_too(more: Location, place: Location) -> None:
    numbered.write_shard(place / "train-00000-of-00001.tfrecord", list(range(9)))
    rs.reshard(place / "train-00000-of-00001.tfrecord", place / "out", shards=2)
    rs.append(more, place / "out")
    indexes = ((place / "out" / ".recordsmith") / "*.index").glob()
    shards = shards_of(place / "out")
    assert [path.name for path in indexes] == [f"{name}.index" for name in shards]
    assert numbered.ids_of(rs.open(place / "out")[::-1]) == [*range(105, 99, -1), *range(8, -1, -1)]


# ---- classes and features ----------------------------------------------------------------------


def with_names(folder: Location, names: list[str]) -> Location:
    lines = "".join(f"{n}:{name}\n" for n, name in enumerate(names))
    (folder / LABELS_NAME).put(lines.encode())
    return folder


def test_names_of_classes(packed: Location, more: Location) -> None:
    names = rs.open(packed).class_names
    assert names is not None
    with raises(rs.OptionError, option="paths", value="other"):
        rs.append(with_names(more, ["other"]), packed)
    assert read_manifest(packed).record_count == 12  # type: ignore[union-attr]
    longer = [name or "zero" for name in names] + ["new"]
    rs.append(with_names(more, longer), packed)
    expected = (*(name or "zero" for name in names), "new")
    assert rs.open(packed).class_names == expected
    assert (packed / LABELS_NAME).read().endswith(f"{len(names)}:new\n".encode())
    assert rs.verify(packed).is_good


def test_different_features(packed: Location, place: Location) -> None:
    with rs.ShardWriter(place / "train.tfrecord") as writer:
        writer.write_example({"id": "text"})
    before = contents(packed)
    with raises(rs.OptionError, option="paths", value="id"):
        rs.append(place / "train.tfrecord", packed)
    with rs.ShardWriter(place / "train.tfrecord", overwrite=True) as writer:
        writer.write(b"no example")
    with raises(rs.OptionError, option="paths", value="other"):
        rs.append(place / "train.tfrecord", packed)
    with rs.ShardWriter(place / "train.tfrecord", overwrite=True) as writer:
        writer.write_example({"image": b"", "label": 1})
    with raises(rs.OptionError, option="paths", value="id", match="1 of 1 appended records lack"):
        rs.append(place / "train.tfrecord", packed)
    assert contents(packed) == before
    with rs.ShardWriter(place / "train.tfrecord", overwrite=True) as writer:
        writer.write_example({"id": 3, "new": 1})
    with raises(rs.OptionError, option="paths", value="name"):
        rs.append(place / "train.tfrecord", packed)
    assert contents(packed) == before
    rs.append(place / "train.tfrecord", packed, allow_missing=True)
    assert rs.verify(packed).is_good


@pytest.mark.parametrize("has_manifest", [False, True])
def test_features_that_only_some_records_lack(place: Location, has_manifest: bool) -> None:
    """Those that all records of the dataset have must be in all appended records."""
    for name, rows in (
        ("out", [{"always": 1, "often": 2}, {"always": 3}]),
        ("few", [{"always": 1}, {"always": 3}]),
        ("bad", [{"always": 1}, {"often": 3}, {"often": 4}]),
    ):
        rs.pack(rs.Rows(rows), place / name)
        if name != "out" and not has_manifest:
            (place / name / "dataset.json").delete()
    with raises(rs.OptionError, option="paths", value="always", match="2 of 3"):
        rs.append(place / "bad", place / "out")
    assert rs.append(place / "few", place / "out").record_count == 4
    assert rs.append(place / "bad", place / "out", allow_missing=True).record_count == 7


# ---- errors -----------------------------------------------------------------------------------


def test_invalid_targets(packed: Location, more: Location, place: Location) -> None:
    with raises(rs.OptionError, option="out", value=str(place / "none")):
        rs.append(more, place / "none")
    assert not (place / "none").is_folder()
    with raises(rs.OptionError, option="out", match="file"):
        rs.append(more, packed / "train-00000-of-00002.tfrecord")
    with raises(rs.OptionError, option="out", value=str(place / "more"), match=r"dataset\.json"):
        rs.append(packed, more)
    with raises(rs.OptionError, option="split", value="a/b"):
        rs.append(more, packed, split="a/b")
    with raises(rs.OptionError, option="out", value=str(packed)):
        rs.append(packed, packed)
    (packed / "train-00000-of-00004.tfrecord").put(b"mine")
    with raises(
        rs.OptionError, option="out", value=place / "out", match=r"train-00000-of-00004\.tfrecord"
    ):
        rs.append(more, packed)
    (packed / "train-00000-of-00004.tfrecord").delete()
    (packed / "train-00000-of-00002.tfrecord").move(packed / "hidden")
    with raises(rs.CorruptDataError, defect=rs.Defect.MISSING_SHARD):
        rs.append(more, packed)


def test_shards_without_numbers(more: Location, place: Location) -> None:
    numbered.write_shard(place / "train.tfrecord", [0])
    rs.edit(place / "train.tfrecord", place / "out", drop=["name"])
    with raises(rs.OptionError, option="out"):
        rs.append(more, place / "out")


def flipped(data: bytes) -> bytes:
    return data[:-6] + bytes([data[-6] ^ 1]) + data[-5:]


@pytest.mark.parametrize(
    ("name", "change", "defect"),
    [
        (f"out/{LABELS_NAME}", lambda _: b"0:mine\n", "labels-mismatch"),
        ("out/label_map.pbtxt", lambda _: b"item { id: 1 name: 'x' }", "labels-mismatch"),
        ("out/validation-00000-of-00001.tfrecord", lambda data: data[:-1], rs.Defect.SHARD_SIZE),
        ("more/train-00001-of-00002.tfrecord", flipped, rs.Defect.PAYLOAD_CRC),
    ],
)
def test_damage_leaves_the_dataset_unchanged(
    packed: Location, more: Location, place: Location, name: str, change: Any, defect: str
) -> None:
    """Also files with other class names than the manifest."""
    (place / name).put(change((place / name).read() if (place / name).exists() else b""))
    before = contents(packed)
    with raises(rs.CorruptDataError, path=place / name, defect=defect):
        rs.append(more, packed)
    assert contents(packed) == before


# ---- killed ------------------------------------------------------------------------------------


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize(("options", "stride"), [({}, 1), ({"split": "test"}, 4)])
def test_killed_before_any_change_of_the_file_system(
    tmp_path: Path, options: dict[str, Any], stride: int
) -> None:
    packed, more = write_packed(tmp_path), write_more(tmp_path)
    (more / LABELS_NAME).write_text("0:daisy\n")
    (packed / LABELS_NAME).write_text("")  # so that other names come
    document = json.loads((packed / "dataset.json").read_text())
    document["class_names"] = []
    (packed / "dataset.json").write_text(json.dumps(document))
    old = numbered.ids_of(rs.open(packed))
    done, out = tmp_path / "done", tmp_path / "killed"
    shutil.copytree(packed, done)
    rs.append(more, done, threads=1, **options)
    wanted, new = contents(done), numbered.ids_of(rs.open(done))

    def append() -> AppendReport:
        return rs.append(more, out, threads=1, **options)

    found = {"old": 0, "new": 0, "begun": 0}
    for step in range(1, 1000, stride):
        shutil.copytree(packed, out)
        if not killed_before(step, append):
            break
        if (out / "dataset.json").exists():
            ids = numbered.ids_of(rs.open(out))
            assert ids in (old, new)
            found["old" if ids == old else "new"] += 1
        else:
            with raises(rs.CorruptDataError, defect="unfinished-dataset", path=tmp_path / "killed"):
                rs.open(out)
            found["begun"] += 1
        if step % 4 == 1:  # killed a second time, where it goes on
            killed_before(step // 2 + 1, append)
        assert append().appended_count == 6
        assert contents(out) == wanted
        shutil.rmtree(out)
    assert min(found.values()) > 0, found
    assert step > 20


def stopped_between_names(packed: Path, more: Path) -> None:
    """Kill an append at a moment when the folder is not a dataset."""
    child = os.fork()
    if child == 0:
        unlink = os.unlink

        def kill(path: Any) -> None:
            unlink(path)
            if Path(path) == packed / "dataset.json":
                os.kill(os.getpid(), signal.SIGKILL)

        os.unlink = kill  # type: ignore[assignment]
        rs.append(more, packed, threads=1)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.posix
def test_other_jobs_keep_an_interrupted_append(tmp_path: Path) -> None:
    packed, more = write_packed(tmp_path), write_more(tmp_path)
    stopped_between_names(packed, more)
    numbered.write_shard(tmp_path / "train.tfrecord", [300])
    with pytest.raises(rs.CorruptDataError):
        rs.append(tmp_path / "train.tfrecord", packed)
    for job in (rs.reshard, lambda a, b: rs.edit(a, b, drop=["name"])):
        with pytest.raises(rs.OptionError):
            job(tmp_path / "train.tfrecord", packed)
    (tmp_path / "bad.tfrecord").write_bytes((tmp_path / "train.tfrecord").read_bytes()[:-2])
    with raises(
        rs.CorruptDataError,
        defect="truncated-payload",
        path=tmp_path / "bad.tfrecord",
        record=0,
        offset=0,
    ):
        rs.reshard(tmp_path / "bad.tfrecord", packed, overwrite=True)
    assert len(rs.open(packed)) == 18  # the append was finished, so that nothing is mixed
    assert not rs.append(more, packed).is_new
    stopped = numbered.packed(tmp_path / "other", {"train": [5, 4]})
    stopped_between_names(stopped, more)
    rs.reshard(tmp_path / "train.tfrecord", stopped, overwrite=True)
    assert numbered.ids_of(rs.open(stopped)) == [300]
    assert len(shards_of(stopped)) == 1


@pytest.mark.posix
def test_a_job_does_not_mix_its_shards_with_an_interrupted_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shards have the names of those that the append needs to finish."""
    packed, more = write_packed(tmp_path), write_more(tmp_path)
    stopped_between_names(packed, more)
    numbered.packed(tmp_path / "in", {"train": [100]})
    before = numbered.ids_of(rs.open(tmp_path / "in"))
    reshard = partial(rs.reshard, tmp_path / "in", packed, shards=4, overwrite=True)
    with monkeypatch.context() as patched:
        module = importlib.import_module("recordsmith.writing.building.publishing")
        patched.setattr(module, "publish_dataset", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reshard()
    assert rs.append(more, packed).record_count == 18
    assert rs.verify(packed).is_good
    reshard()
    assert numbered.ids_of(rs.open(packed)) == before
    assert len(shards_of(packed)) == 4
