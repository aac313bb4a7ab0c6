"""Properties of all formats: atomic, lossless, and all problems reported."""

from __future__ import annotations

import builtins
import errno
import json
import os
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app, load_command
from recordsmith.exporting import EXPORTERS, ExportReport, ExportWriter
from recordsmith.exporting.exporter import WHAT, FolderExporter
from recordsmith.stores import EXPORT_NOTE, Location
from recordsmith.stores.folders import BEGUN_NOTE
from recordsmith.stores.local.store import LocalStore
from recordsmith.support.problems import MAX_PROBLEMS

from ..raising import raises

EVERY = pytest.mark.parametrize("format", EXPORTERS)
NEED_PYARROW = ("csv", "parquet", "feather", "huggingface")
WITH_IMAGES = pytest.mark.parametrize("format", ["folder", "voc", "coco", "yolo"])


@pytest.fixture(autouse=True)
def _needs(request: pytest.FixtureRequest) -> None:
    called = getattr(request.node, "callspec", None)
    if called is not None and called.params.get("format") in NEED_PYARROW:
        pytest.importorskip("pyarrow")
    if called is not None and called.params.get("format") == "array-record":
        pytest.importorskip("array_record")
    if called is not None and called.params.get("format") == "lerobot":
        pytest.importorskip("av")


@pytest.fixture
def image(request: pytest.FixtureRequest, image: Any, images: ModuleType) -> Any:
    """The features of an image, with a mask or an episode if the format needs one."""
    called = getattr(request.node, "callspec", None)
    pixels = images.encode(images.noise(12, 8, "L"), "PNG")
    added = {
        "pairs": {"image/segmentation/class/encoded": pixels},
        "lerobot": {"steps/is_first": [1], "steps/view": pixels, "episode_metadata/fps": 10.0},
    }.get(called and called.params.get("format"))
    if added is None:
        return image
    return lambda *given, more=None, **options: image(*given, more=added | (more or {}), **options)


@pytest.fixture
def records(write: Any, image: Any, box_features: Any) -> Path:
    """Five images in two splits, one box each."""
    examples = [
        image(f"{number}.jpg", seed=number, more=box_features((0.25, 0.5, 0.75, 1)))
        for number in range(5)
    ]
    return write(train=examples[:3], val=examples[3:])  # type: ignore[no-any-return]


def below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@EVERY
def test_report_counts_files_and_records(
    records: Path, tmp_path: Path, out: Location, format: str, files: Any
) -> None:
    calls: list[tuple[int, int]] = []
    report = rs.export(records, out, format, progress=lambda *numbers: calls.append(numbers))
    written = files(out)
    assert report.record_count == 5
    assert report.splits == {"train": 3, "val": 2}
    assert report.file_count == len(written)
    assert report.size_bytes == sum(map(len, written.values()))
    by_batch = [3, 5] if format in NEED_PYARROW else [1, 2, 3, 4, 5]
    assert [done for done, _ in calls] == by_batch
    assert (report.problems, report.changed_names, report.skipped) == ([], [], [])
    document = report.to_json()
    assert json.loads(json.dumps(document)) == document
    assert (document["format"], document["folder"]) == (format, str(out))
    note = json.loads((out / ".export.json").read())
    assert note["entries"] == sorted({name.partition("/")[0] for name in written})
    assert sorted(os.listdir(tmp_path)) in (["new", "records"], ["records"])
    if isinstance(out.store, LocalStore):
        assert os.listdir(tmp_path / "new") == ["out"]


@EVERY
def test_the_same_records_give_the_same_bytes(
    records: Path, tmp_path: Path, out: Location, format: str, files: Any
) -> None:
    rs.export(records, tmp_path / "one", format)
    rs.export(rs.open(records), out, format)
    assert files(tmp_path / "one") == files(out)


@EVERY
def test_compressed_shards_and_slices(
    write: Any, image: Any, tmp_path: Path, format: str, files: Any
) -> None:
    examples = [image(f"{number}.jpg", seed=number) for number in range(6)]
    plain = write(train=examples[2:5])
    rs.export(plain, tmp_path / "plain", format)
    rs.export(write(train=examples[2:5], compression="gzip"), tmp_path / "gzip", format)
    assert files(tmp_path / "gzip") == files(tmp_path / "plain")
    report = rs.export(rs.open(write(train=examples))[2:5], tmp_path / "slice", format)
    assert report.record_count == 3
    assert files(tmp_path / "slice") == files(tmp_path / "plain")


