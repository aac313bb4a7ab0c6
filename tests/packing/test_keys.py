"""Features under other names: presets and dicts."""

from __future__ import annotations

from typing import Any

import pytest

import recordsmith as rs
from recordsmith.packing.keys import PRESETS, resolve_keys

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


def test_presets_have_the_keys_of_the_tutorials(pictures: Any) -> None:
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
def test_depth_is_looked_up_where_it_is_wanted(pictures: Any, mode: str, depth: int) -> None:
    picture = pictures.encode(pictures.noise(4, 3).convert(mode), "PNG")
    assert _apply("rows-cols", FEATURES | {"image/encoded": picture})["channels"] == depth


def test_other_formats_keep_their_spelling() -> None:
    assert _apply("slim", FEATURES | {"image/format": b"png"})["image/format"] == b"png"
    assert _apply("slim", FEATURES | {"image/format": b"jpeg"})["image/format"] == b"jpg"


def test_dicts_rename_leave_out_and_keep() -> None:
    keys = {"image/encoded": "picture", "image/filename": None}
    renamed = _apply(keys, FEATURES)
    assert renamed.keys() == FEATURES.keys() - keys.keys() | {"picture"}
    assert renamed["picture"] == FEATURES["image/encoded"]
    assert "image/filename" in FEATURES  # what was given is not changed


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("slimm", "expected one of slim"),
        (5, "expected a dict"),
        ({"a": ""}, "name of a feature"),
        ({"a": 5}, "name of a feature"),
        ({"a": "x", "b": "x"}, "two features the name 'x'"),
    ],
)
def test_keys_that_are_none(keys: Any, words: str) -> None:
    with pytest.raises(rs.OptionError, match=words):
        resolve_keys(keys)


def test_features_that_do_not_fit() -> None:
    with pytest.raises(rs.OptionError, match="calls two features 'image/width'"):
        _apply({"image/height": "image/width"}, FEATURES)
    with pytest.raises(
        rs.OptionError, match=r"need the feature 'image/segmentation/class/encoded'"
    ):
        _apply("raw-pairs", FEATURES)
    with pytest.raises(rs.OptionError, match="did you mean 'image/encoded'"):
        _apply({"image/encode": "x"}, FEATURES)


def test_presets_are_named_as_they_are_asked_for() -> None:
    assert all(name == scheme.name for name, scheme in PRESETS.items())
    assert resolve_keys(None) is None


def test_records_that_are_packed_again(tmp_path: Any, pictures: Any) -> None:
    root = pictures.make_folder(tmp_path / "flowers", {"daisy": 2, "rose": 1})
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
