"""Finding shards: files, folders, globs, lists, and foreign names."""

from __future__ import annotations

import gzip
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import LABELS_NAME, MANIFEST_NAME, locate, shard_name
from recordsmith.stores import Location
from recordsmith.support.errors import CorruptDataError, Defect, MissingFileError

from .. import numbered_examples as numbered
from ..raising import raises


def _found(path: object, split: str | None = None) -> list[tuple[str, str]]:
    """(file name, split) of each shard."""
    return [(shard.location.name, shard.split) for shard in locate(path, split).shards]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "a b.tfrecord",
        "données-日本.tfrecord",
        pytest.param("[x]*?.tfrecord", marks=pytest.mark.posix),
        "no-suffix",
        pytest.param("caf\udce9.tfrecord", marks=pytest.mark.posix),
        "-x.tfrecord",
        "{a}.tfrecords",
    ],
)
def test_files_of_any_name(tmp_path: Path, name: str) -> None:
    path = numbered.write_shard(tmp_path / name, [1, 2])
    for spelling in (path, str(path), [path], (str(path),)):
        assert numbered.ids_of(rs.open(spelling)) == [1, 2]
    assert numbered.ids_of(rs.open(tmp_path)) == [1, 2]
    assert rs.open(path)[1]["name"] == ["näm 2".encode()]  # type: ignore[call-overload]


def test_compressed_shards_are_known_by_name_and_bytes(tmp_path: Path) -> None:
    numbered.write_shard(tmp_path / "a.tfrecord.gz", [1], "gzip")
    numbered.write_shard(tmp_path / "b.tfrecord", [2], "zlib")
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"words about the data"))
    assert [name for name, _ in _found(tmp_path)] == ["a.tfrecord.gz", "b.tfrecord"]
    assert numbered.ids_of(rs.open(tmp_path)) == [1, 2]


@pytest.mark.parametrize(
    "names",
    [
        {"a.tfr": None, "b.tfr": None},
        {"a.tfr": "zlib", "b.tfr": "zlib"},
        {"a.tfr.gz": "gzip", "b.tfr.gz": "gzip"},
        {"part": "zlib", "part2": "gzip"},
        {"part.1": None, "part.22": None, "part.333": "gzip"},
        {"a": None, "b.tfr": "zlib", "c.gz": "gzip", "d.TFR": None},
    ],
    ids=" ".join,
)
def test_a_folder_opens_as_a_glob_of_its_files(place: Location, names: dict[str, Any]) -> None:
    """The first bytes decide, once they are decompressed, whatever the names are."""
    for number, (name, compression) in enumerate(names.items()):
        numbered.write_shard(place / name, [number], compression)
    other = {"notes.txt": b"words", "x.json.bz": gzip.compress(b"{}"), "image.jpg": b"\xff\xd8"}
    for name, data in other.items():
        (place / name).put(data)
    assert numbered.ids_of(rs.open(place)) == list(range(len(names)))


@pytest.mark.parametrize(("count", "most"), [(10, 10), (3000, 64)])
def test_few_files_of_a_large_folder_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, most: int
) -> None:
    numbered.write_shard(tmp_path / "a.tfr", [1], "zlib")
    for number in range(count):
        (tmp_path / f"{number}.jpg").touch()
    read: list[str] = []
    read_range = Location.read

    def watched(location: Location, *args: Any) -> bytes:
        read.append(location.name)
        return read_range(location, *args)

    monkeypatch.setattr(Location, "read", watched)
    assert [name for name, _ in _found(tmp_path)] == ["a.tfr"]
    assert 0 < sum(name.endswith(".jpg") for name in read) <= most


def test_salvage_names_a_copy_that_it_leaves_out(tmp_path: Path) -> None:
    """It has records, but the manifest lists all of them elsewhere."""
    folder = numbered.packed(tmp_path / "in", {"train": [3]})
    shutil.copy(folder / "train-00000-of-00001.tfrecord", folder / "copy.tfrecord")
    report = rs.salvage(folder, tmp_path / "out")
    assert report.record_count == 3
    assert report.notices == [
        "left out 1 other file of the folder: copy.tfrecord; pass a glob to search them for records"
    ]