@EVERY
def test_one_split_of_several(records: Path, tmp_path: Path, format: str, files: Any) -> None:
    assert rs.export(records, tmp_path / "out", format, split="val").splits == {"val": 2}
    assert rs.export(rs.open(records, "val"), tmp_path / "two", format).splits == {"val": 2}
    assert files(tmp_path / "out") == files(tmp_path / "two")
    rs.export(rs.open(records), tmp_path / "three", format, split="val")
    assert files(tmp_path / "out") == files(tmp_path / "three")


# -- names ---------------------------------------------------------------------------------------

HOSTILE = [
    *("../../x.jpg", "/etc/passwd", "C:\\images\\y.jpg", "a/../../b.jpg", "..", "/", ""),
    *("CON.jpg", "nul", "aux.png", "trailing. .jpg", "trailing. ", "line\nbreak.jpg", "\0.jpg"),
    *("Same.jpg", "same.JPG", "SAME.jpeg", "same.png", "d/same.jpg", "same-2.jpg"),
    *("x" * 300 + ".jpg", "花" * 300, "d/" * 900 + "deep.jpg", "10:30.jpg", ".hidden.jpg"),
    *("a.jpg/b.jpg", "a.jpg", "metadata.csv", "data.yaml", "annotations", "masks/m.jpg"),
]


@WITH_IMAGES
def test_hostile_names_stay_inside_the_folder(
    write: Any, image: Any, tmp_path: Path, format: str, files: Any
) -> None:
    names: list[str | bytes | None] = [*HOSTILE, b"\xff\xfe.jpg", b"\xff\xfd.jpg", None]
    examples = [image(name, seed=number) for number, name in enumerate(names)]
    source = write(train=examples)
    before = below(tmp_path)
    report = rs.export(source, tmp_path / "out", format)
    written = files(tmp_path / "out")
    assert [name for name in below(tmp_path) if not name.startswith("out")] == before
    assert report.record_count == len(names)
    images = sorted(
        data for name, data in written.items() if name.endswith((".jpg", ".JPG", ".jpeg"))
    )
    assert images == sorted(example["image/encoded"] for example in examples)
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


@WITH_IMAGES
def test_valid_names_are_kept(
    write: Any, image: Any, tmp_path: Path, format: str, files: Any
) -> None:
    names = ["IMG 1.JPG", "Ölbild.jpeg", "v1.0.jpg", "images/train/a.jpg", "train/images/b.jpg"]
    source = write(train=[image(name, seed=number) for number, name in enumerate(names)])
    report = rs.export(source, tmp_path / "out", format)
    assert report.changed_names == []
    found = {name.rpartition("/")[2] for name in files(tmp_path / "out")}
    assert {name.rpartition("/")[2] for name in names} <= found


@WITH_IMAGES
def test_suffix_matches_the_image_format(
    write: Any, image: Any, images: ModuleType, tmp_path: Path, format: str, files: Any
) -> None:
    png = images.encode(images.noise(12, 8), "PNG")
    source = write(
        train=[
            image("a.jpg") | {"image/encoded": png},
            image("no suffix"),
            image("b.PNG") | {"image/encoded": png, "image/format": "PNG"},
        ]
    )
    report = rs.export(source, tmp_path / "out", format)
    ends = {name.rpartition("/")[2] for name in files(tmp_path / "out")}
    assert {"a.png", "no suffix.jpg", "b.PNG"} <= ends
    assert [change.position for change in report.changed_names] == [0, 1]
    problem, *_ = report.problems  # without boxes, some formats have another
    assert problem.startswith("record 0: ")
    assert "as jpeg" in problem


# -- records that are not as they should be ------------------------------------------------------


@WITH_IMAGES
def test_sizes_that_differ_are_reported(
    write: Any, image: Any, tmp_path: Path, format: str
) -> None:
    source = write(train=[image("a.jpg"), image("b.jpg") | {"image/height": 9}])
    report = rs.export(source, tmp_path / "out", format)
    problem, *_ = report.problems  # without boxes, some formats have another
    assert problem.startswith("record 1: ")
    assert "12 x 9" in problem
    assert "12 x 8" in problem


