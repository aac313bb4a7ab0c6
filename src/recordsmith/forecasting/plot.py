"""Draw a forecast: the size of each variant, and the fidelity of JPEG against its size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from recordsmith.errors import OptionError
from recordsmith.forecasting.canvas import Box, Dot, Label, Polyline, Shape, to_png, to_svg
from recordsmith.forecasting.forecast_report import ForecastReport, VariantForecast
from recordsmith.stores import Location, PlaceLike, as_location, write_atomically
from recordsmith.words import count as counted
from recordsmith.words import size as size_text

_INK, _QUIET, _GRID, _PAPER = "#1c2430", "#667085", "#e3e6eb", "#ffffff"
_BAR, _BAR_QUIET = "#4a7fb5", "#b9cde2"
_SERIES = ("#157049", "#c2571a")
_WIDTH = 1200
_ROW, _TOP, _FOOT = 34, 108, 56
_LEFT, _BARS_RIGHT, _CHART_LEFT = 200, 640, 720
_CHART_WIDTH, _CHART_HEIGHT = 440, 190
_NARROWEST_INTERVAL = 3
_LETTER = 6.2  # about the width of a letter of the legend


class _Measure(NamedTuple):
    """One measure of fidelity: a chart."""

    title: str
    mean: Callable[[VariantForecast], float | None]
    lowest: Callable[[VariantForecast], float | None]
    step: float
    digits: int


_MEASURES = (
    _Measure("PSNR in dB (higher is better)", lambda v: v.psnr, lambda v: v.lowest_psnr, 5, 0),
    _Measure("SSIM (1 is identical)", lambda v: v.ssim, lambda v: v.lowest_ssim, 0.05, 2),
)


def save_plot(
    report: ForecastReport, out: PlaceLike, *, title: str | None = None, overwrite: bool = False
) -> Location:
    """Draw a forecast into a file.

    Args:
        report: the result of `forecast`.
        out: the file, with the suffix .png or .svg.
        title: the heading, such as the folder of the source.
        overwrite: replace an existing file.

    Returns:
        The location of the file.

    Raises:
        OptionError: the suffix is not .png or .svg, or the file already exists.
        FileAccessError: the file cannot be written.

    Example:
        save_plot(rs.forecast(rs.ImageFolder("flowers")), "forecast.png")
    """
    path = as_location(out)
    check_plot_path(path, overwrite=overwrite)
    shapes, height = _figure(report, title or "Forecast")
    if path.suffix.lower() == ".svg":
        data = to_svg(shapes, _WIDTH, height, title or "Forecast").encode()
    else:
        data = to_png(shapes, _WIDTH, height)
    write_atomically(path, data, overwrite=overwrite)
    return path


def check_plot_path(path: Location, *, overwrite: bool) -> None:
    """Raise OptionError if the suffix is not .png or .svg, or as `check_target` does."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise OptionError(
            option="out", value=str(path), expected="a file name ending in .png or .svg"
        )
    path.check_target(overwrite=overwrite)


def plot_svg(report: ForecastReport, title: str) -> str:
    """Return the plot as an SVG element."""
    shapes, height = _figure(report, title)
    return to_svg(shapes, _WIDTH, height, title)


def sample_text(report: ForecastReport) -> str:
    """Describe what was stored and what was extrapolated."""
    if report.is_exact:
        return f"all {counted(report.sample_count, 'sample')} stored: sizes are exact"
    certain = ""
    if report.certain_count:
        certain = f", {report.certain_count:,} of them because they are the largest"
    headers = ""
    if report.header_count > report.sampled_count:
        headers = f"; headers of {report.header_count:,} read"
    return (
        f"{report.sampled_count:,} of {report.sample_count:,} samples stored (seed "
        f"{report.seed}{certain}){headers}; 95 % intervals"
    )


def _figure(report: ForecastReport, title: str) -> tuple[list[Shape], int]:
    """Return the shapes of the figure, and its height."""
    series = _jpeg_series(report)
    lossy = [variant for those in series.values() for variant in those]
    charts = [measure for measure in _MEASURES if any(map(measure.mean, lossy))]
    bars_height = _ROW * len(report.variants)
    charts_height = len(charts) * (_CHART_HEIGHT + 72) - 16
    height = _TOP + max(bars_height, charts_height) + _FOOT
    shapes: list[Shape] = [
        Box(0, 0, _WIDTH, height, _PAPER),
        Label((32, 34), title, _INK, 22, is_bold=True),
        Label((32, 62), sample_text(report), _QUIET, 14),
        *_bars(report),
        *(_legend(list(series)) if charts else ()),
    ]
    for number, measure in enumerate(charts):
        top = _TOP + 12 + number * (_CHART_HEIGHT + 72)
        shapes += _chart(report, series, measure, top)
    return shapes, height


def _jpeg_series(report: ForecastReport) -> dict[str, list[VariantForecast]]:
    """The JPEG variants at full size, smallest first, by what they encode."""
    found: dict[str, list[VariantForecast]] = {}
    for variant in report.variants:
        if variant.lossy_count and "shorter_side" not in (variant.options or {}):
            is_all = "recompress" in (variant.options or {})
            found.setdefault("all images" if is_all else "JPEGs kept", []).append(variant)
    return {
        name: sorted(those, key=lambda variant: variant.size_bytes.value)
        for name, those in found.items()
    }