def test_a_damaged_shard_without_a_suffix_is_found(place: Location) -> None:
    """Its first bytes are not those of a record, but its name is like that of another shard."""
    for number in range(3):
        numbered.write_shard(place / f"fold-{number}.tfr", [number, number + 10])
    data = bytearray((place / "fold-1.tfr").read(0, 1 << 16))
    data[0] ^= 0xFF
    (place / "fold-1.tfr").put(bytes(data))
    assert {name for name, _ in _found(place)} == {f"fold-{number}.tfr" for number in range(3)}
    with raises(CorruptDataError, defect="length-crc-mismatch"):
        list(rs.open(place))


def test_many_files_are_located_in_linear_time(tmp_path: Path) -> None:
    for number in range(12_000):
        (tmp_path / f"{number}.tfrecord").touch()
    begin = time.process_time()
    assert len(_found(tmp_path)) == 12_000
    assert time.process_time() - begin < 4  # in quadratic time 7 s


def test_names_that_differ_from_the_manifest(tmp_path: Path) -> None:
    """They are reported with both; `salvage` recovers all records and names what is left."""
    folder = numbered.packed(tmp_path / "in", {"train": [20, 10], "validation": [5]})
    for number, name in enumerate(["train-00001-of-00002", "validation-00000-of-00001"]):
        (folder / f"{name}.tfrecord").rename(folder / f"renamed {number}")
    (folder / "damaged.tfr").write_bytes(b"no header")
    with raises(CorruptDataError, defect=Defect.MISSING_SHARD) as refused:
        rs.open(folder)
    assert refused.value.found == "renamed 0, renamed 1"
    assert refused.value.expected.startswith("train-00001-of-00002.tfrecord, as in dataset.json")
    assert {error.found for error in rs.verify(folder).defects} == {"renamed 0, renamed 1"}
    report = rs.salvage(folder, tmp_path / "rescued")
    assert numbered.ids_of(rs.open(tmp_path / "rescued")) == numbered.ids_of(
        rs.open([*sorted(folder.glob("train-*")), *sorted(folder.glob("renamed *"))])
    )
    assert report.record_count == 35
    assert len(report.missing) == 2
    assert any("damaged.tfr" in notice for notice in report.notices)


def test_other_files_in_a_folder_are_ignored(tmp_path: Path) -> None:
    numbered.write_shard(tmp_path / "a.tfrecord", [1])
    numbered.write_shard(tmp_path / ".hidden.tfrecord", [2])
    (tmp_path / "README.md").write_text("words about the data")
    (tmp_path / "short").write_bytes(b"x")
    (tmp_path / "below").mkdir()
    numbered.write_shard(tmp_path / "below" / "b.tfrecord", [3])
    assert [name for name, _ in _found(tmp_path)] == ["a.tfrecord"]


def test_damaged_file_with_a_shard_name_is_not_ignored(tmp_path: Path) -> None:
    numbered.write_shard(tmp_path / "a.tfrecord", [1])
    (tmp_path / "b.tfrecord").write_bytes(b"this was to be a shard, and is none")
    with raises(
        rs.CorruptDataError, defect="not-a-tfrecord", path=tmp_path / "b.tfrecord", offset=0
    ):
        list(rs.open(tmp_path))


def test_globs(tmp_path: Path) -> None:
    folder = numbered.packed(tmp_path / "set", {"train": [1, 1], "test": [1]})
    for split, ids in {"train": [0, 1], "test": [2]}.items():
        dataset = rs.open(folder / f"{split}-*")
        assert numbered.ids_of(dataset) == ids
        assert dataset.class_names == numbered.class_names
    assert numbered.ids_of(rs.open(str(folder / "*"))) == [
        2,
        0,
        1,
    ]  # without dataset.json and labels.txt
    assert numbered.ids_of(rs.open(str(tmp_path / "*" / "*.tfrecord"), split="test")) == [2]
    with raises(rs.OptionError, value=tmp_path / "*.nothing", match="no file", option="paths"):
        rs.open(tmp_path / "*.nothing")


def test_list_keeps_its_order(tmp_path: Path) -> None:
    paths = [
        numbered.write_shard(tmp_path / f"{name}.tfrecord", [i]) for i, name in enumerate("cab")
    ]
    assert numbered.ids_of(rs.open(paths)) == [0, 1, 2]
    assert numbered.ids_of(rs.open([paths[2], tmp_path / "[ab].*", paths[0]])) == [2, 1, 2, 0]
    with raises(rs.OptionError, option="paths", value=[]):
        rs.open([])


