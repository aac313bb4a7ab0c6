"""Lists of images: each is what the same image is alone, ragged or padded."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.reading import only_batch, written

import recordsmith as rs
from recordsmith.image import encode_mask

COUNTS = [2, 0, 3, 1, 0, 4]
OPTIONS: list[dict[str, Any]] = [
    {"size": 12},
    {"size": (9, 14), "fit": "center-crop", "layout": "CHW", "dtype": "float32", "mean": 0.5},
    {"size": 10, "fit": "random-crop", "flip": "both"},
    {"fit": "pad"},
]


@pytest.fixture
def records(images: ModuleType) -> list[dict[str, Any]]:
    """Record n has COUNTS[n] images, a mask for each, and their names; without images no key."""
    found = []
    for row, count in enumerate(COUNTS):
        sides = [(20 + 3 * row, 15 + 2 * at) for at in range(count)]
        pixels = [images.noise(width, height) for height, width in sides]
        record: dict[str, Any] = {"id": row, "names": [f"{row}/{at}" for at in range(count)]}
        if count:
            record["images"] = [images.encode(image, "PNG") for image in pixels]
            record["masks"] = [encode_mask(np.asarray(image)[..., 0] // 50) for image in pixels]
        found.append(record)
    return found


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("width", [None, 4, 2])
def test_an_image_of_a_list_is_what_it_is_alone(
    tmp_path: Path, records: list[dict[str, Any]], options: dict[str, Any], width: int | None
) -> None:
    count: Any = "ragged" if width is None else "padded"
    more: Any = {"length": 2, "too_long": "cut"} if width == 2 else {}
    features = {
        "x": rs.Image("images", **options, count=count, **more),
        "m": rs.Mask("masks", count=count, fill=9),
        "names": rs.Text("names", "ragged"),
    }
    batch = only_batch(written(tmp_path, records), features)
    assert list(batch["names"]) == [record["names"] for record in records]
    lengths = np.minimum(COUNTS, width or 4)
    for name in ("x", "m"):
        counted = batch[name].lengths if width is None else batch[f"{name}_lengths"]
        np.testing.assert_array_equal(counted, lengths)
        assert [*map(len, batch[name])] == [*(lengths if width is None else [width] * len(COUNTS))]
    for row, at in ((row, at) for row, kept in enumerate(lengths) for at in range(kept)):
        # at the same place of the epoch, so that its random numbers are the same
        one = {"i": records[row]["images"][at], "m": records[row]["masks"][at]}
        same = {"x": rs.Image("i", **options), "m": rs.Mask("m", fill=9)}
        expected = only_batch(written(tmp_path, [one] * (row + 1)), same)
        for name in ("x", "m"):
            found, image = batch[name][row][at], expected[name][row]
            if options == {"fit": "pad"}:  # the frame is that of the batch
                own_height, own_width = expected["x_sizes"][row]
                assert batch["x_sizes"][row][at].tolist() == [own_height, own_width]
                found, image = found[:own_height, :own_width], image[:own_height, :own_width]
            np.testing.assert_array_equal(found, image)
    if width is not None:
        is_padding = np.arange(width) >= lengths[:, np.newaxis]
        assert (batch["x"][is_padding] == (-0.5 if "mean" in options else 0)).all()
        assert (batch["m"][is_padding] == 9).all()


def test_raw_pixels_and_masks_of_their_own(
    tmp_path: Path, records: list[dict[str, Any]], images: ModuleType
) -> None:
    pixels = np.arange(3 * 4 * 5 * 3, dtype=np.uint8).reshape(3, 4, 5, 3)
    rows = [[pixels[0].tobytes()], [], [image.tobytes() for image in pixels]]
    dataset = written(tmp_path, [{"raw": row} for row in rows])
    batch = only_batch(dataset, {"x": rs.Image("raw", raw_shape=(4, 5, 3), count="ragged")})
    np.testing.assert_array_equal(batch["x"].values, pixels[[0, 0, 1, 2]])
    mask = rs.Mask("masks", size=6, count="padded", length=5)
    batch = only_batch(written(tmp_path, records), {"m": mask})
    assert batch["m"].shape == (6, 5, 6, 6)
    np.testing.assert_array_equal(batch["m_lengths"], COUNTS)
    image = rs.Image("images", fit="pad", count="ragged")
    none = only_batch(written(tmp_path, records)[[1, 4]], {"x": image})
    assert none["x"].row_splits.tolist() == [0, 0, 0]


def test_maps_get_the_images_of_a_row(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    def halve(example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "x": example["x"][:, ::2, ::2]}

    dataset = written(tmp_path, records)
    features = {"x": rs.Image("images", 8, count="ragged")}
    whole = only_batch(dataset, features)["x"]
    halved = only_batch(dataset, features, map_examples=halve)["x"]
    np.testing.assert_array_equal(halved.values, whole.values[:, ::2, ::2])
    assert halved.lengths.tolist() == COUNTS
    assert (whole == only_batch(dataset, features)["x"]).all()
    assert (whole[[0, 2]] != only_batch(dataset[[0, 5]], features)["x"]).tolist() == [False, True]
