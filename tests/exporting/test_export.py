"""What holds for every format: all or nothing, nothing lost, everything said."""

from __future__ import annotations

import builtins
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.exporting import FORMATS

EVERY = pytest.mark.parametrize("as_", FORMATS)
WITH_PICTURES = pytest.mark.parametrize("as_", ["folder", "voc", "coco", "yolo", "csv"])


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    called = getattr(request.node, "callspec", None)
    if called is not None and called.params.get("as_") == "parquet":
        pytest.importorskip("pyarrow")


@pytest.fixture
def records(write: Any, picture: Any, box_features: Any) -> Path:
    """Five pictures in two splits, one box each."""
    examples = [
        picture(f"{number}.jpg", seed=number, more=box_features((0.25, 0.5, 0.75, 1)))
        for number in range(5)
    ]
    return write(train=examples[:3], val=examples[3:])  # type: ignore[no-any-return]


def below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@EVERY
def test_the_report_counts_what_is_there(
    records: Path, tmp_path: Path, as_: str, files: Any
) -> None:
    told: list[tuple[int, int]] = []
    out = tmp_path / "new" / "out"
    report = rs.export(records, out, as_, progress=lambda *numbers: told.append(numbers))
    written = files(out)
    assert report.record_count == 5
    assert report.splits == {"train": 3, "val": 2}
    assert report.file_count == len(written)
    assert report.size_bytes == sum(map(len, written.values()))
    assert [done for done, _ in told] == [1, 2, 3, 4, 5]
    assert (report.problems, report.changed_names, report.skipped) == ([], [], [])
    document = report.to_json()
    assert json.loads(json.dumps(document)) == document
    assert document["format"] == as_
    assert os.listdir(tmp_path / "new") == ["out"]


@EVERY
def test_the_same_records_give_the_same_bytes(
    records: Path, tmp_path: Path, as_: str, files: Any
) -> None:
    rs.export(records, tmp_path / "one", as_)
    rs.export(rs.open(records), tmp_path / "two", as_)
    assert files(tmp_path / "one") == files(tmp_path / "two")


@EVERY
def test_compressed_shards_and_slices(
    write: Any, picture: Any, tmp_path: Path, as_: str, files: Any
) -> None:
    examples = [picture(f"{number}.jpg", seed=number) for number in range(6)]
    plain = write(train=examples[2:5])
    rs.export(plain, tmp_path / "plain", as_)
    rs.export(write(train=examples[2:5], compression="gzip"), tmp_path / "gzip", as_)
    assert files(tmp_path / "gzip") == files(tmp_path / "plain")
    report = rs.export(rs.open(write(train=examples))[2:5], tmp_path / "slice", as_)
    assert report.record_count == 3
    assert files(tmp_path / "slice") == files(tmp_path / "plain")


@EVERY
def test_one_split_of_several(records: Path, tmp_path: Path, as_: str, files: Any) -> None:
    assert rs.export(records, tmp_path / "out", as_, split="val").splits == {"val": 2}
    assert rs.export(rs.open(records, "val"), tmp_path / "two", as_).splits == {"val": 2}
    assert files(tmp_path / "out") == files(tmp_path / "two")
    with pytest.raises(rs.OptionError, match="open"):
        rs.export(rs.open(records), tmp_path / "three", as_, split="val")


# -- names ---------------------------------------------------------------------------------------

HOSTILE = [
    *("../../x.jpg", "/etc/passwd", "C:\\pictures\\y.jpg", "a/../../b.jpg", "..", "/", ""),
    *("CON.jpg", "nul", "aux.png", "trailing. .jpg", "trailing. ", "line\nbreak.jpg", "\0.jpg"),
    *("Same.jpg", "same.JPG", "SAME.jpeg", "same.png", "d/same.jpg", "same-2.jpg"),
    *("x" * 300 + ".jpg", "花" * 300, "d/" * 900 + "deep.jpg", "10:30.jpg", ".hidden.jpg"),
    *("a.jpg/b.jpg", "a.jpg", "metadata.csv", "data.yaml", "annotations", "masks/m.jpg"),
]


