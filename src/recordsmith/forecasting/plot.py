"""Draws a forecast: a bar for the size of each variant, with its interval."""

from __future__ import annotations

import io

from recordsmith.errors import OptionError
from recordsmith.forecasting.forecast_report import ForecastReport
from recordsmith.image.drawing.lettering import drawable, find_font, load_font
from recordsmith.stores import Location, PlaceLike, as_location, write_atomically
from recordsmith.words import printable
from recordsmith.words import size as format_size

_INK, _QUIET, _PAPER, _BAR, _BAR_QUIET = "#1c2430", "#667085", "#ffffff", "#4a7fb5", "#b9cde2"
_WIDTH, _ROW, _TOP, _LEFT, _RIGHT = 1600, 68, 192, 400, 1200


def save_plot(
    report: ForecastReport, out: PlaceLike, *, title: str | None = None, overwrite: bool = False
) -> Location:
    """Draw a forecast into a PNG file.

    Args:
        report: the result of `forecast`.
        out: the file, with the suffix .png.
        title: the heading, such as the folder of the source.
        overwrite: replace an existing file.

    Returns:
        The location of the file.

    Raises:
        OptionError: the suffix is not .png, or the file already exists.
        FileAccessError: the file cannot be written.

    Example:
        save_plot(rs.forecast(rs.ImageFolder("flowers")), "forecast.png")
    """
    path = as_location(out)
    check_plot_path(path, overwrite=overwrite)
    write_atomically(path, _draw(report, title or "Forecast"), overwrite=overwrite)
    return path


def check_plot_path(path: Location, *, overwrite: bool) -> None:
    """Raise OptionError if the suffix is not .png, or as `check_target` does."""
    if path.suffix.lower() != ".png":
        raise OptionError(option="out", value=str(path), expected="a file name ending in .png")
    path.check_target(overwrite=overwrite)


def _draw(report: ForecastReport, title: str) -> bytes:
    from PIL import Image, ImageDraw

    page = Image.new("RGB", (_WIDTH, _TOP + _ROW * len(report.variants) + 40), _PAPER)
    draw = ImageDraw.Draw(page)
    font_name = find_font([title])

    def write(
        x: float, y: float, text: str, size: int, colour: str = _INK, side: str = "l"
    ) -> None:
        font = load_font(font_name, size)
        draw.text((x, y), drawable(printable(text), font), colour, font, f"{side}m")

    write(64, 68, title, 44)
    write(64, 124, report.method, 28, _QUIET)
    scale = (_RIGHT - _LEFT) / (max(variant.size_bytes.high for variant in report.variants) or 1)
    best = report.recommended
    for number, variant in enumerate(report.variants):
        middle = _TOP + _ROW * (number + 0.5)
        value, low, high = (_LEFT + size * scale for size in variant.size_bytes)
        colour = _BAR if variant is best else _BAR_QUIET
        write(_LEFT - 20, middle, variant.label, 26, side="r")
        draw.rectangle((_LEFT, middle - 18, max(_LEFT + 2, value), middle + 18), colour)
        draw.rectangle((low, middle - 2, high, middle + 2), _INK)
        size = format_size(variant.size_bytes.value)
        write(high + 16, middle, size + (", recommended" if variant is best else ""), 26)
    stream = io.BytesIO()
    page.save(stream, "PNG", optimize=True)
    return stream.getvalue()
