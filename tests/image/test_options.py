"""Options of pictures: what contradicts is refused with what to do, what is said is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recordsmith.errors import OptionError
from recordsmith.image import MAX_PIXELS, PictureOptions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "gif"}, "'original', 'jpeg', 'png', 'raw'"),
        ({"orientation": "turn"}, "'keep', 'apply'"),
        ({"format": "jpeg", "quality": 0}, "from 1 to 100"),
        ({"format": "jpeg", "quality": 101}, "from 1 to 100"),
        ({"format": "jpeg", "quality": 95.0}, "whole number"),
        ({"format": "jpeg", "quality": True}, "whole number"),
        ({"format": "png", "quality": 80}, "format='jpeg'"),
        ({"format": "raw", "quality": 80}, "format='jpeg'"),
        ({"quality": 80}, "format='jpeg'"),
        ({"shorter_side": 0}, "shorter_side is 0"),
        ({"longer_side": -3}, "longer_side is -3"),
        ({"longer_side": 70_000}, "65,535"),
        ({"shorter_side": 5, "longer_side": 6}, "one of them"),
        ({"background": (0, 0, 0)}, "format='jpeg'"),
        ({"format": "png", "background": (0, 0, 0)}, "keeps alpha"),
        ({"format": "jpeg", "background": (0, 0)}, "red, green and blue"),
        ({"format": "jpeg", "background": (0, 0, 256)}, "red, green and blue"),
        ({"format": "jpeg", "background": "white"}, "red, green and blue"),
        ({"drop_alpha": True}, "format='jpeg' or format='raw'"),
        ({"format": "png", "drop_alpha": True}, "keeps alpha"),
        ({"format": "jpeg", "drop_alpha": True, "background": (0, 0, 0)}, "one of them"),
        ({"recompress": True}, "format='jpeg' or format='png'"),
        ({"format": "raw", "recompress": True}, "format='jpeg' or format='png'"),
        ({"format": "raw", "shrink": True}, "raw pixels are none"),
        ({"format": "raw", "baseline": True}, "raw pixels are none"),
        ({"format": "png", "baseline": True}, "is for JPEGs"),
        ({"max_pixels": 0}, "max_pixels is 0"),
        ({"max_pixels": 10**9}, "178,956,970"),
    ],
)
def test_what_contradicts_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words.replace("(", r"\(")):
        PictureOptions(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"format": "jpeg", "quality": 1},
        {"shorter_side": 256, "quality": 80},
        {"orientation": "apply", "quality": 80},
        {"format": "jpeg", "background": (255, 0, 9), "recompress": True, "shrink": True},
        {"format": "jpeg", "drop_alpha": True, "quality": 100},
        {"format": "raw", "drop_alpha": True},
        {"shrink": True, "baseline": True},
        {"format": "raw", "longer_side": 65_535},
    ],
)
def test_what_goes_together(options: dict[str, Any]) -> None:
    made = PictureOptions(**options)
    assert not made.is_default
    said = made.to_json()
    assert json.loads(json.dumps(said)) == said
    assert set(said) == set(options)
    assert PictureOptions(**said) == made
    assert hash(PictureOptions(**said)) == hash(made)


def test_default_touches_nothing() -> None:
    assert PictureOptions().is_default
    assert PictureOptions().to_json() == {}
    assert PictureOptions(max_pixels=MAX_PIXELS // 2).is_default
    assert PictureOptions(max_pixels=100).to_json() == {"max_pixels": 100}
