"""The colours of reports can be read, by day and by night."""

from __future__ import annotations

import re

import pytest

from recordsmith.viewing.drawing.report_page import STYLE

_LIGHT, _DARK = (
    dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part))
    for part in STYLE.split("* {")[0].split("@media")
)


def _luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [_LIGHT, _DARK], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        *((ink, paper) for ink in ("ink", "quiet") for paper in ("paper", "card")),
        *((ink, f"{ink}-soft") for ink in ("good", "bad", "note")),
        ("bad", "card"),
        ("note", "paper"),
    ],
)
def test_text_stands_out(colours: dict[str, str], ink: str, paper: str) -> None:
    dim, bright = sorted(_luminance(colours[name]) for name in (ink, paper))
    assert (bright + 0.05) / (dim + 0.05) >= 4.5  # what WCAG 2 asks of text


def test_both_have_all_colours() -> None:
    assert _LIGHT.keys() == _DARK.keys()
    assert set(re.findall(r"var\(--([a-z-]+)\)", STYLE)) <= _LIGHT.keys()
