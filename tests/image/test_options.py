"""ImageOptions: invalid values, conflicts, and the JSON form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recordsmith.image import MAX_PIXELS, ImageOptions
from recordsmith.support.errors import OptionError

SIDES = "an integer from 1 to 65,535"
PIXELS = "an integer from 1 to 178,956,970"
QUALITY = "an integer from 1 to 100"


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("store", {"store": "gif"}, "one of original, jpeg, png, raw"),
        ("store", {"store": "jpg"}, "'jpeg'?"),
        ("orientation", {"orientation": "turn"}, "one of keep, apply"),
        *(("quality", {"store": "jpeg", "quality": x}, QUALITY) for x in (0, 101, 95.0, True)),
        ("shorter_side", {"shorter_side": 0}, SIDES),
        ("longer_side", {"longer_side": -3}, SIDES),
        ("longer_side", {"longer_side": 70_000}, SIDES),
        *(("max_pixels", {"max_pixels": x}, PIXELS) for x in (0, 10**9)),
        *(
            ("background", {"store": "jpeg", "background": x}, "green")
            for x in ((0, 0), (0, 0, 256), "white")
        ),
        # valid alone, but not together
        *(("quality", {"store": x, "quality": 80}, "store='jpeg'") for x in ("png", "raw")),
        ("quality", {"quality": 80}, "store='jpeg'"),
        ("longer_side", {"shorter_side": 5, "longer_side": 6}, "one of them"),
        ("background", {"background": (0, 0, 0)}, "store='jpeg'"),
        ("background", {"store": "png", "background": (0, 0, 0)}, "store='jpeg'"),
        ("drop_alpha", {"drop_alpha": True}, "store='jpeg' or store='raw'"),
        ("drop_alpha", {"store": "png", "drop_alpha": True}, "store='jpeg' or store='raw'"),
        ("drop_alpha", {"store": "jpeg", "drop_alpha": True, "background": (0, 0, 0)}, "one of"),
        ("recompress", {"recompress": True}, "store='jpeg' or store='png'"),
        ("recompress", {"store": "raw", "recompress": True}, "store='jpeg' or store='png'"),
        ("shrink", {"store": "raw", "shrink": True}, "Remove shrink"),
        *(("baseline", {"store": x, "baseline": True}, "Remove baseline") for x in ("raw", "png")),
        *(("tiles", {"store": x, "tiles": True}, "Remove tiles") for x in ("raw", "png")),
        ("tiles", {"shrink": True, "tiles": True}, "baseline=True"),
    ],
)
def test_invalid_options(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        ImageOptions(**options)
    assert (caught.value.option, caught.value.value) == (name, repr(options[name]))
    assert text in str(caught.value)


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