def test_bytes_that_are_not_an_image_are_exported_unchanged(
    write: Any, image: Any, tmp_path: Path, files: Any
) -> None:
    broken = image("a.png")["image/encoded"][:60]
    source = write(
        train=[
            image("cut.jpg") | {"image/encoded": broken},
            image("words") | {"image/encoded": b"words", "image/format": "?"},
        ]
    )
    report = rs.export(source, tmp_path / "out")
    assert files(tmp_path / "out") == {"images/cut.jpg": broken, "images/words.bin": b"words"}
    assert [problem.partition(":")[0] for problem in report.problems] == ["record 0", "record 1"]


def test_first_problems_are_kept_and_all_are_counted(
    write: Any, image: Any, tmp_path: Path
) -> None:
    without = [{f"x{number}": number} for number in range(300)]
    lying = [image(f"{number}.jpg") | {"image/format": f"?{number}"} for number in range(200)]
    source = write(train=[*without, *lying])
    with pytest.raises(rs.SourceError) as caught:
        rs.export(source, tmp_path / "out")
    assert caught.value.problem_count == 300
    assert len(caught.value.problems) == MAX_PROBLEMS
    report = rs.export(source, tmp_path / "out", skip_errors=True)
    document = report.to_json()
    for what, of_all, first in (("skipped", 300, 0), ("problem", 200, 300)):
        kept = getattr(report, what if what == "skipped" else "problems")
        assert getattr(report, f"{what}_count") == document[f"{what}_count"] == of_all
        assert [problem.partition(":")[0] for problem in kept] == [
            f"record {number}" for number in range(first, first + MAX_PROBLEMS)
        ]


@pytest.mark.parametrize("format", ["folder", "voc", "coco", "yolo"])
def test_records_without_an_image_fail_or_are_skipped(
    write: Any, image: Any, tmp_path: Path, format: str
) -> None:
    source = write(train=[image("a.jpg"), {"x": 1}, {"y": 2}])
    out = tmp_path / "out"
    with pytest.raises(rs.SourceError, match="2 of 3") as caught:
        rs.export(source, out, format)
    assert len(caught.value.problems) == 2
    assert "record 1" in caught.value.problems[0]
    assert below(tmp_path) == ["records", "records/train.tfrecord"]
    report = rs.export(source, out, format, skip_errors=True)
    assert report.record_count == 1
    assert len(report.skipped) == 2
    with pytest.raises(rs.SourceError, match="1 of 1"):
        rs.export(rs.open(source)[1:2], tmp_path / "none", format, skip_errors=True)


@pytest.mark.parametrize("format", [name for name in EXPORTERS if name != "array-record"])
def test_other_messages_are_rejected(tmp_path: Path, format: str, write: Any, image: Any) -> None:
    source = write(train=[image("a.jpg")])
    path = tmp_path / "sequences.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write_example(image("a.jpg"))
        writer.write(rs.encode_sequence_example({"a": 1}, {"steps": [[1], [2]]}))
    with pytest.raises(rs.NotAnExampleError) as caught:
        rs.export([source / "train.tfrecord", path], tmp_path / "out", format)
    assert caught.value.payload in ("SequenceExample", "mixed")
    assert caught.value.record == (1 if caught.value.payload == "SequenceExample" else None)
    assert not (tmp_path / "out").exists()


def test_damaged_record_leaves_no_partial_output(records: Path, tmp_path: Path) -> None:
    path = records / "val.tfrecord"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.export(records, tmp_path / "out")
    assert str(caught.value.path).endswith("val.tfrecord")
    assert caught.value.record == 1
    assert os.listdir(tmp_path) == ["records"]


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
    problems = caught.value.problems
    assert "5 x 7 x 4 x 1" in problems[0]
    assert "float32" in problems[1]
    assert "image/height" in problems[2]
    assert "5 channels" in problems[3]
    assert "7 x -5" in problems[4]


# -- all or nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["voc", "coco", "parquet"])
def test_an_earlier_export_is_replaced(
    records: Path, out: Location, tmp_path: Path, format: str, files: Any
) -> None:
    rs.export(records, out, "yolo")
    (out / "mine.txt").put(b"mine")
    (out / "images-of-mine" / "x").put(b"mine")
    before = files(out)
    with raises(rs.OptionError, option="out", value=str(out), match="overwrite=True"):
        rs.export(records, out, format)
    assert files(out) == before
    rs.export(records, out, format, overwrite=True)
    rs.export(records, tmp_path / "undisturbed", format)
    mine = {"mine.txt": b"mine", "images-of-mine/x": b"mine"}
    assert files(out) == files(tmp_path / "undisturbed") | mine