def test_list_has_class_names_only_where_they_agree(tmp_path: Path) -> None:
    one = numbered.packed(tmp_path / "one", {"train": [1]})
    two = numbered.packed(tmp_path / "two", {"train": [1]})
    assert rs.open([one, two]).class_names == numbered.class_names
    other = numbered.write_shard(tmp_path / "other.tfrecord", [9])
    assert rs.open([one, other]).class_names is None
    assert numbered.ids_of(rs.open([one, two, other])) == [0, 0, 9]


@pytest.mark.parametrize("missing", [{0}, {1}, {3}, {0, 2}, {1, 2}])
def test_missing_numbered_shard_is_found(tmp_path: Path, missing: set[int]) -> None:
    for number in set(range(4)) - missing:
        numbered.write_shard(tmp_path / shard_name("train", number, 4), [number])
    for look in (rs.open, rs.inspect):
        with raises(
            rs.CorruptDataError,
            defect=rs.Defect.MISSING_SHARD,
            path=tmp_path / shard_name("train", min(missing), 4),
        ):
            look(tmp_path)
    report = rs.verify(tmp_path)
    assert {error.path for error in report.defects} == {
        str(tmp_path / shard_name("train", number, 4)) for number in missing
    }
    assert {error.defect for error in report.defects} == {rs.Defect.MISSING_SHARD}
    # existing shards can be opened by name
    assert len(rs.open(tmp_path / "train-*")) == 4 - len(missing)


@pytest.mark.parametrize("with_manifest", [False, True])
def test_missing_shard_of_another_split_does_not_matter(
    tmp_path: Path, with_manifest: bool
) -> None:
    folder = numbered.packed(tmp_path, {"test": [1, 1], "train": [2]})
    if not with_manifest:
        (folder / MANIFEST_NAME).unlink()
    (folder / shard_name("test", 1, 2)).unlink()
    with pytest.raises(rs.CorruptDataError):
        rs.open(folder, split="test")
    assert not rs.verify(folder, split="test").is_good
    assert numbered.ids_of(rs.open(folder, split="train")) == [2, 3]
    assert rs.verify(folder, split="train").is_good


def test_names_of_a_million_shards_are_cheap(tmp_path: Path) -> None:
    numbered.write_shard(tmp_path / "x-00000-of-99999999999999999999.tfrecord", [1])
    located = locate(tmp_path)
    assert 1 <= len(located.missing) < 10


def test_packed_folder_has_shards_of_its_manifest(tmp_path: Path) -> None:
    folder = numbered.packed(tmp_path, {"train": [2, 1], "test": [1]})
    numbered.write_shard(folder / "stray.tfrecord", [9])
    dataset = rs.open(folder)
    assert numbered.ids_of(dataset) == [
        0,
        1,
        2,
        3,
    ]  # in the order of the manifest, without the stray file
    assert numbered.ids_of(rs.open(folder, split="test")) == [3]
    assert dataset.class_names == numbered.class_names


def test_unknown_split_lists_the_known_ones(tmp_path: Path) -> None:
    folder = numbered.packed(tmp_path, {"train": [1], "test": [1]})
    for path in (folder, folder / "*.tfrecord"):
        with raises(rs.OptionError, option="split", value="validation") as caught:
            rs.open(path, split="validation")
        assert all(name in str(caught.value) for name in ("train", "test"))
    with pytest.raises(rs.OptionError, match="did you mean 'train'"):
        rs.open(folder, split="trian")


def test_missing_paths(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError) as caught:
        rs.open(tmp_path / "missing")
    assert not caught.value.remedy
    (tmp_path / "flowers").mkdir()
    with pytest.raises(MissingFileError) as caught:
        rs.open(tmp_path / "flowres")
    assert str(tmp_path / "flowers") in caught.value.remedy
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(rs.FileAccessError):
        rs.open(tmp_path / "file" / "below")


def test_error_of_a_folder_without_records_lists_its_contents(tmp_path: Path) -> None:
    with raises(rs.OptionError, option="paths", value=tmp_path, match="empty"):
        rs.open(tmp_path)
    (tmp_path / "README.md").write_text("words about nothing in particular")
    (tmp_path / "deeper").mkdir()
    with raises(
        rs.OptionError, option="paths", value=tmp_path, match=r"README\.md, .*deeper"
    ) as caught:
        rs.open(tmp_path)
    assert "glob" in caught.value.remedy


