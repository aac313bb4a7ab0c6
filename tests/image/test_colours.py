"""Converting mask colours to class numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.image import UnknownColours, colours_to_numbers, grey_colours, voc_colours

BYTE = st.integers(0, 255)


def test_the_table_of_pascal_voc() -> None:
    """The first 21 colours as in its development kit, and the ignore label."""
    published = [
        *((0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128), (128, 0, 128)),
        *((0, 128, 128), (128, 128, 128), (64, 0, 0), (192, 0, 0), (64, 128, 0), (192, 128, 0)),
        *((64, 0, 128), (192, 0, 128), (64, 128, 128), (192, 128, 128), (0, 64, 0), (128, 64, 0)),
        *((0, 192, 0), (128, 192, 0), (0, 64, 128)),
    ]
    colours = voc_colours()
    assert list(colours)[:21] == published
    assert colours[224, 224, 192] == 255
    assert sorted(colours.values()) == list(range(256))


@given(
    table=st.dictionaries(st.tuples(BYTE, BYTE, BYTE), st.integers(0, 65535), min_size=1),
    seed=st.integers(0, 2**32),
)
def test_pixels_get_the_class_number_of_their_colour(
    table: dict[tuple[int, int, int], int], seed: int
) -> None:
    choice = np.random.default_rng(seed).integers(len(table), size=(5, 7))
    pixels = np.array(list(table), np.uint8)[choice]
    numbers = colours_to_numbers(pixels, table)
    assert not isinstance(numbers, UnknownColours)
    assert numbers.tolist() == np.array(list(table.values()))[choice].tolist()
    assert numbers.dtype == (np.uint8 if max(table.values()) < 256 else np.uint16)


def test_unknown_colours_are_reported() -> None:
    pixels = np.zeros((4, 5, 3), np.uint8)
    pixels[1, 3] = (1, 2, 3)
    pixels[2, 0] = pixels[3, 4] = (255, 255, 255)
    assert colours_to_numbers(pixels, {(0, 0, 0): 7}) == UnknownColours(3, 2, (1, 2, 3), x=3, y=1)
    assert colours_to_numbers(pixels, grey_colours()) == UnknownColours(1, 1, (1, 2, 3), x=3, y=1)