@pytest.mark.parametrize("format", ["voc", "webdataset", "parquet"])
def test_a_job_that_fails_leaves_nothing(
    records: Path, out: Location, format: str, files: Any
) -> None:
    for done_count in (1, 3, 5):

        def stop(done: int, _total: int, last: int = done_count) -> None:
            if done >= last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            rs.export(records, out, format, progress=stop)
        assert [*out.list()] == []
        assert not out.is_folder() or not out.key
    with pytest.raises(rs.SourceError):
        rs.export(rs.open(records)[:0], out, format)
    assert files(out) == {}
    assert rs.export(records, out, format).record_count == 5


def test_file_or_dataset_as_output_is_rejected(records: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with raises(rs.OptionError, option="out", value=tmp_path / "file", match="is a file"):
        rs.export(records, tmp_path / "file", overwrite=True)
    with raises(rs.OptionError, option="out", match="dataset itself"):
        rs.export(records, records, overwrite=True)
    assert below(records) == ["train.tfrecord", "val.tfrecord"]


def test_the_dataset_is_not_replaced_by_its_own_export(
    write: Any, image: Any, tmp_path: Path
) -> None:
    """A class, say, may be called like the folder of the dataset."""
    source = write(train=[image("a.jpg", more={"image/class/text": "data"})])
    place = tmp_path / "place"
    place.mkdir()
    source = source.rename(place / "data")
    before = below(place)
    with raises(rs.OptionError, option="out", match="data is in the way"):
        rs.export(source, place, overwrite=True)
    assert below(place) == before


def test_spaces_around_names_do_not_lose_images_in_lists(
    write: Any, image: Any, tmp_path: Path
) -> None:
    names = [" a.jpg", "a .jpg", "\u3000a\u3000.jpg", "a.jpg", "  .jpg"]
    source = write(train=[image(name, seed=number) for number, name in enumerate(names)])
    report = rs.export(source, tmp_path / "out", "voc")
    assert len(report.changed_names) == 5
    listing = rs.Voc(tmp_path / "out").list_samples()
    assert len(listing.samples) == len(names)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("format", {"format": "zip"}, "one of array-record, coco"),
        ("skip_errors", {"skip_errors": "ignore"}, "True or False"),
        (
            "shard_size_bytes",
            {"format": "webdataset", "shard_size_bytes": 0},
            "a positive integer",
        ),
        ("shard_size_bytes", {"shard_size_bytes": 5}, ""),
    ],
)
def test_wrong_options(
    records: Path, tmp_path: Path, name: str, options: Any, expected: str
) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.export(records, tmp_path / "out", **options)
    assert caught.value.option == name
    assert caught.value.value == repr(options[name])
    assert caught.value.expected.startswith(expected)
    assert not (tmp_path / "out").exists()


def below_records() -> list[str]:
    return ["records", "records/train.tfrecord", "records/val.tfrecord"]