def test_labels_next_to_foreign_shards_are_read(tmp_path: Path) -> None:
    path = numbered.write_shard(tmp_path / "a.tfrecord", [1])
    (tmp_path / LABELS_NAME).write_text("0:x\n1:y\n")
    for spelling in (path, tmp_path, tmp_path / "*.tfrecord", [path]):
        assert rs.open(spelling).class_names == ("x", "y")


CAT = "item { id: 1 name: 'cat' }\n"
DOG = "item { id: 2 name: 'dog' }\n"


@pytest.mark.parametrize("name", ["label_map.pbtxt", "Objects_label_map.pbtxt"])
def test_label_maps_next_to_foreign_shards_are_read(tmp_path: Path, name: str) -> None:
    path = numbered.write_shard(tmp_path / "Objects.tfrecord", [1])
    (tmp_path / name).write_text(CAT + DOG)
    for spelling in (path, tmp_path, tmp_path / "*", [path], [path, tmp_path]):
        assert rs.open(spelling).class_names == (None, "cat", "dog")
        assert str(locate(spelling).label_map) == str(tmp_path / name)  # type: ignore[arg-type]
    with raises(rs.OptionError, option="paths", value=tmp_path / name):
        rs.open(tmp_path / name)
    (tmp_path / name).write_text(CAT + CAT)
    with raises(rs.OptionError, match=name) as caught:
        rs.open(path)
    assert "remove" in caught.value.remedy
    (tmp_path / LABELS_NAME).write_text("0:x\n1:y\n")
    assert rs.open(tmp_path).class_names == ("x", "y")


@pytest.mark.parametrize(
    ("label_maps", "class_names"),
    [
        ({"train/a": CAT, "valid/b": CAT}, (None, "cat")),
        ({"train/a": CAT}, (None, "cat")),
        ({"a": CAT, "valid/b": CAT}, (None, "cat")),
        ({"a": CAT}, (None, "cat")),
        ({"train/a": CAT, "train/b": CAT}, (None, "cat")),
        ({"train/a": CAT, "valid/b": DOG}, None),
        ({"a": CAT, "valid/b": DOG}, None),
        ({"train/a": CAT, "train/b": DOG}, None),
    ],
)
def test_label_maps_in_folders_of_splits(
    tmp_path: Path, label_maps: dict[str, str], class_names: tuple[str | None, ...] | None
) -> None:
    for split in ("train", "valid"):
        (tmp_path / split).mkdir()
        numbered.write_shard(tmp_path / split / "Objects.tfrecord", [1])
    paths = [tmp_path / f"{path}_label_map.pbtxt" for path in label_maps]
    for path, text in zip(paths, label_maps.values(), strict=True):
        path.write_text(text)
    if class_names is not None:
        assert rs.open(tmp_path).class_names == class_names
        return
    with raises(rs.OptionError, option="paths", match="different classes") as caught:
        rs.open(tmp_path)
    assert all(str(path) in str(caught.value) for path in paths)


# -- opening ---------------------------------------------------------------------------------------


def test_opening_reads_no_record(place: Location) -> None:
    folder = numbered.packed(place, {"train": [3]})
    path = folder / shard_name("train", 0, 1)
    good = path.read()
    schema = rs.open(folder).schema
    path.put(b"\0" * len(good))
    dataset = rs.open(folder)
    assert dataset.schema == schema
    assert len(dataset) == 3
    with pytest.raises(rs.CorruptDataError):
        dataset[0]


@pytest.mark.parametrize(
    "change",
    [lambda data: data[:-1], lambda data: data + b"\0", lambda _: b""],
    ids=["cut", "grown", "empty"],
)
def test_shard_of_another_size_is_refused(place: Location, change: object) -> None:
    folder = numbered.packed(place, {"train": [3], "test": [1]})
    path = folder / shard_name("train", 0, 1)
    path.put(change(path.read()))  # type: ignore[operator]
    with raises(rs.CorruptDataError, defect=rs.Defect.SHARD_SIZE, path=path):
        rs.open(folder)
    assert numbered.ids_of(rs.open(folder, split="test")) == [3]
