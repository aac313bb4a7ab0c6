"""Patches are parts of the whole image, and masks and boxes stay on them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.image import Window, decode_image, encode_mask, find_parts, read_image_header
from recordsmith.image.decoding import parts
from recordsmith.support.errors import CorruptDataError, Defect

HEIGHT, WIDTH = 176, 240
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "jpeg": ("JPEG", {}),
    "4:4:4": ("JPEG", {"subsampling": 0}),
    "tiles": ("JPEG", {"restart_marker_blocks": 3}),
    "rows": ("JPEG", {"restart_marker_rows": 1}),
    "progressive": ("JPEG", {"progressive": True}),
    "png": ("PNG", {}),
    "webp": ("WEBP", {}),
}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory, images: ModuleType) -> rs.Dataset:
    """An image in each form, and twice as raw pixels, (height, width, 3)."""
    records = []
    for seed, (kind, options) in enumerate(FORMS.values()):
        image = images.noise(WIDTH, HEIGHT, seed=seed)
        raw = {"raw": image.tobytes(), "height": HEIGHT, "deep": np.asarray(image, "<u2").tobytes()}
        records.append({"image/encoded": images.encode(image, kind, **options)} | raw)
    return written(tmp_path_factory.mktemp("forms"), records)


def only(dataset: rs.Dataset, features: dict[str, Any], **options: Any) -> Any:
    (batch,) = rs.Loader(
        dataset, features, batch_size=len(dataset), **({"threads": 0} | options)
    )  # fmt: skip
    return batch


RAW = {"key": "raw", "raw_shape": ("height", WIDTH, 3)}
DEEP = {"key": "deep", "raw_shape": ("height", WIDTH, 3), "raw_dtype": "uint16"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"channels": 1},
        {"channels": 4, "dtype": "uint16"},
        {"dtype": "float32", "layout": "CHW"},
        {"dtype": "float32", "mean": (0.1, 0.2, 0.3), "std": 0.5},
        {"layout": "CHW"},
        RAW,
        RAW | {"dtype": "float32", "layout": "CHW", "channels": 1},
        DEEP | {"dtype": "uint16"},
    ],
)
@pytest.mark.parametrize(("size", "count"), [(16, 1), ((8, 40), 3), ((100, 90), 2), (HEIGHT, 5)])
def test_patches_are_parts_of_the_whole_image(
    forms: rs.Dataset, options: dict[str, Any], size: Any, count: int
) -> None:
    features = {"x": rs.Patches(size, count, **options), "whole": rs.Image(**options)}
    height, width = (size, size) if isinstance(size, int) else size
    is_planar = options.get("layout") == "CHW"
    channels = options.get("channels", 3)
    for seed in range(2):
        batch = only(forms, features, seed=seed)
        shape = (channels, height, width) if is_planar else (height, width, channels)
        assert batch["x"].shape == (len(FORMS), count, *shape)
        assert batch["x"].dtype == options.get("dtype", "uint8")
        assert batch["x_offsets"].shape == (len(FORMS), count, 2)
        assert batch["x_offsets"].dtype == np.int64
        for row, form in enumerate(FORMS):
            whole = batch["whole"][row]
            for patch, (top, left) in zip(batch["x"][row], batch["x_offsets"][row], strict=True):
                part = np.s_[top : top + height, left : left + width]
                expected = whole[(slice(None), *part)] if is_planar else whole[part]
                np.testing.assert_array_equal(patch, expected, err_msg=form)


@pytest.mark.parametrize("flip", ["horizontal", "vertical", "both"])
def test_flips(forms: rs.Dataset, flip: Any) -> None:
    """Each patch is flipped by itself; the positions are as without flips."""
    plain, flipped = ({"x": rs.Patches(24, 30, flip=flip)} for flip in (None, flip))
    before, after = only(forms, plain), only(forms, flipped)
    np.testing.assert_array_equal(before["x_offsets"], after["x_offsets"])
    seen = np.zeros((2, 2), int)
    for one, other in zip(before["x"], after["x"], strict=True):
        for patch, turned in zip(one, other, strict=True):
            ways = [
                (down, across)
                for down in range(2)
                for across in range(2)
                if np.array_equal(turned, patch[:: 1 - 2 * down, :: 1 - 2 * across])
            ]
            (way,) = ways
            seen[way] += 1
    allowed = np.outer([1, flip != "horizontal"], [1, flip != "vertical"])
    assert (seen[allowed == 0] == 0).all()
    share = seen[allowed > 0] / seen.sum() * allowed.sum()
    assert (abs(share - 1) < 0.35).all()


def test_all_positions_are_equally_likely(tmp_path: Path, images: ModuleType) -> None:
    dataset = written(tmp_path, [{"image/encoded": images.encode(images.noise(10, 9), "PNG")}])
    offsets = only(dataset, {"x": rs.Patches((8, 8), 3000)})["x_offsets"][0]
    places, counts = np.unique(offsets, axis=0, return_counts=True)
    assert places.tolist() == [[top, left] for top in range(2) for left in range(3)]
    assert (abs(counts - 500) < 100).all()  # five times the standard deviation


# -- images smaller than a patch -------------------------------------------------------------------


@pytest.mark.parametrize("flip", [None, "both"])
def test_small_images_are_padded(tmp_path: Path, images: ModuleType, flip: Any) -> None:
    sides = [(5, 40), (40, 7), (3, 4), (1, 1), (30, 30)]
    greys = [np.full(size, 200, np.uint8) for size in sides]
    dataset = written(
        tmp_path,
        [
            {
                "image/encoded": images.encode(Image.fromarray(grey), "PNG"),
                "mask": encode_mask(grey),
            }
            for grey in greys
        ],
    )
    features = {"x": rs.Patches(20, 6, channels=1, flip=flip), "mask": rs.Mask("mask", fill=9)}
    batch = only(dataset, features)
    for row, (height, width) in enumerate(sides):
        inside = min(height, 20), min(width, 20)
        for patch in range(6):
            top, left = batch["x_offsets"][row, patch]
            assert 0 <= top <= height - inside[0]
            assert 0 <= left <= width - inside[1]
            for values, padding in (
                (batch["x"][row, patch, ..., 0], 0),
                (batch["mask"][row, patch], 9),
            ):
                expected = np.full((20, 20), padding, np.uint8)
                expected[: inside[0], : inside[1]] = 200
                turned = {
                    expected[::down, ::across].tobytes()
                    for down in ((1,) if flip is None else (1, -1))
                    for across in ((1,) if flip is None else (1, -1))
                }
                assert values.tobytes() in turned
            np.testing.assert_array_equal(
                batch["x"][row, patch, ..., 0] == 200, batch["mask"][row, patch] == 200
            )


def test_small_images_are_refused(tmp_path: Path, images: ModuleType) -> None:
    dataset = written(
        tmp_path,
        [
            {"image/encoded": images.encode(images.noise(*size), "PNG")}
            for size in [(30, 20), (19, 50), (20, 20)]
        ],
    )
    patches = {"x": rs.Patches((20, 20), 2, small="error")}
    with raises(CorruptDataError, defect=Defect.FEATURE_SHAPE, record=1, feature="image/encoded"):
        only(dataset, patches)
    assert only(dataset, patches, skip_errors=1)["x"].shape == (2, 2, 20, 20, 3)


# -- masks and boxes -------------------------------------------------------------------------------


def numbered_masks() -> list[np.ndarray]:
    """Masks of 16 bits in which each pixel has another value."""
    return [
        np.arange(height * width, dtype=np.uint16).reshape(height, width)
        for height, width in [(200, 150), (64, 64), (33, 300), (20, 20)]
    ]


@pytest.mark.parametrize("stored", ["png", "raw", "tiff"])
@pytest.mark.parametrize("flip", [None, "both"])
def test_masks_stay_on_their_patches(
    tmp_path: Path, images: ModuleType, stored: str, flip: Any
) -> None:
    """Image and mask have the same 16-bit values, by which each pixel is known."""
    records = []
    for mask in numbered_masks():
        png = encode_mask(mask)
        encoded = {"raw": mask.astype("<u2").tobytes(), "png": png}.get(stored)
        encoded = encoded or images.encode(Image.fromarray(mask), "TIFF")
        sides = {"height": mask.shape[0], "width": mask.shape[1]}
        records.append({"image/encoded": png, "mask": encoded} | sides)
    raw = {"raw_shape": ("height", "width"), "raw_dtype": "uint16"} if stored == "raw" else {}
    features: dict[str, Any] = {
        "mask": rs.Mask("mask", dtype="uint16", values={7: 70}, **raw),
        "image": rs.Patches((32, 24), 4, channels=1, dtype="uint16", flip=flip),
    }
    batch = only(written(tmp_path, records), features)
    assert batch["mask"].shape == (4, 4, 32, 24)
    expected = np.where(batch["image"] == 7, 70, batch["image"])[..., 0]
    np.testing.assert_array_equal(batch["mask"], expected)
    if flip is None:
        for row, mask in enumerate(numbered_masks()):
            for top, left in batch["image_offsets"][row]:
                assert mask[top, left] in (*batch["mask"][row, :, 0, 0], 7)


@pytest.mark.parametrize("flip", [None, "both"])
@pytest.mark.parametrize("length", [None, 3])
def test_boxes_of_patches(
    tmp_path: Path, images: ModuleType, flip: Any, length: int | None
) -> None:
    """Each box is drawn in its own grey, and lies around that in each patch."""
    rng = np.random.default_rng(4)
    records = []
    for box_count, width in ((3, 80), (0, 90), (2, 100), (1, 120)):
        pixels = np.zeros((60, width), np.uint8)
        boxes = np.zeros((box_count, 4), int)
        for number in range(box_count):  # one below the other, so that none hides another
            top, left = 20 * number + int(rng.integers(5)), int(rng.integers(40))
            boxes[number] = (
                top,
                left,
                top + int(rng.integers(4, 15)),
                left + int(rng.integers(5, 40)),
            )
            ymin, xmin, ymax, xmax = boxes[number]
            pixels[ymin:ymax, xmin:xmax] = number + 1
        record: dict[str, Any] = {"image/encoded": images.encode(Image.fromarray(pixels), "PNG")}
        for side, key in enumerate(("ymin", "xmin", "ymax", "xmax")):
            scale = (60, width)[side % 2]
            record[f"image/object/bbox/{key}"] = (boxes[:, side] / scale).tolist()
        record["image/object/class/label"] = list(range(1, box_count + 1))
        records.append(record)
    features = {
        "b": rs.Boxes(unit="pixel", length=length),
        "x": rs.Patches((32, 40), 5, channels=1, flip=flip),
    }
    batch = only(written(tmp_path, records), features)
    most = batch["b_lengths"].max()
    assert batch["b"].shape == (4, 5, length or most, 4)
    assert batch["b_labels"].shape == (4, 5, length or most)
    assert batch["b_lengths"].shape == (4, 5)
    assert most > 1
    for row in range(4):
        for patch in range(5):
            grey = batch["x"][row, patch, ..., 0]
            count = batch["b_lengths"][row, patch]
            labels = batch["b_labels"][row, patch]
            assert labels[:count].tolist() == [n for n in (1, 2, 3) if (grey == n).any()]
            assert (labels[count:] == -1).all()
            for label, box in zip(labels[:count], batch["b"][row, patch], strict=False):
                down, across = np.nonzero(grey == label)
                expected = [down.min(), across.min(), down.max() + 1, across.max() + 1]
                np.testing.assert_allclose(box, expected, atol=1e-4)


def test_patches_belong_to_the_record(forms: rs.Dataset) -> None:
    """Whatever the threads, batches and ranks; others in each epoch."""

    def patches(**options: Any) -> Any:
        options = {"batch_size": len(forms), "threads": 0, "seed": 3} | options
        loader = rs.Loader(forms, {"x": rs.Patches(12, 3, flip="both")}, **options)
        return np.concatenate([batch["x"] for batch in loader])

    expected = patches()
    np.testing.assert_array_equal(patches(threads=2, batch_size=3), expected)
    np.testing.assert_array_equal(patches(batch_size=2, rank=1, world_size=3), expected[1::3])
    first, second = np.split(patches(epochs=2), 2)
    np.testing.assert_array_equal(first, expected)
    assert not np.array_equal(second, expected)


# -- what is decoded -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "windows", "file_count"),
    [
        ("jpeg", [(0, 0), (300, 200)], 2),
        ("jpeg", [(40 * n, 20 * n) for n in range(8)], 1),
        ("tiles", [(40 * n, 20 * n) for n in range(8)], 8),
        ("tiles", [(n, n) for n in range(8)], 1),
        ("progressive", [(0, 0), (300, 200)], 1),
        ("png", [(0, 0), (10, 200)], 1),
    ],
)
def test_patches_are_decoded_together_where_that_is_faster(
    images: ModuleType, form: str, windows: list[tuple[int, int]], file_count: int
) -> None:
    kind, options = FORMS[form]
    data = images.encode(images.smooth(480, 640), kind, **options)
    head = read_image_header(data)
    files = find_parts(data, head, [Window(top, left, 64, 64) for top, left in windows])
    assert len(files) == file_count
    pixel_count = sum(file.head.height * file.head.width for file, _ in files)
    assert pixel_count <= head.height * head.width


def test_damage_in_a_patch_is_found_and_elsewhere_not(tmp_path: Path, images: ModuleType) -> None:
    data = images.encode(images.noise(320, 400), "JPEG", restart_marker_blocks=5)
    offsets = only(written(tmp_path, [{"image/encoded": data}]), {"x": rs.Patches(16, 1)})
    top = int(offsets["x_offsets"][0, 0, 0])
    assert 100 < top < 300  # else take another seed
    below, inside = (data[: int(len(data) * share)] for share in (0.97, (top + 4) / 400))
    dataset = written(tmp_path, [{"image/encoded": one} for one in (data, below, inside)])
    for position in (0, 1):
        batch = only(dataset[[position]], {"x": rs.Patches(16, 1)})
        np.testing.assert_array_equal(batch["x"], offsets["x"])
    with raises(CorruptDataError, defect=Defect.UNREADABLE_IMAGE, record=2):
        only(dataset[[2]], {"x": rs.Patches(16, 1)})


def test_a_part_that_is_damaged_is_decoded_whole_once(
    tmp_path: Path, images: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where parts cannot be decoded but the image can, all patches come from one decoding."""
    data = images.encode(images.smooth(320, 400), "JPEG", restart_marker_blocks=5)
    whole: list[int] = []

    def decode_pixels(*args: Any, **options: Any) -> Any:
        whole.append(1)
        return actual(*args, **options)

    actual = parts.decode_pixels
    monkeypatch.setattr(parts, "decode_cut", lambda *_, **__: None)
    monkeypatch.setattr(parts, "decode_pixels", decode_pixels)
    batch = only(written(tmp_path, [{"image/encoded": data}]), {"x": rs.Patches(16, 5)})
    assert len(whole) == 1
    pixels = decode_image(data)
    for patch, (top, left) in zip(batch["x"][0], batch["x_offsets"][0], strict=True):
        np.testing.assert_array_equal(patch, pixels[top : top + 16, left : left + 16])


def test_the_limit_counts_the_pixels_that_are_decoded(tmp_path: Path, images: ModuleType) -> None:
    smooth = images.smooth(2400, 2400)
    tiled = images.encode(smooth, "JPEG", restart_marker_blocks=5)
    progressive = images.encode(smooth, "JPEG", progressive=True)
    mask = encode_mask(np.zeros((2400, 2400), np.uint8))
    dataset = written(tmp_path, [{"image/encoded": one, "m": mask} for one in (tiled, progressive)])
    features = {"x": rs.Patches(200, 2, max_pixels=500_000)}
    assert only(dataset[:1], features)["x"].shape == (1, 2, 200, 200, 3)
    with raises(CorruptDataError, defect=Defect.UNREADABLE_IMAGE, record=1):
        only(dataset[1:], features)
    image = rs.Image(size=(200, 2400), fit="crop-or-pad")
    limited: dict[str, Any] = {"x": image, "m": rs.Mask("m", max_pixels=500_000)}
    for features in (limited, {"m": rs.Mask("m", size=8, max_pixels=500_000)}):
        with raises(CorruptDataError, match="increase max_pixels of the mask 'm'", record=0):
            only(dataset[:1], features)
