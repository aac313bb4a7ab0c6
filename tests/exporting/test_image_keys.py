"""The image of records is exported whatever its key is."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

PIXELS = np.random.default_rng(0).integers(256, size=(6, 9, 3)).astype(np.uint8)
GREY = PIXELS[:, :, 0]


def encode(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


PNG = encode(PIXELS)
SIZE = {"height": 6, "width": 9}
IMAGES: dict[str, dict[str, Any]] = {
    "standard": {"image/encoded": PNG},
    "image": {"image": PNG},
    "image_raw, a file": {"image_raw": PNG},
    "any name": {"camera/front": PNG},
    "next to a mask": {"image": PNG, "my_mask": encode(GREY)},
    "next to bytes": {"photo": PNG, "blob": b"\xff" * 9000},
    "image_raw": {"image_raw": PIXELS.tobytes(), **SIZE, "depth": 3},
    "raw without depth": {"image_raw": PIXELS.tobytes(), **SIZE},
    "raw with rows and columns": {"image": PIXELS.tobytes(), "rows": 6, "cols": 9, "channels": 3},
    "raw, standard, other names of its size": {"image/encoded": PIXELS.tobytes(), **SIZE}
    | {"image/format": "raw"},
}
FORMATS = ("folder", "coco", "voc", "yolo", "webdataset", "tfds", "huggingface")


def exported(folder: Path, kind: str) -> list[bytes]:
    """The files of the images that an export wrote, without masks."""
    if kind == "webdataset":
        with tarfile.open(folder / "train-000000.tar") as archive:
            names = [name for name in archive.getnames() if name.count(".") == 1]
            files = {name: archive.extractfile(name) for name in names if "json" not in name}
            return [file.read() for name, file in files.items() if file and ".cls" not in name]
    if kind == "tfds":
        (path,) = folder.glob("*.tfrecord*")
        return [example["image"][0] for example in rs.open(path)]
    if kind == "huggingface":
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(folder / "train.parquet").to_pylist()
        return [
            value["bytes"]
            for row in table
            for name, value in row.items()
            if isinstance(value, dict) and "mask" not in name
        ]
    paths = [path for path in folder.rglob("*") if path.suffix == ".png"]
    masks = ("masks", "SegmentationClass")
    return [path.read_bytes() for path in sorted(paths) if not {*masks} & {*path.parts}]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", IMAGES)
def test_each_format_finds_the_image(write: Any, tmp_path: Path, kind: str, name: str) -> None:
    source = write(train=[IMAGES[name]] * 2)
    report = rs.export(source, tmp_path / "out", kind)
    found = exported(tmp_path / "out", kind)
    assert [np.array(Image.open(io.BytesIO(data))).tolist() for data in found] == (
        [PIXELS.tolist()] * 2
    )
    assert report.record_count == 2


@pytest.mark.parametrize("kind", ["parquet", "feather", "array-record"])
def test_tables_and_payloads_keep_the_key(write: Any, tmp_path: Path, kind: str) -> None:
    source = write(train=[IMAGES["image_raw"]])
    rs.export(source, tmp_path / "out", kind)
    if kind != "array-record":
        reader = pytest.importorskip(f"pyarrow.{kind}")
        (row,) = reader.read_table(tmp_path / "out" / f"train.{kind}").to_pylist()
        assert row["image_raw"] == PIXELS.tobytes()


def test_classes_and_names_are_found_as_well(write: Any, tmp_path: Path) -> None:
    source = write(train=[{"image": PNG, "label": n, "filename": f"{n}.png"} for n in (3, 4)])
    report = rs.export(source, tmp_path / "out")
    assert (tmp_path / "out" / "3" / "3.png").read_bytes() == PNG
    assert report.dropped_features == {}


def test_a_raw_mask_is_found(write: Any, tmp_path: Path) -> None:
    example = {"image_raw": PIXELS.tobytes(), "mask_raw": GREY.tobytes(), **SIZE}
    rs.export(write(train=[example]), tmp_path / "out", "pairs")
    mask = np.array(Image.open(tmp_path / "out" / "masks" / "000000.png"))
    assert mask.tolist() == GREY.tolist()


def test_records_without_images_keep_their_keys(write: Any, tmp_path: Path) -> None:
    source = write(train=[{"label": 3, "path": "a.txt", "image": "a.jpg"}])
    rs.export(source, tmp_path / "out", "webdataset")
    with tarfile.open(tmp_path / "out" / "train-000000.tar") as archive:
        (name,) = archive.getnames()
        file = archive.extractfile(name)
        assert file is not None
        assert json.load(file) == {"label": 3, "path": "a.txt", "image": "a.jpg"}
    with pytest.raises(rs.SourceError, match="found image, label, path"):
        rs.export(source, tmp_path / "other", "folder")


TWO = {"left": PNG, "right": encode(PIXELS[::-1])}


def test_several_images_need_a_choice(write: Any, tmp_path: Path) -> None:
    source = write(train=[TWO])
    with pytest.raises(rs.OptionError) as caught:
        rs.export(source, tmp_path / "out")
    assert caught.value.option == "image_key"
    assert all(key in str(caught.value) for key in TWO)
    report = rs.export(source, tmp_path / "out", image_key="right")
    (path,) = (tmp_path / "out").rglob("*.png")
    assert path.read_bytes() == TWO["right"]
    assert report.dropped_features == {"left": 1}


def test_the_standard_image_needs_no_choice(write: Any, tmp_path: Path) -> None:
    example = {"image/encoded": PNG, "image/format": "png", "thumbnail": TWO["right"]}
    source = write(train=[example])
    rs.export(source, tmp_path / "one")
    (path,) = (tmp_path / "one").rglob("*.png")
    assert path.read_bytes() == PNG
    report = rs.export(source, tmp_path / "other", image_key="thumbnail")
    (path,) = (tmp_path / "other").rglob("*.png")
    assert path.read_bytes() == TWO["right"]
    assert report.dropped_features == {"other/image/encoded": 1, "other/image/format": 1}


@pytest.mark.parametrize(
    ("key", "expected"), [("lefts", "left"), ("label", "int64"), ("none", "left, right")]
)
def test_a_wrong_choice(write: Any, tmp_path: Path, key: str, expected: str) -> None:
    with pytest.raises(rs.OptionError, match=expected) as caught:
        rs.export(write(train=[TWO | {"label": 1}]), tmp_path / "out", image_key=key)
    assert (caught.value.option, caught.value.value) == ("image_key", repr(key))


def test_a_choice_is_refused_by_formats_without_an_image(write: Any, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match="folder"):
        rs.export(write(train=[TWO]), tmp_path / "out", "csv", image_key="left")


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ({"image_raw": PIXELS.tobytes()}, "unknown size"),
        ({"image_raw": PIXELS.tobytes(), "height": 6}, "unknown size"),
        ({"image_raw": PIXELS.astype("f4").tobytes(), **SIZE, "depth": 3}, "float32"),
        ({"image_raw": GREY.astype("f4").tobytes(), **SIZE}, "4 bytes per pixel"),
        ({"image_raw": PIXELS.tobytes()[:-1], **SIZE, "depth": 3}, "161 raw bytes"),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "webdataset", "tfds", "coco"])
def test_pixels_that_are_not_an_image(
    write: Any, tmp_path: Path, kind: str, example: dict[str, Any], words: str
) -> None:
    with pytest.raises(rs.SourceError, match=words):
        rs.export(write(train=[example]), tmp_path / "out", kind)


SEVERAL: dict[str, Any] = {
    "several images": {"image": [PNG, TWO["right"]], "other": [b"\xff\x00"]},
    "another image": {"image/encoded": PNG, "thumb/Nail": TWO["right"], "thumb_nail": PNG},
    "masks of objects": {"image/encoded": PNG, "image/object/mask": [encode(GREY), b"", PNG]},
    "not all are images": {"image/encoded": PNG, "crops": [PNG, b"\xfe\xff", "text"]},
    "a mask without an image": {"image/segmentation/class/encoded": encode(GREY)},
}


@pytest.mark.parametrize("name", SEVERAL)
def test_tar_files_have_each_image_as_a_member(write: Any, tmp_path: Path, name: str) -> None:
    source = write(train=[SEVERAL[name], {"text": "none"}, SEVERAL[name]])
    key = {"image_key": "image"} if "image" in SEVERAL[name] else {}
    rs.export(source, tmp_path / "out", "webdataset", **key)
    with tarfile.open(tmp_path / "out" / "train-000000.tar") as archive:
        members = {name: archive.extractfile(name) for name in archive.getnames()}
        contents = {name: file.read() for name, file in members.items() if file}
    stored = [data for name, data in contents.items() if name.startswith("000000.")]
    images = [
        value
        for values in SEVERAL[name].values()
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, bytes) and value.startswith(b"\x89PNG")
    ]
    assert all(image in stored for image in images)
    documents = [json.loads(data) for name, data in contents.items() if name.endswith(".json")]
    encoded = [key for key, value in documents[0].items() if "base64" in json.dumps(value)]
    assert encoded == [key for key in ("other",) if key in SEVERAL[name]]
    report = rs.pack(rs.WebDataset(tmp_path / "out"), tmp_path / "again")
    assert not [notice for notice in report.notices if "crops" in notice or "mask" in notice]
    original, again = (next(iter(rs.open(path))) for path in (source, tmp_path / "again"))
    stated = {"image/format", "image/height", "image/width"}
    renamed = {"image": "image/encoded"}
    assert {k: v for k, v in again.items() if k not in stated} == {
        renamed.get(k, k): v for k, v in original.items()
    }


def test_equal_problems_are_one_line(write: Any, tmp_path: Path) -> None:
    good = {"image/encoded": PNG}
    bad = {"image/encoded": PIXELS.tobytes(), "image/format": "raw"}
    source = write(train=[good, *[bad] * 25, good])
    with pytest.raises(rs.SourceError) as caught:
        rs.export(source, tmp_path / "out")
    (line,) = caught.value.problems
    assert line.startswith("record 1, record 2, record 3 and 22 more: ")
    assert caught.value.problem_count == 25
    assert len(str(caught.value).splitlines()) == 2
    report = rs.export(source, tmp_path / "out", skip_errors=True)
    assert (report.skipped, report.skipped_count) == ([line], 25)
    assert len(report.skipped_positions) == 25
    assert report.to_json()["skipped"] == [line]


def test_tasks_find_the_same_image(write: Any, tmp_path: Path) -> None:
    source = write(train=[IMAGES["image_raw"]], val=[IMAGES["image_raw"]])
    rs.export(source, tmp_path / "out", "webdataset", engine=rs.engines.Processes(1))
    assert len(exported(tmp_path / "out", "webdataset")) == 1


def test_a_record_with_several_images_is_reported(
    write: Any, images: ModuleType, tmp_path: Path
) -> None:
    report = rs.export(write(train=[{"image/encoded": [PNG, PNG]}]), tmp_path / "out")
    (line,) = report.problems
    assert line.startswith("record 0: ")
    assert "2 images" in line
