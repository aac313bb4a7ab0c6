"""ImageOptions: invalid values, conflicts, and the JSON form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recordsmith.errors import OptionError
from recordsmith.image import MAX_PIXELS, ImageOptions


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("store", {"store": "gif"}, "one of 'original', 'jpeg', 'png', 'raw'"),
        ("orientation", {"orientation": "turn"}, "one of 'keep', 'apply'"),
        ("quality", {"store": "jpeg", "quality": 0}, "an integer from 1 to 100"),
        ("quality", {"store": "jpeg", "quality": 101}, "an integer from 1 to 100"),
        ("quality", {"store": "jpeg", "quality": 95.0}, "an integer from 1 to 100"),
        ("quality", {"store": "jpeg", "quality": True}, "an integer from 1 to 100"),
        ("shorter_side", {"shorter_side": 0}, "an integer from 1 to 65,535"),
        ("longer_side", {"longer_side": -3}, "an integer from 1 to 65,535"),
        ("longer_side", {"longer_side": 70_000}, "an integer from 1 to 65,535"),
        ("max_pixels", {"max_pixels": 0}, "an integer from 1 to 178,956,970"),
        ("max_pixels", {"max_pixels": 10**9}, "an integer from 1 to 178,956,970"),
    ],
)
def test_invalid_values(name: str, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        ImageOptions(**options)
    assert caught.value.option == name
    assert caught.value.value == repr(options[name])
    assert caught.value.expected == expected


@pytest.mark.parametrize("background", [(0, 0), (0, 0, 256), "white"])
def test_invalid_background(background: Any) -> None:
    with pytest.raises(OptionError) as caught:
        ImageOptions(store="jpeg", background=background)
    assert caught.value.option == "background"
    assert caught.value.value == repr(background)
    assert "green" in caught.value.expected


@pytest.mark.parametrize(
    ("name", "options", "suggested"),
    [
        ("quality", {"store": "png", "quality": 80}, "store='jpeg'"),
        ("quality", {"store": "raw", "quality": 80}, "store='jpeg'"),
        ("quality", {"quality": 80}, "store='jpeg'"),
        ("longer_side", {"shorter_side": 5, "longer_side": 6}, "one of them"),
        ("background", {"background": (0, 0, 0)}, "store='jpeg'"),
        ("background", {"store": "png", "background": (0, 0, 0)}, "store='jpeg'"),
        ("drop_alpha", {"drop_alpha": True}, "store='jpeg' or store='raw'"),
        ("drop_alpha", {"store": "png", "drop_alpha": True}, "store='jpeg' or store='raw'"),
        (
            "drop_alpha",
            {"store": "jpeg", "drop_alpha": True, "background": (0, 0, 0)},
            "one of them",
        ),
        ("recompress", {"recompress": True}, "store='jpeg' or store='png'"),
        ("recompress", {"store": "raw", "recompress": True}, "store='jpeg' or store='png'"),
        ("shrink", {"store": "raw", "shrink": True}, "Remove shrink"),
        ("baseline", {"store": "raw", "baseline": True}, "Remove baseline"),
        ("baseline", {"store": "png", "baseline": True}, "Remove baseline"),
        ("tiles", {"store": "raw", "tiles": True}, "Remove tiles"),
        ("tiles", {"store": "png", "tiles": True}, "Remove tiles"),
        ("tiles", {"shrink": True, "tiles": True}, "baseline=True"),
    ],
)
def test_conflicting_options(name: str, options: dict[str, Any], suggested: str) -> None:
    with pytest.raises(OptionError) as caught:
        ImageOptions(**options)
    assert caught.value.option == name
    assert caught.value.value == repr(options[name])
    assert suggested in str(caught.value)


def test_a_similar_value_is_suggested() -> None:
    with pytest.raises(OptionError) as caught:
        ImageOptions(store="jpg")  # type: ignore[arg-type]
    assert "'jpeg'" in caught.value.remedy


def test_unknown_options_of_a_manifest() -> None:
    with pytest.raises(OptionError) as caught:
        ImageOptions.from_json({"store": "jpeg", "sharpen": True})
    assert caught.value.option == "sharpen"


@pytest.mark.parametrize(
    "options",
    [
        {"store": "jpeg", "quality": 1},
        {"shorter_side": 256, "quality": 80},
        {"orientation": "apply", "quality": 80},
        {"store": "jpeg", "background": (255, 0, 9), "recompress": True, "shrink": True},
        {"store": "jpeg", "drop_alpha": True, "quality": 100},
        {"store": "raw", "drop_alpha": True},
        {"shrink": True, "baseline": True},
        {"tiles": True},
        {"shrink": True, "baseline": True, "tiles": True, "shorter_side": 256},
        {"store": "raw", "longer_side": 65_535},
    ],
)
def test_valid_combinations(options: dict[str, Any]) -> None:
    created = ImageOptions(**options)
    assert not created.is_default
    document = created.to_json()
    assert json.loads(json.dumps(document)) == document
    assert set(document) == set(options)
    assert ImageOptions(**document) == created
    assert hash(ImageOptions(**document)) == hash(created)


def test_defaults_keep_all_bytes() -> None:
    assert ImageOptions().is_default
    assert ImageOptions().to_json() == {}
    assert ImageOptions(max_pixels=MAX_PIXELS // 2).is_default
    assert ImageOptions(max_pixels=100).to_json() == {"max_pixels": 100}