@WITH_PICTURES
def test_hostile_names_stay_inside_and_lose_nothing(
    write: Any, picture: Any, tmp_path: Path, as_: str, files: Any
) -> None:
    names: list[str | bytes | None] = [*HOSTILE, b"\xff\xfe.jpg", b"\xff\xfd.jpg", None]
    examples = [picture(name, seed=number) for number, name in enumerate(names)]
    source = write(train=examples)
    before = below(tmp_path)
    report = rs.export(source, tmp_path / "out", as_)
    written = files(tmp_path / "out")
    assert [name for name in below(tmp_path) if not name.startswith("out")] == before
    assert report.record_count == len(names)
    pictures = sorted(
        data for name, data in written.items() if name.endswith((".jpg", ".JPG", ".jpeg"))
    )
    assert pictures == sorted(example["image/encoded"] for example in examples)
    assert len({name.lower() for name in written}) == len(written)
    for name in written:
        assert all(0 < len(part.encode()) <= 255 for part in name.split("/"))
    changed = {change.position: change for change in report.changed_names}
    assert {0, 1, 2, 3, 7, 8, 11, 12, 13, 15, 20, 21, 22, 23} <= changed.keys()
    assert changed[0].name == "../../x.jpg"
    assert changed[0].file.endswith("x.jpg")
    assert len(names) - 1 not in changed  # it had no name that could be kept
    for change in changed.values():
        assert change.file in written


@WITH_PICTURES
def test_good_names_are_kept_and_nothing_is_reported(
    write: Any, picture: Any, tmp_path: Path, as_: str, files: Any
) -> None:
    names = ["IMG 1.JPG", "Ölbild.jpeg", "v1.0.jpg", "images/train/a.jpg", "train/images/b.jpg"]
    source = write(train=[picture(name, seed=number) for number, name in enumerate(names)])
    report = rs.export(source, tmp_path / "out", as_)
    assert report.changed_names == []
    found = {name.rpartition("/")[2] for name in files(tmp_path / "out")}
    assert {name.rpartition("/")[2] for name in names} <= found


@WITH_PICTURES
def test_the_suffix_is_that_of_the_picture(
    write: Any, picture: Any, pictures: ModuleType, tmp_path: Path, as_: str, files: Any
) -> None:
    png = pictures.encode(pictures.noise(12, 8), "PNG")
    source = write(
        train=[
            picture("a.jpg") | {"image/encoded": png},
            picture("no suffix"),
            picture("b.PNG") | {"image/encoded": png, "image/format": "PNG"},
        ]
    )
    report = rs.export(source, tmp_path / "out", as_)
    ends = {name.rpartition("/")[2] for name in files(tmp_path / "out")}
    assert {"a.png", "no suffix.jpg", "b.PNG"} <= ends
    assert [change.position for change in report.changed_names] == [0, 1]
    assert report.problems == ["record 0: the record says that the picture is jpeg, it is png"]


def test_thousands_of_records_of_one_name(write: Any, picture: Any, tmp_path: Path) -> None:
    """Names that all collide cost no more than others."""
    example = picture("image.jpg", more={"image/class/text": "cat", "image/class/label": 0})
    report = rs.export(write(train=[example] * 3000), tmp_path / "out")
    assert len(os.listdir(tmp_path / "out" / "cat")) == 3000
    assert len(report.changed_names) == 2999


# -- records that are not as they should be ------------------------------------------------------


@WITH_PICTURES
def test_sizes_that_differ_are_reported(write: Any, picture: Any, tmp_path: Path, as_: str) -> None:
    source = write(train=[picture("a.jpg"), picture("b.jpg") | {"image/height": 9}])
    report = rs.export(source, tmp_path / "out", as_)
    assert report.problems == [
        "record 1: the record says 12 x 9 pixels, the picture's header 12 x 8"
    ]


