"""A forecast as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable

from recordsmith.drawing.html_page import cards, paragraphs, text
from recordsmith.forecasting.forecast_report import ForecastReport, VariantForecast
from recordsmith.forecasting.forecast_text import HEADINGS, cells, remarks
from recordsmith.forecasting.plot import plot_svg, sample_text
from recordsmith.words import size as size_text

_STYLE = """
.scroll { overflow-x: auto; margin: 12px 0; }
.scroll svg { max-width: 100%; height: auto; border-radius: 10px; }
tr.best td { font-weight: 600; }
"""
_LEFT_ALIGNED = frozenset(("stored as", "pack options"))


def forecast_page(report: ForecastReport, title: str) -> tuple[str, str, Iterable[str]]:
    """Return the title of the page, its style and its parts."""
    best = report.recommended
    figures = [
        (f"{report.sample_count:,}", "samples"),
        (size_text(report.original.size_bytes.value), "as it is"),
        (size_text(best.size_bytes.value), f"recommended: {best.label}"),
    ]
    notes = "".join(f"<li>{paragraphs(remark)}</li>" for remark in remarks(report))
    parts = (
        f"<header><h1>{text(title)}</h1></header>",
        f'<p class="quiet">{text(sample_text(report))}</p>{cards(figures)}',
        f'<div class="scroll">{plot_svg(report, title)}</div>',
        _table(report, best),
        f"<ul>{notes}</ul>" if notes else "",
    )
    return title, _STYLE, parts


def _table(report: ForecastReport, best: VariantForecast) -> str:
    def row(values: Iterable[str], tag: str, mark: str = "") -> str:
        filled = "".join(
            f"<{tag}{_alignment(heading)}>{text(value)}</{tag}>"
            for heading, value in zip(HEADINGS, values, strict=True)
        )
        return f"<tr{mark}>{filled}</tr>"

    rows = "".join(
        row(cells(variant), "td", ' class="best"' if variant is best else "")
        for variant in report.variants
    )
    head = row(HEADINGS, "th")
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _alignment(heading: str) -> str:
    return "" if heading in _LEFT_ALIGNED else ' class="number"'
