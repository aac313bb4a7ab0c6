"""What keys alone become: values by the schema, images of one size, masks that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.reading import written

import recordsmith as rs
from recordsmith.image import decode_image, encode_mask
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

IMAGE, MASK = "image/encoded", "image/segmentation/class/encoded"


@pytest.fixture
def write(tmp_path: Path, images: ModuleType) -> Any:
    """A dataset of PNG images of some sizes (height, width), with labels and masks."""

    def write(sizes: Sequence[tuple[int, int]]) -> rs.Dataset:
        examples = [
            {
                IMAGE: images.encode(images.noise(width, height, seed=number), "PNG"),
                MASK: encode_mask(np.full((height, width), number, np.uint8)),
                "label": number,
                "scores": list(range(number)),
            }
            for number, (height, width) in enumerate(sizes)
        ]
        return written(tmp_path, examples)

    return write


def test_a_list_of_keys(write: Any) -> None:
    dataset = write([(8, 6)] * 5)
    (batch,) = rs.Loader(dataset, [IMAGE, MASK, "label", "scores"], batch_size=5)
    expected = [decode_image(dataset[at][IMAGE][0]) for at in range(5)]
    np.testing.assert_array_equal(batch[IMAGE], expected)
    assert batch[MASK].shape == (5, 8, 6)
    assert (batch[MASK] == np.arange(5)[:, None, None]).all()
    assert batch["label"].tolist() == [0, 1, 2, 3, 4]
    assert batch["scores"].tolist() == [list(range(number)) for number in range(5)]
    named = {"pixels": IMAGE, "masks": MASK, "n": "label", "s": "scores"}
    (same,) = rs.Loader(dataset, named, batch_size=5)
    np.testing.assert_array_equal(same["pixels"], batch[IMAGE])
    np.testing.assert_array_equal(same["masks"], batch[MASK])


def test_what_stays_as_stored(write: Any) -> None:
    """All features together, and a mask without an image, are bytes."""
    dataset = write([(8, 6), (9, 6)])
    kinds = {name: spec.kind for name, spec in rs.Loader(dataset, batch_size=2).spec().items()}
    assert kinds == {IMAGE: "bytes", MASK: "bytes", "label": "numbers", "scores": "numbers"}
    assert rs.Loader(dataset, [MASK], batch_size=2).spec()[MASK].kind == "bytes"


@pytest.mark.parametrize("fit", ["resize", "crop-or-pad", "center-crop", "contain"])
def test_an_image_without_a_size_is_unscaled(write: Any, fit: Any) -> None:
    dataset = write([(8, 6)] * 3)
    loader = rs.Loader(dataset, {"x": rs.Image(fit=fit, dtype="float32")}, batch_size=3)
    assert loader.spec()["x"].shape == (None, 8, 6, 3)
    (batch,) = loader
    expected = np.stack([decode_image(dataset[at][IMAGE][0]) for at in range(3)]) / 255
    np.testing.assert_allclose(batch["x"], expected, atol=1e-6)
    assert rs.Examples(dataset, ["image/encoded"])[2][IMAGE].shape == (8, 6, 3)


def test_the_size_of_raw_images(tmp_path: Path) -> None:
    pixels = np.arange(4 * 5 * 3, dtype=np.uint8)
    dataset = written(tmp_path, [{"raw": pixels.tobytes(), "h": 4, "w": 5}] * 2)
    image = rs.Image("raw", raw_shape=("h", "w", 3))
    (batch,) = rs.Loader(dataset, {"x": image}, batch_size=2)
    assert batch["x"].tolist() == [pixels.reshape(4, 5, 3).tolist()] * 2


@pytest.mark.parametrize(
    ("features", "line"),
    [
        ([IMAGE, "label"], '{"image/encoded": rs.Image(size=224)}'),
        ({"x": IMAGE}, '{"x": rs.Image(size=224)}'),
        ({"x": rs.Image(flip="both")}, '{"x": rs.Image(size=224)}'),
        ({"x": "thumbnail"}, '{"x": rs.Image("thumbnail", size=224)}'),
    ],
)
def test_different_sizes_among_the_first_records(
    write: Any, images: ModuleType, tmp_path: Path, features: Any, line: str
) -> None:
    encoded = [images.encode(images.noise(6, height), "PNG") for height in (8, 8, 9)]
    dataset = written(tmp_path, [{IMAGE: one, "thumbnail": one, "label": 1} for one in encoded])
    with pytest.raises(OptionError) as caught:
        rs.Loader(dataset, features, batch_size=2)
    assert (caught.value.option, caught.value.value) == ("size", "[(8, 6), (9, 6)]")
    assert line in caught.value.remedy
    compile(line, "remedy", "eval")


def test_an_image_of_another_size_while_loading(write: Any) -> None:
    dataset = write([(8, 6)] * 70 + [(5, 7)])
    with pytest.raises(CorruptDataError) as caught:
        list(rs.Loader(dataset, [IMAGE], batch_size=71))
    error = caught.value
    assert (error.defect, error.record, error.feature) == (Defect.FEATURE_SHAPE, 70, IMAGE)
    assert (error.found, error.expected) == ("7 x 5", "6 x 8")
    (batch,) = rs.Loader(dataset, [IMAGE], batch_size=71, skip_errors=1)
    assert batch[IMAGE].shape == (70, 8, 6, 3)


def test_the_sizes_of_a_mix(write: Any) -> None:
    one, same, other = write([(8, 6)] * 3), write([(8, 6)]), write([(6, 8)])
    loader = rs.Loader(rs.Mix([(one, 0.5), (same, 0.5)]), [IMAGE], batch_size=2)
    assert next(iter(loader))[IMAGE].shape == (2, 8, 6, 3)
    with pytest.raises(OptionError) as caught:
        rs.Loader(rs.Mix([(one, 0.5), (other, 0.5)]), [IMAGE], batch_size=2)
    assert caught.value.value == "[(8, 6), (6, 8)]"


@pytest.mark.parametrize(
    ("stored", "dtype", "values"),
    [
        (np.uint8, "uint8", {255: 1}),
        (np.uint8, "uint8", {0: 5, 5: 0}),  # all at once
        (np.uint8, "int64", {255: -100, 1: 10**12}),
        (np.uint16, "uint8", {300: 1, 1000: 2, 65535: 255}),
        (np.uint16, "uint16", {300: 65535}),
        (np.uint8, "uint8", {300: 7}),  # no uint8 mask has it
        (np.uint8, "uint8", {}),
    ],
)
@pytest.mark.parametrize("size", [None, (16, 12), (5, 4)])
def test_masks_with_other_values(
    tmp_path: Path, images: ModuleType, stored: Any, dtype: Any, values: Any, size: Any
) -> None:
    seen = [0, 1, 5, 255] if stored is np.uint8 else [0, 300, 1000, 65535]
    if dtype == "uint16":
        seen = [0, 300, 1000, 5]
    numbers = np.random.default_rng(0).choice(seen, (8, 6)).astype(stored)
    encoded = images.encode(images.noise(6, 8), "PNG")
    dataset = written(tmp_path, [{IMAGE: encoded, MASK: encode_mask(numbers)}])
    features = {"image": rs.Image(size=size), "mask": rs.Mask(dtype=dtype, values=values)}
    (batch,) = rs.Loader(dataset, features, batch_size=1)
    wide = numbers.astype(np.int64)
    expected = wide.copy()
    for old, new in values.items():
        expected[wide == old] = new
    plain = {"image": rs.Image(size=size), "mask": rs.Mask(dtype="int64")}
    (unchanged,) = rs.Loader(dataset, plain, batch_size=1)
    lookup = {int(old): int(new) for old, new in zip(wide.flat, expected.flat, strict=True)}
    assert batch["mask"].dtype == dtype
    assert batch["mask"][0].tolist() == np.vectorize(lookup.get)(unchanged["mask"][0]).tolist()