def test_bytes_that_are_no_picture_come_out_as_they_are(
    write: Any, picture: Any, tmp_path: Path, files: Any
) -> None:
    broken = picture("a.png")["image/encoded"][:60]
    source = write(
        train=[
            picture("cut.jpg") | {"image/encoded": broken},
            picture("words") | {"image/encoded": b"words", "image/format": "?"},
        ]
    )
    report = rs.export(source, tmp_path / "out")
    assert files(tmp_path / "out") == {"images/cut.jpg": broken, "images/words.bin": b"words"}
    assert [problem.partition(":")[0] for problem in report.problems] == ["record 0", "record 1"]


@pytest.mark.parametrize("as_", ["folder", "voc", "coco", "yolo"])
def test_records_without_a_picture_stop_it_or_are_skipped(
    write: Any, picture: Any, tmp_path: Path, as_: str
) -> None:
    source = write(train=[picture("a.jpg"), {"x": 1}, {"y": 2}])
    out = tmp_path / "out"
    with pytest.raises(rs.SourceError, match="2 of 3") as caught:
        rs.export(source, out, as_)
    assert len(caught.value.problems) == 2
    assert "record 1" in caught.value.problems[0]
    assert below(tmp_path) == ["records", "records/train.tfrecord"]
    report = rs.export(source, out, as_, on_error="skip")
    assert report.record_count == 1
    assert len(report.skipped) == 2
    with pytest.raises(rs.SourceError, match="1 of 1"):
        rs.export(rs.open(source)[1:2], tmp_path / "none", as_, on_error="skip")


@EVERY
def test_other_messages_are_refused_in_words(
    tmp_path: Path, as_: str, write: Any, picture: Any
) -> None:
    source = write(train=[picture("a.jpg")])
    path = tmp_path / "sequences.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write_example(picture("a.jpg"))
        writer.write(rs.encode_sequence_example({"a": 1}, {"steps": [[1], [2]]}))
    with pytest.raises(rs.OptionError, match=r"sequences\.tfrecord, record 1.*SequenceExample"):
        rs.export([source / "train.tfrecord", path], tmp_path / "out", as_)
    assert not (tmp_path / "out").exists()


def test_damage_is_said_and_nothing_is_left(records: Path, tmp_path: Path) -> None:
    path = records / "val.tfrecord"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(rs.CorruptDataError, match=r"val\.tfrecord.*record 1"):
        rs.export(records, tmp_path / "out")
    assert os.listdir(tmp_path) == ["records"]


def test_no_records(write: Any, tmp_path: Path, picture: Any) -> None:
    with pytest.raises(rs.SourceError, match="no records"):
        rs.export(rs.open(write(train=[picture("a.jpg")]))[:0], tmp_path / "out")


