"""Records in other shards: the same ones, in the order that was asked for, under true names."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from PIL import Image

import recordsmith as rs
from recordsmith.dataset import LABEL_MAP_NAME, label_map_to_bytes, read_manifest, records_of
from recordsmith.stores import Location, PlaceLike, as_folder

from ... import numbered_examples as numbered
from ...places import visible
from ...raising import raises

CONDITIONS: dict[str | None, Callable[[int], bool]] = {  # of the features in numbered_examples
    "missing(steps)": lambda number: number % 4 == 0,
    "steps == 1 or id < 3": lambda number: number % 4 > 1 or number < 3,
    "not 5 <= score < 20": lambda number: not 20 <= number < 80,
    "name.endswith('7')": lambda number: number % 10 == 7,
}
NEGATE = rs.Edits(recode={"id": {number: -number for number in range(100) if number != 77}})


def id_of(payload: Any) -> int:
    return int(rs.decode_example(payload)["id"][0])


def ids_in(path: Any, split: str | None = None) -> list[int]:
    return [id_of(record) for record in rs.open(path, split).records()]


def assert_is_true(place: PlaceLike) -> None:
    """Every checksum is right, and the manifest agrees with the records."""
    folder = as_folder(place)
    report = rs.verify(folder)
    assert report.is_good, report.defects
    manifest = read_manifest(folder)
    assert manifest is not None
    for split, entries in manifest.splits.items():
        fresh = rs.open([folder / entry.file for entry in entries])
        assert fresh.schema == manifest.schemas[split]
    files = [folder / entry.file for entries in manifest.splits.values() for entry in entries]
    assert rs.open(files).schema == manifest.schema
    internal = {location.name for location in (folder / ".recordsmith").list()}
    assert internal == {f"{file.name}.index" for file in files}


@pytest.fixture
def foreign(place: Location) -> Location:
    return numbered.write_shard(place / "flowers.tfrecord", range(200))


@pytest.fixture
def foreign_file(tmp_path: Path) -> Path:
    return numbered.write_shard(tmp_path / "flowers.tfrecord", range(200))


def test_there_and_back_again_gives_the_same_file(place: Location, foreign: Location) -> None:
    path: Location = foreign
    for number, count in enumerate((7, 3, 1)):
        report = rs.reshard(path, place / str(number), shards=count)
        assert (report.record_count, report.shard_count) == (200, count)
        assert_is_true(path := place / str(number))
        assert ids_in(path) == list(range(200))
    assert (path / "flowers-00000-of-00001.tfrecord").read() == foreign.read()
    steps = read_manifest(path).provenance["source"]["provenance"]
    assert [step["reshard"]["shards"] for step in steps] == [7, 3]


def test_tensorflow_reads_the_same_records(tmp_path: Path, tf) -> None:
    numbered.packed(tmp_path / "in", {"train": [30, 11]}, "zlib")
    rs.reshard(tmp_path / "in", tmp_path / "out", shards=3, compression="gzip")

    def read(folder: Path, compression: str) -> list[bytes]:
        files = sorted(map(str, folder.glob("train-*")))
        return [r.numpy() for r in tf.data.TFRecordDataset(files, compression)]

    assert read(tmp_path / "in", "ZLIB") == read(tmp_path / "out", "GZIP")
    assert len(read(tmp_path / "out", "GZIP")) == 41


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_options_keep_exactly_what_they_should(tmp_path_factory, data) -> None:
    """Against a reference of lists: which ids there are in each split, in order or not."""
    root = tmp_path_factory.mktemp("any")
    draw = data.draw
    counts = st.lists(st.integers(0, 30), min_size=1, max_size=2)
    paths, have = [], {}
    for number in range(draw(st.integers(1, 2))):
        folder = root / f"in{number}"
        numbered.packed(
            folder,
            {split: draw(counts) for split in draw(st.sampled_from((["a"], ["a", "b"])))},
            draw(st.sampled_from(("none", "gzip"))),
        )
        paths.append(folder)
    for split in ("a", "b"):
        for path in paths:
            if split in read_manifest(path).splits:
                have.setdefault(split, []).extend(rs.open(path, split).records())
    options: dict[str, Any] = {
        "shuffle": draw(st.booleans()),
        "seed": draw(st.integers(0, 3)),
        "take": draw(st.none() | st.integers(1, 40)),
        "sample": draw(st.none() | st.sampled_from((0.1, 0.5, 1.0))),
        "splits": draw(st.none() | st.just({"x": 0.75, "y": 0.25})),
        "where": draw(st.none() | st.sampled_from(list(CONDITIONS))),
        "compression": draw(st.sampled_from((None, "none", "zlib"))),
        "shard_size_bytes": draw(st.sampled_from((None, 1000))),
        "threads": draw(st.integers(1, 3)),
    }
    matches = CONDITIONS.get(options["where"], lambda _: True)
    take, sample = options["take"], options["sample"] or 1
    kept = {
        split: [record for record in records if matches(id_of(record))]
        for split, records in have.items()
    }
    if options["splits"]:
        drawn = int(sum(map(len, kept.values())) * sample + 0.5)
        y = round(drawn * 0.25 - 1e-9)  # of two remainders that are alike, the first gets more
        sizes = {"x": drawn - y, "y": y}
    else:
        sizes = {split: int(len(records) * sample + 0.5) for split, records in kept.items()}
        sizes = {split: size for split, size in sizes.items() if size}
    if not sizes or not all(sizes.values()):
        with pytest.raises((rs.OptionError, rs.SourceError)):
            rs.reshard(paths, root / "out", **options)
        assert not (root / "out").exists()
        return
    report = rs.reshard(paths, root / "out", **options)
    sizes = {split: size if take is None else min(size, take) for split, size in sizes.items()}
    assert report.splits == sizes
    assert_is_true(root / "out")
    everything = [r for path in paths for r in rs.open(path).records()]
    everything = [record for record in everything if matches(id_of(record))]
    left = Counter(everything)
    for split in sizes:
        found = list(rs.open(root / "out", split).records())
        left.subtract(found)
        if not options["shuffle"]:
            remaining = iter(everything if options["splits"] else kept[split])
            assert all(record in remaining for record in found)  # in their order
    assert min(left.values()) >= 0  # no record more often than it was there
    assert sum(left.values()) == len(everything) - sum(sizes.values())
    again = rs.reshard(paths, root / "again", **{**options, "threads": 4 - options["threads"]})
    assert visible(again.folder) == visible(root / "out")


def test_shuffled_over_all_shards_by_the_seed(place: Location) -> None:
    numbered.packed(place / "in", {"train": [400, 1, 199], "test": [50]})
    orders = []
    for seed in (0, 1):
        rs.reshard(place / "in", place / f"{seed}", shuffle=True, seed=seed, shards=4)
        assert_is_true(place / f"{seed}")
        orders.append(ids_in(place / f"{seed}", "train"))
        assert sorted(orders[-1]) == list(range(600))
        assert sorted(ids_in(place / f"{seed}", "test")) == list(range(600, 650))
        firsts = orders[-1][:150]  # of the first shard: they come from everywhere
        assert 60 < sum(number < 300 for number in firsts) < 90
    assert orders[0] != orders[1]
    assert sum(a == b for a, b in zip(*orders, strict=True)) < 20


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sample": 0.5}])
def test_records_longer_than_what_is_read_at_a_time(
    place: Location, foreign: Location, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rs.reshard(foreign, place / "plain", shards=2, **options)
    monkeypatch.setattr("recordsmith.writing.reshaping.inputs._GROUP_BYTES", 50)
    assert min(records_of(rs.open(foreign)).record_sizes(range(200))) > 50
    rs.reshard(foreign, place / "out", shards=2, **options)
    assert visible(place / "out") == visible(place / "plain")


def test_number_and_size_of_shards(place: Location) -> None:
    numbered.packed(place / "in", {"train": [90], "test": [10]})
    report = rs.reshard(place / "in", place / "a", shards={"train": 5, "test": 1})
    assert report.shard_count == 6
    report = rs.reshard(
        place / "in", place / "b", shard_size_bytes=2000, split="train",
        shard_names="{split}.{shard}",
    )  # fmt: skip
    sizes = [path.size() for path in (place / "b" / "train.*").glob()]
    assert len(sizes) == report.shard_count == 4
    assert max(sizes) < 2050
    assert sorted(visible(place / "b"))[2] == "train.0.tfrecord"


# -- what others write ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"sample": 0.5}, {"shards": 3}])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_edited_records(place: Location, options: Any, compression: str) -> None:
    numbered.packed(place / "in", {"train": [50, 26]}, compression)
    rs.reshard(place / "in", place / "plain", **options)
    report = rs.reshard(place / "in", place / "out", edits=NEGATE, **options)
    assert_is_true(report.folder)
    assert ids_in(report.folder) == [-number for number in ids_in(place / "plain")]
    assert rs.open(report.folder).class_names == numbered.class_names
    assert read_manifest(report.folder).provenance["reshard"]["edits"] == NEGATE.to_json()


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"where": "id in (7, 70, 77)"}])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_errors_of_edits_are_located(place: Location, options: Any, compression: str) -> None:
    numbered.packed(place / "in", {"train": [50, 50]}, compression)
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.reshard(place / "in", place / "out", edits=NEGATE, **options)
    error = caught.value
    shard = rs.open(place / "in").shards[1]
    assert (error.path, error.record) == (str(shard.location), 27)
    assert error.offset == shard.index.offsets[27]
    assert not (place / "out").is_folder()


# -- several inputs -------------------------------------------------------------------------------


def test_label_maps_are_copied(place: Location) -> None:
    numbered.packed(place / "in", {"train": [3]})
    (place / "in" / LABEL_MAP_NAME).put(label_map_to_bytes(numbered.class_names))
    out = rs.reshard(place / "in", place / "out").folder
    for name in (LABEL_MAP_NAME, "labels.txt"):
        assert (out / name).read() == (place / "in" / name).read()


@pytest.mark.parametrize("id_", [0, 1])
def test_label_maps_of_foreign_shards(tmp_path: Path, id_: int) -> None:
    """As Roboflow exports them; a class with the number of the background is noticed."""
    for split in ("train", "valid"):
        (tmp_path / "in" / split).mkdir(parents=True)
        numbered.write_shard(tmp_path / "in" / split / "Objects.tfrecord", [id_])
        label_map = f"item {{ id: {id_} name: 'cat' }}"
        (tmp_path / "in" / split / "Objects_label_map.pbtxt").write_text(label_map)
    names = (*[None] * id_, "cat")
    resharded = rs.reshard(tmp_path / "in", tmp_path / "resharded")
    packed = rs.pack(rs.Shards(tmp_path / "in"), tmp_path / "packed")
    for result in (resharded, packed):
        assert rs.open(result.folder).class_names == names
        assert (result.folder / LABEL_MAP_NAME).read() == label_map_to_bytes(names)
        assert sum("id 0" in notice for notice in result.notices) == (id_ == 0)


def test_different_classes(place: Location) -> None:
    """Names that only one input has are joined; two names of a label are refused."""
    for name in ("one", "two"):
        numbered.packed(place / name, {"train": [3]})
    manifest = json.loads((place / "two" / "dataset.json").read())
    names = [*manifest["class_names"]]
    inputs = [place / "one", place / "two"]
    manifest["class_names"] = [*names[:1], None, *names[2:], "rose"]
    (place / "two" / "dataset.json").put(json.dumps(manifest).encode())
    for paths in (inputs, inputs[::-1]):
        rs.reshard(paths, place / "out", overwrite=True)
        assert rs.open(place / "out").class_names == (*names, "rose")
    manifest["class_names"][1] = "rose"
    (place / "two" / "dataset.json").put(json.dumps(manifest).encode())
    with raises(rs.OptionError, option="paths", match=r"1 is 'müsli' .*'rose'", value="rose"):
        rs.reshard(inputs, place / "out", overwrite=True)


@pytest.mark.posix
def test_files_given_twice(tmp_path: Path, foreign_file: Path) -> None:
    (tmp_path / "link.tfrecord").symlink_to(foreign_file)
    for again in (foreign_file, tmp_path / "link.tfrecord", f"{tmp_path}/f*"):
        with raises(rs.OptionError, option="paths"):
            rs.reshard([foreign_file, again], tmp_path / "out")  # type: ignore[list-item]


def test_notice_about_different_kinds(place: Location) -> None:
    numbered.write_shard(place / "train-00000-of-00002", range(3))
    with rs.ShardWriter(place / "train-00001-of-00002") as writer:
        writer.write_example({"id": "three"})
    report = rs.reshard(place / "train-*", place / "out")
    (notice,) = report.notices
    assert "'id'" in notice
    assert_is_true(report.folder)


@pytest.mark.parametrize(
    ("first", "second", "option", "expected"),
    [
        ("gzip", "gzip", None, "gzip"),
        ("gzip", "zlib", None, "none"),
        ("none", "gzip", None, "none"),
        ("zlib", "zlib", "none", "none"),
        ("none", "none", "gzip", "gzip"),
    ],
)
def test_compression_stays_where_all_are_alike(
    place: Location, first: str, second: str, option: str | None, expected: str
) -> None:
    for name, compression in (("one", first), ("two", second)):
        numbered.packed(place / name, {"train": [20]}, compression)
    report = rs.reshard([place / "one", place / "two"], place / "out", compression=option, shards=3)
    assert_is_true(report.folder)
    assert {shard.compression for shard in rs.open(report.folder).shards} == {expected}
    assert ids_in(report.folder) == [*range(20), *range(20)]


def test_a_stream_without_its_end_mark_is_read_to_its_end(
    place: Location, foreign: Location
) -> None:
    path = place / "cut.tfrecord.gz"
    path.put(gzip.compress(foreign.read())[:-8])
    report = rs.reshard(path, place / "out", shards=4, compression="none")
    assert ids_in(report.folder) == list(range(200))
    assert len(report.notices) == 1
    assert str(path) in report.notices[0]
    assert str(rs.Defect.TRUNCATED_COMPRESSION) in report.notices[0]
    assert "after 200 complete records" in report.notices[0]
    assert rs.reshard(path, place / "out", shards=4, compression="none").notices == (report.notices)


# -- what is there already ------------------------------------------------------------------------


def test_the_same_job_again_has_nothing_to_do(tmp_path: Path, foreign_file: Path) -> None:
    first = rs.reshard(foreign_file, tmp_path / "out", shards=2)

    def times() -> dict[Path, int]:
        found = (tmp_path / "out").rglob("*")
        return {path: path.stat().st_mtime_ns for path in found if path.is_file()}

    before = times()
    again = rs.reshard(foreign_file, tmp_path / "out", shards=2)
    assert not again.is_new
    assert again.to_json() == {**first.to_json(), "is_new": False}
    assert times() == before
    with raises(rs.OptionError, option="out", value=tmp_path / "out", match="200 records"):
        rs.reshard(foreign_file, tmp_path / "out", shards=3)
    assert rs.reshard(foreign_file, tmp_path / "out", shards=3, overwrite=True).shard_count == 3
    assert_is_true(tmp_path / "out")
    os.utime(foreign_file, ns=(1, 1))  # its contents may have changed
    with raises(rs.OptionError, option="out", value=tmp_path / "out", match="another dataset"):
        rs.reshard(foreign_file, tmp_path / "out", shards=3)


@pytest.mark.posix
def test_the_output_is_separate_from_the_inputs(tmp_path: Path, foreign_file: Path) -> None:
    numbered.packed(tmp_path / "in", {"train": [3]})
    (tmp_path / "link").symlink_to(tmp_path / "in")
    for paths, out in (
        (tmp_path / "in", tmp_path / "in"),
        (tmp_path / "in", tmp_path / "in" / "below"),
        (tmp_path / "in", tmp_path / "link" / "below"),
        (tmp_path / "in" / "train-00000-of-00001.tfrecord", tmp_path / "link"),
        (f"{tmp_path}/in/train*", tmp_path / "in"),
    ):
        with raises(rs.OptionError, option="out"):
            rs.reshard(paths, out, overwrite=True)
    with raises(rs.OptionError, option="out", match="file"):
        rs.reshard(tmp_path / "in", foreign_file)
    assert sorted(os.listdir(tmp_path / "in")) == [
        "dataset.json", "labels.txt", "train-00000-of-00001.tfrecord",
    ]  # fmt: skip


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shards": 201}, "201"),
        ({"shards": 0}, "shards"),
        ({"shards": {"test": 1}}, "'test'"),
        ({"shards": 2, "shard_size_bytes": 9}, "shard"),
        ({"take": 0}, "take .* 0$"),
        ({"sample": 0}, "sample .* got 0"),
        ({"sample": 1.5}, "sample .* got 1.5"),
        ({"sample": 0.001}, "200 records are left"),
        ({"splits": {"a": 0.5}}, "0.5"),
        ({"splits": {"a": 0.999, "b": 0.001}}, "'b' would be empty"),
        ({"splits": {"a/b": 1}}, "'a/b'"),
        ({"where": "id < 0"}, "200 records match"),
        ({"where": "id < 0", "splits": {"a": 1}}, "200 records match"),
        ({"split": "test"}, "'test'"),
        ({"seed": "x"}, "seed .* 'x'$"),
        ({"compression": "zip"}, "'zip'"),
        ({"shard_names": "{split}", "shards": 2}, "name"),
        ({"threads": 0}, "threads"),
        ({"where": 3}, "where"),
        ({"edits": 3}, "edits"),
    ],
)
def test_invalid_options(place: Location, foreign: Location, options: Any, text: str) -> None:
    with pytest.raises(rs.OptionError, match=text):
        rs.reshard(foreign, place / "out", **options)
    assert not (place / "out").is_folder()


def test_no_records(place: Location) -> None:
    (place / "a.tfrecord").put(b"")
    with raises(rs.SourceError, path="a.tfrecord"):
        rs.reshard(place / "a.tfrecord", place / "out")
    numbered.packed(place / "in", {"train": [0, 3], "test": [0]})
    report = rs.reshard([place / "in", place / "a.tfrecord"], place / "out")
    assert report.splits == {"train": 3}
    assert str(place / "a.tfrecord") in report.notices[0]
    assert report.notices[-1].startswith("split 'a' was skipped")


def _damaged(path: Location, how: str) -> Location:
    data = bytearray(path.read())
    if how == "payload":
        data[len(data) // 2] ^= 1
    elif how == "cut":
        del data[-5:]
    path.put(bytes(data))
    return path


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"sample": 0.9}, {"shards": 9}])
@pytest.mark.parametrize("how", ["payload", "cut"])
def test_damage_stops_the_job_without_output(
    place: Location, foreign: Location, how: str, options: Any
) -> None:
    _damaged(foreign, how)
    (found,) = rs.verify(foreign).defects
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.reshard(foreign, place / "out", **options)
    error = caught.value
    assert "Nothing was written" in error.remedy
    assert (error.defect, error.path, error.record, error.offset) == (
        found.defect, str(foreign), found.record, found.offset,
    )  # fmt: skip
    assert not (place / "out").is_folder()


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shards_that_differ_from_the_manifest(place: Location, compression: str) -> None:
    folder = numbered.packed(place / "in", {"train": [30]}, compression)
    manifest = json.loads((folder / "dataset.json").read())
    for count in (29, 31):
        manifest["splits"]["train"][0]["records"] = count
        (folder / "dataset.json").put(json.dumps(manifest).encode())
        for options in ({}, {"shuffle": True}):
            with raises(
                rs.CorruptDataError,
                defect=rs.Defect.RECORD_COUNT,
                path=(folder / "train-*").glob()[0],
            ):
                rs.reshard(folder, place / "out", **options)  # type: ignore[arg-type]
            assert not (place / "out").is_folder()


@pytest.mark.parametrize("change", ["replace", "cut", "remove", "touch"])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}])
def test_an_input_that_changes_while_it_is_read(tmp_path: Path, change: str, options: Any) -> None:
    paths = [numbered.write_shard(tmp_path / f"train-{n:05}-of-00002", range(300)) for n in (0, 1)]
    done = False

    def interfere(_done: int, _total: int) -> None:
        nonlocal done
        if done:
            return
        done = True
        if change == "replace":
            numbered.write_shard(tmp_path / "other", range(300, 500))
            os.replace(tmp_path / "other", paths[1])
        elif change == "cut":
            os.truncate(paths[1], 1000)
        elif change == "remove":
            paths[1].unlink()
        else:
            os.utime(paths[1], ns=(1, 1))

    with raises((rs.CorruptDataError, rs.FileAccessError), path=paths[1]) as caught:
        rs.reshard(paths, tmp_path / "out", progress=interfere, threads=1, **options)
    expected = rs.FileAccessError if change == "remove" else rs.CorruptDataError
    assert isinstance(caught.value, expected)
    assert not list((tmp_path / "out").glob("[!.]*"))


@pytest.mark.posix
def test_no_more_files_are_open_than_a_process_may_have(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    if not Path("/proc/self/fd").exists():
        pytest.skip("open files cannot be counted here")
    numbered.packed(tmp_path / "in", {split: [2] * 140 for split in "abc"})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 330, hard))
    try:
        for number, options in enumerate(({"shuffle": True}, {"sample": 0.5})):
            rs.reshard(tmp_path / "in", tmp_path / f"{number}", shards=1, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert sorted(ids_in(tmp_path / "0")) == list(range(840))


def test_a_dataset_is_packed_again_with_tiles(tmp_path: Path, images: Any) -> None:
    """What `reshard` does not do: only the JPEGs change, and not their pixels."""
    source = tmp_path / "in"
    source.mkdir()
    with rs.ShardWriter(source / "train-00000-of-00001.tfrecord") as writer:
        for seed in range(3):
            photo = images.jpeg(seed, 300, 260)
            writer.write_example({"id": seed, "image/encoded": photo, "text": b"\xff"})
    options = rs.ImageOptions(tiles=True)
    rs.pack(source, tmp_path / "out", image_options=options, shuffle=False)
    assert_is_true(tmp_path / "out")
    for before, after in zip(rs.open(source), rs.open(tmp_path / "out"), strict=True):
        (old,), (new,) = before.pop("image/encoded"), after.pop("image/encoded")  # type: ignore[attr-defined]
        assert b"\xff\xd0" in new
        assert b"\xff\xd0" not in old
        pixels = [np.asarray(Image.open(io.BytesIO(data))) for data in (old, new)]
        assert np.array_equal(*pixels)
        assert {key: list(before[key]) for key in before} == {
            key: list(after[key]) for key in after if key in before
        }
