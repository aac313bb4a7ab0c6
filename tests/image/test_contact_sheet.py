"""The contact sheet: position and size of images and texts."""

from __future__ import annotations

import numpy as np
import pytest

from recordsmith.image import Tile, contact_sheet

COLOURS = [(255, 0, 0), (0, 200, 0), (0, 0, 255), (255, 0, 255), (0, 220, 220), (120, 60, 0)]


def _places(sheet: np.ndarray, colour: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """(top, left, height, width) of the pixels of a colour."""
    rows, columns = np.nonzero((np.abs(sheet.astype(int) - colour) < 8).all(-1))
    assert len(rows), colour
    return (
        int(rows.min()),
        int(columns.min()),
        int(np.ptp(rows)) + 1,
        int(np.ptp(columns)) + 1,
    )


@pytest.mark.parametrize("columns", [1, 2, 4, 6, 9])
def test_images_are_arranged_in_rows(columns: int) -> None:
    images = [(np.full((50, 50, 3), colour, np.uint8), "x") for colour in COLOURS]
    sheet = np.array(contact_sheet(images, title="t", columns=columns, tile=50))
    places = [_places(sheet, colour) for colour in COLOURS]
    assert {place[2:] for place in places} == {(50, 50)}  # whole
    grid = [(place[0], place[1]) for place in places]
    rows = sorted({top for top, _ in grid})
    lefts = sorted({left for _, left in grid})
    assert grid == [
        (rows[number // columns], lefts[number % columns]) for number in range(len(COLOURS))
    ]


def test_rows_are_as_high_as_the_highest_image() -> None:
    pixels = [np.full((height, 100, 3), 9, np.uint8) for height in (10, 30, 100)]
    heights = [
        contact_sheet([(image, "") for image in pixels[:count]], title="", tile=100).height
        for count in (1, 2, 3)
    ]
    assert np.diff(heights).tolist() == [20, 70]


def test_details_colours_and_a_legend_are_drawn() -> None:
    pixels = np.zeros((100, 100, 3), np.uint8)
    red, green = (200, 10, 20), (20, 180, 30)
    sheet = contact_sheet(
        [Tile(pixels, "caption", "detail", red)] * 3,
        title="",
        legend=[(green, "one"), (red, "name " * 99)] * 9,
        columns=3,
        tile=100,
    )
    shown = np.array(sheet)
    assert (shown == red).all(axis=2).sum() > 3 * 16
    _, left, _, width = _places(shown, green)
    assert 0 < left < left + width < sheet.width
    plain = contact_sheet([Tile(pixels, "caption")] * 3, title="", columns=3, tile=100)
    assert sheet.height > plain.height


def test_captions_in_any_letters() -> None:
    pixels = np.zeros((10, 10, 3), np.uint8)
    sheets = [
        np.asarray(contact_sheet([(pixels, caption)], title=title))
        for caption, title in (("müsli 日本 \udcff", "Ω"), ("", "Ω"), ("müsli 日本 \udcff", ""))
    ]
    assert not any(np.array_equal(sheets[0], other) for other in sheets[1:])