def test_raw_pixels_become_png(write: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    colours = generator.integers(0, 256, (5, 7, 3), np.uint8)
    grey = generator.integers(0, 65536, (5, 7, 1), np.uint16)
    shape = {"image/format": "raw", "image/height": 5, "image/width": 7}
    examples = [
        {**shape, "image/encoded": colours.tobytes(), "image/depth": 3, "image/dtype": "uint8"},
        {**shape, "image/encoded": grey.tobytes(), "image/depth": 1, "image/dtype": "uint16"},
    ]
    report = rs.export(write(train=examples), tmp_path / "out")
    assert report.problems == []
    folder = tmp_path / "out" / "images"
    assert np.array_equal(np.asarray(Image.open(folder / "000000.png")), colours)
    assert np.array_equal(np.asarray(Image.open(folder / "000001.png")), grey[..., 0])
    wrong = [
        {**examples[0], "image/depth": 4},
        {**examples[0], "image/dtype": "float32"},
        {"image/encoded": b"x", "image/format": "raw"},
        {**shape, "image/encoded": bytes(5 * 7 * 5), "image/depth": 5},
        {**shape, "image/encoded": b"", "image/height": -5, "image/depth": 0},
    ]
    with pytest.raises(rs.SourceError, match="5 of 5") as caught:
        rs.export(write(train=wrong), tmp_path / "other")
    said = caught.value.problems
    assert "5 x 7 x 4 x 1" in said[0]
    assert "float32" in said[1]
    assert "image/height" in said[2]
    assert "7 x 5 raw pixels with 5 channels" in said[3]
    assert "7 x -5 raw pixels" in said[4]


# -- all or nothing ------------------------------------------------------------------------------


def test_a_folder_with_something_in_it_is_refused(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    rs.export(records, out)  # an empty one is fine
    (out / "mine.txt").write_text("mine")
    (out / "images").mkdir()
    before = below(out)
    with pytest.raises(rs.OptionError, match=r"not empty.*overwrite=True"):
        rs.export(records, out, "voc")
    assert below(out) == before
    rs.export(records, out, "voc", overwrite=True)
    assert sorted(os.listdir(out)) == [
        *(".export.json", "Annotations", "ImageSets", "JPEGImages", "images", "label_map.pbtxt"),
        "mine.txt",
    ]
    assert (out / "mine.txt").read_text() == "mine"
    assert not (out / "train").exists()  # of the export before


def test_a_file_or_the_dataset_itself_is_no_place(records: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(rs.OptionError, match="is a file"):
        rs.export(records, tmp_path / "file", overwrite=True)
    with pytest.raises(rs.OptionError, match="dataset itself"):
        rs.export(records, records, overwrite=True)
    assert below(records) == ["train.tfrecord", "val.tfrecord"]


def test_the_dataset_is_not_replaced_by_its_own_export(
    write: Any, picture: Any, tmp_path: Path
) -> None:
    """A class, say, may be called like the folder of the dataset."""
    source = write(train=[picture("a.jpg", more={"image/class/text": "data"})])
    place = tmp_path / "place"
    place.mkdir()
    source = source.rename(place / "data")
    before = below(place)
    with pytest.raises(rs.OptionError, match=r"data is in the way, and holds .*which is exported"):
        rs.export(source, place, overwrite=True)
    assert below(place) == before


def test_spaces_around_names_do_not_lose_pictures_in_lists(
    write: Any, picture: Any, tmp_path: Path
) -> None:
    names = [" a.jpg", "a .jpg", "\u3000a\u3000.jpg", "a.jpg", "  .jpg"]
    source = write(train=[picture(name, seed=number) for number, name in enumerate(names)])
    report = rs.export(source, tmp_path / "out", "voc")
    assert len(report.changed_names) == 5
    listing = rs.Voc(tmp_path / "out").list_samples()
    assert len(listing.samples) == len(names)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"as_": "zip"}, "expected one of folder, voc"),
        ({"on_error": "ignore"}, "'skip'"),
        ({"shard_size_bytes": 5}, "webdataset"),
        ({"as_": "webdataset", "shard_size_bytes": 0}, "1 or more"),
        ({"split": "test"}, "no split 'test'"),
    ],
)
def test_wrong_options(records: Path, tmp_path: Path, options: Any, said: str) -> None:
    with pytest.raises(rs.OptionError, match=said):
        rs.export(records, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


class _Stop(BaseException):
    """As Ctrl-C."""


@EVERY
@pytest.mark.parametrize("is_there", [False, True])
def test_a_stopped_job_leaves_nothing(
    records: Path, tmp_path: Path, as_: str, is_there: bool
) -> None:
    out = tmp_path / "out"
    if is_there:
        out.mkdir()
    else:
        out = tmp_path / "new" / "folder" / "out"

    def stop(done: int, _total: int) -> None:
        if done == 4:
            raise _Stop

    with pytest.raises(_Stop):
        rs.export(records, out, as_, progress=stop)
    assert below(tmp_path) == [*(["out"] if is_there else []), *below_records()]


def below_records() -> list[str]:
    return ["records", "records/train.tfrecord", "records/val.tfrecord"]


@EVERY
@pytest.mark.parametrize("at_file", [0, 1])
def test_a_full_disk_says_so_and_leaves_nothing(
    records: Path, tmp_path: Path, as_: str, at_file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recordsmith.exporting import outbox

    class Full:
        """A file on a disk that is full."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened: list[object] = []

    def open_full(*arguments: Any) -> Any:
        file = builtins.open(*arguments)  # noqa: SIM115
        opened.append(file)
        return Full(file) if len(opened) > at_file else file

    monkeypatch.setattr(outbox, "open", open_full, raising=False)
    with pytest.raises(rs.FileAccessError, match=r"cannot write .*out: no space is left"):
        rs.export(records, tmp_path / "out", as_)
    assert below(tmp_path) == below_records()


@pytest.mark.parametrize("failing", [1, 3, 5])
def test_an_export_that_cannot_be_moved_in_changes_nothing(
    records: Path, tmp_path: Path, failing: int, monkeypatch: pytest.MonkeyPatch, files: Any
) -> None:
    out = tmp_path / "out"
    rs.export(records, out, "voc")
    before = files(out), (out / ".export.json").read_bytes()
    rename, count = os.rename, 0

    def failing_rename(*arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == failing:
            raise KeyboardInterrupt
        rename(*arguments)

    monkeypatch.setattr(os, "rename", failing_rename)
    with pytest.raises(KeyboardInterrupt):
        rs.export(records, out, "coco", overwrite=True)
    assert (files(out), (out / ".export.json").read_bytes()) == before
    assert ".export.partial" not in os.listdir(out)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_killed_job_leaves_no_half_export_and_the_next_one_cleans_up(
    records: Path, tmp_path: Path, is_there: bool, files: Any
) -> None:
    out = tmp_path / "out"
    if is_there:
        out.mkdir()
    program = (
        "import os, signal, recordsmith as rs\n"
        "def die(done, total):\n"
        "    if done == 4: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"rs.export({str(records)!r}, {str(out)!r}, 'voc', progress=die)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], check=False)
    assert result.returncode == -9
    assert not out.exists() or all(name.startswith(".") for name in os.listdir(out))
    rs.export(records, out, "voc")
    rs.export(records, tmp_path / "undisturbed", "voc")
    assert files(out) == files(tmp_path / "undisturbed")
    assert sorted(os.listdir(tmp_path)) == ["out", "records", "undisturbed"]


def test_two_jobs_do_not_share_a_folder(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def begin_another(done: int, _total: int) -> None:
        if done == 1:
            with pytest.raises(rs.FileAccessError, match="another process"):
                rs.export(records, out)

    assert rs.export(records, out, progress=begin_another).record_count == 5


def test_a_link_leads_to_the_export(records: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    rs.export(records, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / ".export.json").is_file()


def test_entries_of_a_hostile_note_are_not_believed(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rs.export(records, out)
    (tmp_path / "precious").write_text("x")
    (out / ".export.json").write_text(json.dumps({"entries": ["../precious", "..", "", 5]}))
    rs.export(records, out, overwrite=True)
    assert (tmp_path / "precious").read_text() == "x"


Told = Callable[[int, int], None]


@pytest.mark.parametrize("as_", ["coco", "npz", "webdataset", "folder"])
def test_memory_does_not_grow_with_the_records(write: Any, tmp_path: Path, as_: str) -> None:
    """Twenty-five megabytes of records; what Python holds at its highest stays far below."""
    import tracemalloc

    example = {
        "image/encoded": np.random.default_rng(0).bytes(1_000_000),
        "image/format": "raw",
        "image/height": 1000,
        "image/width": 1000,
        "image/depth": 1,
    }
    if as_ == "npz":
        example.pop("image/depth")
    source = write(train=[example] * 25)
    rs.export(rs.open(source)[:2], tmp_path / "warm", as_)
    tracemalloc.start()
    rs.export(source, tmp_path / "out", as_)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000
