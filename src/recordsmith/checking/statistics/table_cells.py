"""What the tables of statistics have in common: numbers, and rows of distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recordsmith.checking.shard_summaries import span
from recordsmith.checking.statistics.number_stats import NumberStats
from recordsmith.support.reports import Cell, Histogram, ReportTable

CLASS_ROWS = 30
"""How many rows of a table of classes a terminal shows."""

_LARGE = 10**10
_NAME_WIDTH = 48


def spread(name: str, numbers: NumberStats, show: Callable[[float], str]) -> tuple[Cell, ...]:
    """Return the row of a distribution, for `spread_table`."""
    sample = numbers.sample
    if sample is None or numbers.min is None or numbers.max is None:
        return name, "", "", "", ""
    shown = map(show, (numbers.min, sample.median, numbers.max))
    return name, *shown, Histogram(sample.edges, sample.histogram)


def spread_table(title: str, rows: Sequence[Sequence[Cell]], note: str) -> ReportTable:
    heads = ("", "min", "median", "max", "from min to max")
    return ReportTable(title, heads, rows, heads[1:4], heads[4:], (), note)


def span_of(numbers: NumberStats) -> str:
    return span(int(numbers.min or 0), int(numbers.max or 0))


def format_number(value: float | None) -> str:
    """Format a number with few digits; whole ones with all, unless they are very large."""
    if value is None:
        return ""
    if isinstance(value, int) and abs(value) < _LARGE:
        return f"{value:,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < _LARGE else f"{value:.4g}"


def short(text: str) -> str:
    """Shorten a name or value to the width of a column."""
    return text if len(text) <= _NAME_WIDTH else text[: _NAME_WIDTH - 1] + "…"