@EVERY
@pytest.mark.parametrize("at_file", [0, 1])
def test_full_disk_leaves_no_partial_output(
    records: Path, tmp_path: Path, format: str, at_file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recordsmith.stores import folders

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

    monkeypatch.setattr(folders, "open", open_full, raising=False)
    with pytest.raises(rs.FileAccessError) as caught:
        rs.export(records, tmp_path / "out", format)
    assert (caught.value.errno, caught.value.operation) == (errno.ENOSPC, "write")
    assert caught.value.path == str(tmp_path / "out")
    assert below(tmp_path) == below_records()


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("stage", ["new", "empty", "earlier"])
def test_killed_before_any_change_of_the_file_system(
    records: Path, tmp_path: Path, stage: str, files: Any, killed_jobs: Any
) -> None:
    """The next run of the same export gives what an undisturbed one gives, whatever was there."""
    out = tmp_path / "out"

    def prepare() -> None:
        if stage != "new":
            out.mkdir()
        if stage == "earlier":
            rs.export(records, out, "csv", split="train")
            (out / "precious.txt").write_text("of somebody else")

    def export() -> ExportReport:
        return rs.export(records, out, "parquet", overwrite=stage == "earlier")

    def visible() -> dict[str, bytes]:
        found = files(out) if out.exists() else {}
        return {name: data for name, data in found.items() if not name.startswith(".export")}

    prepare()
    before = visible()
    export()
    wanted = visible()
    interrupted = 0
    for step, fails in ((step, fails) for step in range(1, 1000) for fails in (False, True)):
        shutil.rmtree(out)
        prepare()
        if not killed_jobs.killed_before(step, export):
            break
        found = {path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert visible() == wanted or set(before.values()) <= found, step
        is_begun = (out / ".export.begun.json").exists()
        interrupted += is_begun
        is_done = is_begun and "result" in json.loads((out / BEGUN_NOTE).read_bytes())
        if (
            fails and not is_done
        ):  # a run that fails changes nothing, unless files were being renamed
            with pytest.raises(KeyboardInterrupt):
                rs.export(records, out, "parquet", overwrite=True, progress=_stop)
            assert is_begun or visible() == before, step
            assert out.exists() or not before
        elif step % 7 == 0 or is_begun:  # also the next run is killed
            killed_jobs.killed_before(step // 2 + 1, export)
        assert export().record_count == 5
        assert files(out) == wanted, step
        assert ".export.begun.json" not in os.listdir(out), step
        assert sorted(os.listdir(tmp_path)) == ["out", "records"], step
    assert interrupted > 0
    assert step > 10


@pytest.mark.posix
def test_what_a_killed_export_has_replaced_stays_until_the_next_one_is_complete(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_jobs: Any
) -> None:
    out = tmp_path / "out"
    rs.export(records, out, "csv", split="train")
    (name,) = (path.name for path in out.glob("*.csv"))
    (out / name).write_text("precious")
    overwrite = partial(rs.export, records, out, "csv", split="train", overwrite=True)

    def stopped() -> None:
        def rename(old: Path, new: Path) -> None:
            os.replace(old, new)
            if new == out / name:
                os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr("recordsmith.stores.folders.rename", rename)
        overwrite()

    for number in (1, 2):
        assert killed_jobs.killed_before(10**6, stopped)
        with pytest.raises(KeyboardInterrupt):
            overwrite(progress=_stop)
        assert (out / ".export.partial" / "old-1" / name).read_text() == "precious"
        assert (out / ".export.partial" / f"old-{number}" / name).exists()
    overwrite()
    assert sorted(os.listdir(out)) == [".export.json", name]
    assert (out / name).read_text() != "precious"


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("is_there", [False, True])
def test_only_the_same_job_replaces_what_a_job_killed_at_its_end_has_written(
    records: Path, tmp_path: Path, is_there: bool, files: Any, killed_jobs: Any
) -> None:
    out = tmp_path / "out"

    def job() -> ExportReport:
        return rs.export(records, out, "csv")

    def kill_before(step: int) -> bool:
        shutil.rmtree(out, ignore_errors=True)
        if is_there:
            out.mkdir()
        return bool(killed_jobs.killed_before(step, job))

    last = next(step for step in range(1, 1000) if not kill_before(step)) - 1
    for dataset, name, foreign in (
        (records, "parquet", None),
        (records / "train*", "csv", None),
        (records, "csv", out / "mine"),
    ):
        assert kill_before(last)
        if foreign is not None:
            foreign.write_text("x")
        before = files(out)
        with raises(rs.OptionError, option="out", value=out, match="is not empty"):
            rs.export(dataset, out, name)
        assert files(out) == before
    (out / "mine").unlink()
    job()
    assert {*before} - {*files(out)} == {".export.begun.json", "mine"}


@pytest.mark.posix
def test_a_job_killed_after_it_renamed_all_files_is_done(
    records: Path,
    tmp_path: Path,
    files: Any,
    killed_jobs: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same job ends it without reading records; another one, or other records, does not."""
    whole = rs.export(records, tmp_path / "expected", "csv")
    expected = files(tmp_path / "expected")
    out = tmp_path / "out"
    for name in (EXPORT_NOTE, BEGUN_NOTE):  # before it is written, before it is deleted

        def stopped(name: str = name) -> None:
            def kill(place: Location, *_: Any) -> None:
                if place.name == name:
                    os.kill(os.getpid(), signal.SIGKILL)
                real(place, *_)

            attribute = "put" if name == EXPORT_NOTE else "delete"
            real = getattr(Location, attribute)
            monkeypatch.setattr(Location, attribute, kill)
            rs.export(records, out, "csv")

        shutil.rmtree(out, ignore_errors=True)
        assert killed_jobs.killed_before(10**6, stopped)
        assert (out / BEGUN_NOTE).exists()
        report = rs.export(records, out, "csv", progress=lambda *_: pytest.fail("records are read"))
        assert report == replace(whole, folder=report.folder)
        assert files(out) == expected
        assert (out / EXPORT_NOTE).read_bytes() == (
            tmp_path / "expected" / EXPORT_NOTE
        ).read_bytes()
        shutil.rmtree(out)
        assert killed_jobs.killed_before(10**6, stopped)
        with raises(rs.OptionError, option="out"):
            rs.export(records, out, "parquet")
        with pytest.raises(KeyboardInterrupt):  # it reads records
            rs.export(records, out, "csv", skip_errors=True, progress=_stop)
        rs.export(records, out, "csv", skip_errors=True)
        assert files(out) == expected


def _stop(_done: int, _total: int) -> None:
    raise KeyboardInterrupt


def test_two_jobs_do_not_share_a_folder(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def begin_another(done: int, _total: int) -> None:
        if done == 1:
            with raises(rs.FileAccessError, operation="write", errno=errno.EBUSY):
                rs.export(records, out)

    assert rs.export(records, out, progress=begin_another).record_count == 5


@pytest.mark.posix
def test_link_to_the_output_folder(records: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    rs.export(records, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / ".export.json").is_file()


def test_hostile_entries_of_a_note_are_ignored(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rs.export(records, out)
    (tmp_path / "precious").write_text("x")
    (out / ".export.json").write_text(json.dumps({"entries": ["../precious", "..", "", 5]}))
    rs.export(records, out, overwrite=True)
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize("format", ["coco", "webdataset", "folder"])
def test_memory_does_not_grow_with_the_records(write: Any, tmp_path: Path, format: str) -> None:
    """Twenty-five megabytes of records; what Python holds at its highest stays far below."""
    import tracemalloc

    example = {
        "image/encoded": np.random.default_rng(0).bytes(1_000_000),
        "image/format": "raw",
        "image/height": 1000,
        "image/width": 1000,
        "image/depth": 1,
    }
    source = write(train=[example] * 25)
    rs.export(rs.open(source)[:2], tmp_path / "warm", format)
    tracemalloc.start()
    rs.export(source, tmp_path / "out", format)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


def test_an_exporter_is_a_line_in_a_table(records: Path, tmp_path: Path) -> None:
    class Names(FolderExporter):
        options = ("shard_size_bytes",)

        def begin(self, dataset: rs.Dataset, out: ExportWriter) -> None:  # noqa: ARG002
            self.out, self.names = out, list[bytes]()

        def add(self, example: Any, split: str, position: int) -> None:  # noqa: ARG002
            self.names += example["image/filename"]
            self.out.tally.splits[split] += 1

        def finish(self) -> None:
            self.out.write("names.txt", b"\n".join(self.names))

    EXPORTERS["names"], WHAT["names"] = Names, "a list of names"
    try:
        arguments = [str(records), str(tmp_path / "out"), "--format", "names"]
        assert CliRunner().invoke(app, ["export", *arguments]).exit_code == 0
        assert (tmp_path / "out" / "names.txt").read_text().split() == [
            f"{n}.jpg" for n in range(5)
        ]
        helps = {param.name: str(param.help) for param in load_command.__wrapped__("export").params}
        assert "names (a list of names), " in helps["format"]
        with_shards = [
            name for name, kind in EXPORTERS.items() if "shard_size_bytes" in kind.options
        ]
        assert "names" in with_shards
        assert helps["shard_size_bytes"].startswith(f"{', '.join(sorted(with_shards))}: ")
        assert helps["restore_types"].startswith("csv, feather, parquet: the types")
    finally:
        del EXPORTERS["names"], WHAT["names"]
    assert [*WHAT] == [*EXPORTERS]
    assert all(f" {name} ({what})" in rs.export.__doc__ for name, what in WHAT.items())