def _bars(report: ForecastReport) -> Iterator[Shape]:
    yield Label((32, _TOP - 12), "Size of the dataset", _INK, 15, is_bold=True)
    most = max(variant.size_bytes.high for variant in report.variants) or 1
    scale = (_BARS_RIGHT - _LEFT - 90) / most
    best = report.recommended.name
    for number, variant in enumerate(report.variants):
        middle = _TOP + 12 + _ROW * (number + 0.5)
        total = variant.size_bytes
        is_best = variant.name == best
        yield Label((_LEFT - 10, middle), variant.label, _INK, 13, "end", is_bold=is_best)
        colour = _BAR if is_best else _BAR_QUIET
        yield Box(_LEFT, middle - 9, max(1.0, total.value * scale), 18, colour)
        end = _LEFT + total.high * scale
        if end - _LEFT - total.low * scale > _NARROWEST_INTERVAL:
            low = _LEFT + total.low * scale
            yield Polyline(((low, middle), (end, middle)), _INK, 1.2)
            for at in (low, end):
                yield Polyline(((at, middle - 4), (at, middle + 4)), _INK, 1.2)
        shown = size_text(total.value) + (", recommended" if is_best else "")
        yield Label((end + 8, middle), shown, _INK, 13, is_bold=is_best)


def _chart(
    report: ForecastReport,
    series: dict[str, list[VariantForecast]],
    measure: _Measure,
    top: float,
) -> Iterator[Shape]:
    """Draw the means of a measure with a line, and the lowest values of the sample hollow."""
    everything = [variant for those in series.values() for variant in those]
    values = [
        value
        for variant in everything
        for value in (measure.mean(variant), measure.lowest(variant))
        if value is not None
    ]
    low = math.floor(min(values) / measure.step) * measure.step
    high = math.ceil(max(values) / measure.step) * measure.step
    high = high if high > low else low + measure.step
    most = 1.08 * max(
        report.original.size_bytes.value, *(variant.size_bytes.value for variant in everything)
    )
    bottom = top + _CHART_HEIGHT
    right = _CHART_LEFT + _CHART_WIDTH

    def x(size_bytes: float) -> float:
        return _CHART_LEFT + _CHART_WIDTH * size_bytes / most

    def y(value: float) -> float:
        return bottom - _CHART_HEIGHT * (value - low) / (high - low)

    yield Label((_CHART_LEFT, top - 24), measure.title, _INK, 15, is_bold=True)
    steps = round((high - low) / measure.step)
    every = max(1, math.ceil(steps / 6))
    for number in range(0, steps + 1, every):
        value = low + number * measure.step
        yield Polyline(((_CHART_LEFT, y(value)), (right, y(value))), _GRID)
        yield Label((_CHART_LEFT - 8, y(value)), f"{value:.{measure.digits}f}", _QUIET, 12, "end")
    for size_bytes in _ticks(most):
        yield Polyline(((x(size_bytes), bottom), (x(size_bytes), bottom + 4)), _QUIET)
        yield Label((x(size_bytes), bottom + 15), _tick_text(size_bytes), _QUIET, 12, "middle")
    original = x(report.original.size_bytes.value)
    yield Polyline(((original, top), (original, bottom)), _QUIET, 1, is_dashed=True)
    yield Label((original - 5, bottom - 10), "as it is", _QUIET, 11, "end")
    for number, (colour, those) in enumerate(zip(_SERIES, series.values(), strict=False)):
        label_distance = 14 if number == 0 and len(series) > 1 else -13
        for figure, fill in ((measure.lowest, _PAPER), (measure.mean, colour)):
            places = [
                (x(variant.size_bytes.value), y(found), variant)
                for variant in those
                if (found := figure(variant)) is not None
            ]
            is_mean = fill == colour
            if is_mean:
                yield Polyline([place[:2] for place in places], colour, 2)
            for left, height, variant in places:
                yield Dot((left, height), 4, fill, colour)
                if is_mean:
                    quality = str((variant.options or {}).get("quality", 95))
                    yield Label((left, height + label_distance), quality, colour, 12, "middle")
    yield Polyline(((_CHART_LEFT, bottom), (right, bottom)), _QUIET)


def _legend(names: Sequence[str]) -> Iterator[Shape]:
    entries = [
        *((f"JPEG ({name})", colour, colour) for name, colour in zip(names, _SERIES, strict=False)),
        ("lowest of the sample", _PAPER, _QUIET),
    ]
    place, height = float(_CHART_LEFT), 62.0
    for name, fill, outline in entries:
        yield Dot((place + 4, height), 4, fill, outline)
        yield Label((place + 14, height), name, _QUIET, 12)
        place += 14 + _LETTER * len(name) + 18


def _ticks(most: float) -> Sequence[float]:
    """About five round sizes from 0."""
    rough = most / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * number for number in range(int(most / step) + 1)]


def _tick_text(size_bytes: float) -> str:
    return size_text(size_bytes).replace(".0 ", " ").replace("0 bytes", "0")
