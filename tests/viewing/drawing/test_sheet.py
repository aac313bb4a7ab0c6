"""The sheet: which examples are on it, what is drawn, and what is refused."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import label_colour
from recordsmith.stores import Location, PlaceLike, as_location
from recordsmith.viewing.drawing.sheet import check_fits

from ...raising import raises


def colour(number: int) -> tuple[int, int, int]:
    """A colour that no other part of a sheet has."""
    return 11, 255 - number, 99


def write(path: Path, images: ModuleType, numbers: Iterable[int] = range(40), **more: Any) -> Path:
    """Records with an image of one colour each."""
    compression = more.pop("compression", None)
    path.parent.mkdir(exist_ok=True)
    with rs.ShardWriter(path, compression=compression) as writer:
        for number in numbers:
            encoded = images.encode(Image.new("RGB", (64, 48), colour(number)), "PNG")
            writer.write_example({"image/encoded": encoded, **more})
    return path


def shown(path: PlaceLike, total: int = 40) -> list[int]:
    """The numbers of the images on a sheet, row by row."""
    places = placed(path, total)
    return [places[place] for place in sorted(places)]


def placed(path: PlaceLike, total: int = 40) -> dict[tuple[int, int], int]:
    """The numbers of the images on a sheet, by their top and left."""
    with Image.open(io.BytesIO(as_location(path).read())) as image:
        pixels = np.array(image.convert("RGB"))
    red, _, blue = colour(0)
    rows, columns = np.nonzero((pixels[:, :, 0] == red) & (pixels[:, :, 2] == blue))
    greens = pixels[rows, columns, 1]
    places = {}
    for number in range(total):
        is_own = greens == colour(number)[1]
        if is_own.sum() > 1000:
            places[int(rows[is_own].min()), int(columns[is_own].min())] = number
    return places


def count_colour(path: Path, label: int) -> int:
    with Image.open(path) as image:
        return int((np.array(image.convert("RGB")) == label_colour(label)).all(axis=2).sum())


def test_the_examples_of_the_report_are_drawn_in_order(
    tmp_path: Path, place: Location, images: ModuleType
) -> None:
    data = write(tmp_path / "x.tfrecord", images)
    report = rs.sheet(data, place / "s.png", count=12, columns=5)
    assert report.path == place / "s.png"
    assert report.to_json()["path"] == str(report.path)
    assert report.record_count == 40
    assert len(report.positions) == 12
    assert shown(report.path) == report.positions
    assert [len({place[side] for place in placed(report.path)}) for side in (0, 1)] == [3, 5]
    with Image.open(io.BytesIO(report.path.read())) as image:
        assert image.format == "PNG"
        assert image.size == (report.width, report.height)
    rs.sheet(data, tmp_path / "again.png", count=12, columns=5)
    assert (tmp_path / "again.png").read_bytes() == report.path.read()
    assert {*os.listdir(tmp_path)} <= {"again.png", "s.png", "x.tfrecord"}


@pytest.mark.parametrize("count", [1, 7, 39, 40, 41, 1000])
def test_positions_are_spread_evenly(tmp_path: Path, images: ModuleType, count: int) -> None:
    data = write(tmp_path / "x.tfrecord", images)
    positions = rs.sheet(data, tmp_path / "s.png", count=count, columns=9).positions
    drawn = min(count, 40)
    assert len(positions) == drawn
    for number, position in enumerate(positions):  # one from each part
        assert 40 * number // drawn <= position < 40 * (number + 1) // drawn


def test_random_positions_follow_the_seed(tmp_path: Path, images: ModuleType) -> None:
    data = write(tmp_path / "x.tfrecord", images)
    chosen = [
        rs.sheet(data, tmp_path / "s.png", count=9, seed=seed, overwrite=True).positions
        for seed in (1, 1, 2)
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    assert all(positions == sorted(set(positions)) for positions in chosen)
    assert len(chosen[0]) == 9


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_shards_are_read_in_order(
    tmp_path: Path, images: ModuleType, compression: str
) -> None:
    plain = write(tmp_path / "x.tfrecord", images)
    write(tmp_path / "in" / "a.tfrecord", images, range(25), compression=compression)
    write(tmp_path / "in" / "b.tfrecord", images, range(25, 40))
    expected = rs.sheet(plain, tmp_path / "s.png", count=11)
    report = rs.sheet(tmp_path / "in", tmp_path / "c.png", count=11)
    assert report.positions == expected.positions
    assert shown(tmp_path / "c.png") == report.positions


def test_a_split_or_an_open_dataset(tmp_path: Path, images: ModuleType) -> None:
    write(tmp_path / "in" / "train-00000-of-00001.tfrecord", images, range(30))
    write(tmp_path / "in" / "test-00000-of-00001.tfrecord", images, range(30, 40))
    report = rs.sheet(tmp_path / "in", tmp_path / "s.png", split="test")
    assert report.record_count == 10
    assert shown(tmp_path / "s.png") == list(range(30, 40))
    part = rs.open(tmp_path / "in", split="train")[10:20]
    rs.sheet(part, tmp_path / "p.png")
    assert shown(tmp_path / "p.png") == list(range(10, 20))
    rs.sheet(part, tmp_path / "r.png", split="train[:50%]")
    assert shown(tmp_path / "r.png") == list(range(10, 15))
    for dataset in (part, tmp_path / "in"):
        with raises(rs.OptionError, option="split"):
            rs.sheet(dataset, tmp_path / "q.png", split="validation")


def test_classes_boxes_and_masks_are_drawn(tmp_path: Path, images: ModuleType) -> None:
    mask = np.zeros((48, 64), np.uint8)
    mask[10:40, 10:40] = 3
    drawn: dict[str, Any] = {
        "class": {"image/class/label": 3, "image/class/text": "rose"},
        "boxes": {
            **{f"image/object/bbox/{side}": [0.1] for side in ("ymin", "xmin")},
            **{f"image/object/bbox/{side}": [0.9] for side in ("ymax", "xmax")},
            "image/object/class/label": [3],
        },
        "masks": {"image/segmentation/class/encoded": images.encode(Image.fromarray(mask), "PNG")},
    }
    for kind, features in drawn.items():
        data = write(tmp_path / f"{kind}.tfrecord", images, range(4), **features)
        rs.sheet(data, tmp_path / f"{kind}.png")
        assert count_colour(tmp_path / f"{kind}.png", 3) > 400, kind
    data = write(tmp_path / "bare.tfrecord", images, range(4))
    rs.sheet(data, tmp_path / "bare.png")
    assert count_colour(tmp_path / "bare.png", 3) == 0


def test_damaged_examples_have_a_tile_with_the_reason(tmp_path: Path, images: ModuleType) -> None:
    path = tmp_path / "x.tfrecord"
    good = [images.encode(Image.new("RGB", (64, 48), colour(n)), "PNG") for n in range(3)]
    sequence = rs.encode_sequence_example({"id": 1}, {"steps": [[1]]})
    with rs.ShardWriter(path) as writer:
        for encoded in (good[0], good[0][:-20], good[1], b"words"):
            writer.write_example({"image/encoded": encoded})
        writer.write(sequence)
        writer.write(b"no Example")
        writer.write_example({"image/encoded": good[2]})
    damaged = bytearray(path.read_bytes())
    at = damaged.index(good[1]) + 60
    damaged[at] ^= 1
    path.write_bytes(damaged)
    report = rs.sheet(path, tmp_path / "s.png")
    assert shown(tmp_path / "s.png") == [0, 2]
    assert [problem.partition(":")[0] for problem in report.problems] == [
        f"position {number}" for number in (1, 2, 3, 4, 5)
    ]
    assert "payload-crc-mismatch" in report.problems[1]
    assert "SequenceExample" in report.problems[3]
    assert report.to_json()["problems"] == report.problems


def test_records_without_images(tmp_path: Path) -> None:
    cases = {
        "other": (b"no Example", "are other messages or plain data"),
        "sequence": (rs.encode_sequence_example({"a": 1}, {"b": [[1]]}), "are SequenceExamples"),
        "example": (rs.encode_example({"age": 1, "name": "x"}), "found age, name"),
        "empty": (rs.encode_example({}), "found no features"),
    }
    for name, (payload, message) in cases.items():
        with rs.ShardWriter(tmp_path / f"{name}.tfrecord") as writer:
            writer.write(payload)
        with pytest.raises(rs.RecordsmithError, match=message):
            rs.sheet(tmp_path / f"{name}.tfrecord", tmp_path / "s.png")
    with rs.ShardWriter(tmp_path / "none.tfrecord"):
        pass
    with pytest.raises(rs.OptionError, match="no records"):
        rs.sheet(tmp_path / "none.tfrecord", tmp_path / "s.png")
    assert not (tmp_path / "s.png").exists()


@pytest.mark.parametrize(
    ("out", "options", "option"),
    [
        ("s.gif", {}, "out"),
        ("s", {}, "out"),
        ("s.png", {"count": 0}, "count"),
        ("s.png", {"columns": 0}, "columns"),
        ("s.png", {"columns": "6"}, "columns"),
        ("s.png", {"count": 2.5}, "count"),
        ("s.png", {"columns": 1000, "count": 1000}, "columns"),
        ("there.png", {}, "overwrite"),
        pytest.param("dangling.png", {}, "overwrite", marks=pytest.mark.posix),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, images: ModuleType, out: str, options: dict[str, Any], option: str
) -> None:
    data = write(tmp_path / "x.tfrecord", images, range(2))
    (tmp_path / "there.png").write_bytes(b"mine")
    if out == "dangling.png":
        (tmp_path / out).symlink_to("nowhere")
    with raises(rs.OptionError, option=option):
        rs.sheet(data, tmp_path / out, **options)
    assert (tmp_path / "there.png").read_bytes() == b"mine"
    assert {*os.listdir(tmp_path)} - {"dangling.png"} == {"there.png", "x.tfrecord"}


def test_only_records_that_exist_must_fit_on_a_page(tmp_path: Path, images: ModuleType) -> None:
    data = write(tmp_path / "x.tfrecord", images, range(2))
    assert len(rs.sheet(data, tmp_path / "s.png", count=10_000).positions) == 2
    check_fits(6, 6)
    for columns in (1, 6):
        with pytest.raises(rs.OptionError) as caught:
            check_fits(10_000, columns)
        assert (caught.value.option, caught.value.value) == ("count", "10000")
        most = int(next(filter(str.isdigit, caught.value.expected.split())))
        check_fits(most, columns)
        with pytest.raises(rs.OptionError):
            check_fits(most + 1, columns)


def test_huge_image_is_not_decoded(
    tmp_path: Path, images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import recordsmith.image.decoding.memory

    monkeypatch.setattr(recordsmith.image.decoding.memory, "MAX_PIXELS", 64 * 48 - 1)
    data = write(tmp_path / "x.tfrecord", images, range(2))
    report = rs.sheet(data, tmp_path / "s.png")
    assert (len(report.problems), report.problem_count) == (1, 2)
    assert "64 x 48" in report.problems[0]
    assert "3,071" in report.problems[0]


def test_a_page_has_an_image_for_each_example(
    tmp_path: Path, place: Location, images: ModuleType
) -> None:
    name = "<img src=x>"
    data = write(tmp_path / "x.tfrecord", images, **{"image/filename": name})
    report = rs.sheet(data, place / "s.html", count=12)
    assert (len(report.positions), report.height) == (12, 0)
    page = report.path.read().decode()
    assert "default-src 'none'" in page
    assert "<img src=x" not in page
    assert page.count("&lt;img src=x&gt;") == 24  # below the image, and in its place
    found = []
    for encoded in re.findall(r'src="data:image/jpeg;base64,([^"]+)"', page):
        with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
            pixels = np.asarray(image)
            found.append(pixels.reshape(-1, 3).mean(0))
    expected = [colour(number) for number in report.positions]
    assert np.allclose(found, expected, atol=3)


def test_a_page_is_bounded(tmp_path: Path, images: ModuleType) -> None:
    data = write(tmp_path / "x.tfrecord", images, range(1), n=1)
    shards = [data] * 1001
    with raises(rs.OptionError, option="count"):
        rs.sheet(shards, tmp_path / "s.html", count=1001)


NOT_MASKS: dict[str, tuple[str, Any, str]] = {
    "raw bytes without a size": ("mask", b"\x01" * 64, "height and width"),
    "raw bytes of another size": ("mask_raw", b"\x01" * 63, "do not match their size"),
    "numbers as bytes": ("attention_mask", b"\x01" * 8, "height and width"),
    "run lengths": ("mask_rle", b"1 3 10 5", "text"),
    "polygons": ("image/segmentation", b"[[1,2,3,4]]", "text"),
    "a name": ("mask_name", b"a.png", "text"),
    "an id": ("segment_id", b"seg_1", "text"),
    "integers": ("mask_int", [0, 1] * 8, "int64"),
    "floats": ("soft_mask", [0.5] * 8, "float"),
    "empty": ("mask", b"", "empty"),
    "no values": ("mask", [], "empty"),
    "a damaged file": ("mask", b"\x89PNG\r\n\x1a\n\0\0", "truncated"),
    "declared, of an unknown format": ("image/segmentation/class/encoded", b"\x01\xff", "height"),
    "run lengths of objects": ("image/object/mask", [b"1 3 10 5"], "unsupported"),
}


@pytest.mark.parametrize("name", NOT_MASKS)
def test_a_feature_that_is_only_named_like_a_mask(
    tmp_path: Path, images: ModuleType, name: str
) -> None:
    key, value, words = NOT_MASKS[name]
    boxes = {f"image/object/bbox/{side}": [0.5] for side in ("ymin", "xmin", "ymax", "xmax")}
    more = {"height": 8, "width": 8} if "another size" in name else {}
    path = tmp_path / "x.tfrecord"
    kinds = {key: "int64"} if value == [] else None
    with rs.ShardWriter(path) as writer:
        for seed in range(3):
            example = {"image": images.jpeg(seed, 12, 8), key: value} | boxes | more
            writer.write_example(example, kinds)
    report = rs.sheet(path, tmp_path / "s.png")
    assert report.problems == []
    (line,) = report.mask_problems
    assert repr(key) in line
    assert words in line
    (row,) = rs.Loader(rs.open(path), {"image": rs.Image("image", 8)}, batch_size=3)
    assert row["image"].shape == (3, 8, 8, 3)


def test_other_masks_of_the_dataset_are_drawn(tmp_path: Path, images: ModuleType) -> None:
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    path = tmp_path / "x.tfrecord"
    with rs.ShardWriter(path) as writer:
        for data in (mask, b"", mask, b""):
            example = {"image": images.jpeg(0, 12, 8), "a_mask_name": "m.png", "my_mask": data}
            writer.write_example(example)
    report = rs.sheet(path, tmp_path / "s.png")
    assert report.problems == []
    (line,) = report.mask_problems
    assert line.startswith("position 1, position 3: 'my_mask': ")
