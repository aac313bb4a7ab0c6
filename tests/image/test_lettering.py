"""Texts on images are readable, without empty boxes."""

from __future__ import annotations

import numpy as np
import pytest

from recordsmith.image import Tile, contact_sheet
from recordsmith.image.drawing import lettering
from recordsmith.image.drawing.lettering import drawable, find_font, load_font


@pytest.fixture
def _no_system_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lettering, "_SYSTEM_FONTS", ("No such font.ttf",))
    lettering._name_for.cache_clear()
    yield
    lettering._name_for.cache_clear()


@pytest.mark.usefixtures("_no_system_fonts")
@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("plain, 100 %", "plain, 100 %"),
        ("Grüne Wiese", "Grune Wiese"),
        ("Gru\u0308ne", "Grune"),
        ("Straße, Łąka, œuf…", "Strasse, Laka, oeuf…"),
        ("中文 ж", r"\u4e2d\u6587 \u0436"),
        ("قط 🐈", r"\u0642\u0637 \U0001f408"),
        ("x²\n\x1b[m\udcff", r"x2\n\x1b[m\udcff"),
    ],
)
def test_letters_that_the_font_lacks(text: str, drawn: str) -> None:
    name = find_font([text])
    assert (name, drawable(text, load_font(name, 17))) == ("", drawn)


@pytest.mark.usefixtures("_no_system_fonts")
def test_a_sheet_has_no_empty_boxes() -> None:
    """All texts of a sheet are drawn by this function."""
    image = np.zeros((20, 30, 3), np.uint8)

    def page(text: str) -> bytes:
        colour = (1, 2, 3)
        tiles = [Tile(image, text, text, colour)]
        return contact_sheet(tiles, title=text, subtitle=text, legend=[(colour, text)]).tobytes()

    assert page("Grüne Straße") == page("Grune Strasse")
