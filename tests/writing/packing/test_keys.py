"""Renaming of features: presets and dicts."""

from __future__ import annotations

from typing import Any

import pytest

import recordsmith as rs
from recordsmith.writing.packing.keys import PRESETS, resolve_keys

FEATURES: dict[str, Any] = {
    "image/class/label": 3,
    "image/class/text": b"rose",
    "image/encoded": b"not looked at",
    "image/filename": b"rose/1.jpg",
    "image/format": "jpeg",
    "image/height": 8,
    "image/width": 12,
}


def _apply(keys: Any, features: dict[str, Any]) -> dict[str, Any]:
    scheme = resolve_keys(keys)
    assert scheme is not None
    return scheme.apply(features)


def test_presets_have_the_keys_of_the_tutorials(images: Any) -> None:
    assert _apply("slim", FEATURES) == {
        "image/class/label": 3,
        "image/encoded": b"not looked at",
        "image/format": b"jpg",
        "image/height": 8,
        "image/width": 12,
    }
    assert _apply("label-text-encoded", FEATURES) == {
        "label": 3,
        "text": b"rose",
        "encoded": b"not looked at",
    }
    masked = FEATURES | {"image/segmentation/class/encoded": b"mask"}
    assert _apply("raw-pairs", masked) == {
        "height": 8,
        "width": 12,
        "image_raw": b"not looked at",
        "mask_raw": b"mask",
    }
    assert _apply("rows-cols", FEATURES | {"image/depth": 4}) == {
        "filename": b"rose/1.jpg",
        "rows": 8,
        "cols": 12,
        "channels": 4,
        "image": b"not looked at",
        "label": 3,
    }


@pytest.mark.parametrize(("mode", "depth"), [("L", 1), ("RGB", 3), ("RGBA", 4), ("P", 3)])
def test_depth_is_read_from_the_image_if_needed(images: Any, mode: str, depth: int) -> None:
    image = images.encode(images.noise(4, 3).convert(mode), "PNG")
    assert _apply("rows-cols", FEATURES | {"image/encoded": image})["channels"] == depth


def test_only_the_format_jpeg_is_renamed() -> None:
    assert _apply("slim", FEATURES | {"image/format": b"png"})["image/format"] == b"png"
    assert _apply("slim", FEATURES | {"image/format": b"jpeg"})["image/format"] == b"jpg"


def test_dicts_rename_drop_and_keep() -> None:
    keys = {"image/encoded": "image", "image/filename": None}
    renamed = _apply(keys, FEATURES)
    assert renamed.keys() == FEATURES.keys() - keys.keys() | {"image"}
    assert renamed["image"] == FEATURES["image/encoded"]
    assert "image/filename" in FEATURES  # the argument is not modified


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("slimm", "'slimm'", "one of slim, raw-pairs"),
        (5, "5", "or a dict"),
        ({"a": ""}, "''", "the name of a feature"),
        ({"a": 5}, "5", "the name of a feature"),
        ({"a": "x", "b": "x"}, "'x'", ""),
    ],
)
def test_invalid_keys(keys: Any, value: str, expected: str) -> None:
    with pytest.raises(rs.OptionError) as caught:
        resolve_keys(keys)
    assert (caught.value.option, caught.value.value) == ("keys", value)
    assert expected in caught.value.expected


def test_keys_that_do_not_match_the_features() -> None:
    cases: list[tuple[Any, str, str]] = [
        ({"image/height": "image/width"}, "'image/width'", ""),
        ("raw-pairs", "'image/segmentation/class/encoded'", ""),
        ({"image/encode": "x"}, "'image/encode'", "'image/encoded'"),
    ]
    for keys, value, suggestion in cases:
        with pytest.raises(rs.OptionError) as caught:
            _apply(keys, FEATURES)
        assert (caught.value.option, caught.value.value) == ("keys", value)
        assert suggestion in caught.value.remedy


def test_names_of_presets() -> None:
    assert all(name == scheme.name for name, scheme in PRESETS.items())
    assert resolve_keys(None) is None


def test_presets_apply_to_records_that_are_packed_again(tmp_path: Any, images: Any) -> None:
    root = images.make_folder(tmp_path / "flowers", {"daisy": 2, "rose": 1})
    rs.pack(rs.ImageFolder(root), tmp_path / "usual", shuffle=False)
    for preset in ("slim", "rows-cols", "label-text-encoded"):
        again, at_once = tmp_path / f"{preset} again", tmp_path / f"{preset} at once"
        rs.pack(rs.Shards(tmp_path / "usual"), again, keys=preset, shuffle=False)
        rs.pack(rs.ImageFolder(root), at_once, keys=preset, shuffle=False)
        assert list(rs.open(again).records()) == list(rs.open(at_once).records())


def test_kinds_follow_the_names(tmp_path: Any) -> None:
    """An empty list keeps its kind under a new name."""
    rows = rs.Rows([{"a": [], "b": 1}, {"a": [], "b": 2}], kinds={"a": "float"})
    rs.pack(rows, tmp_path / "out", keys={"a": "c"})
    schema = rs.open(tmp_path / "out").schema
    assert sorted(schema.features) == ["b", "c"]
    assert schema.features["c"].kind == "float"
