"""`recordsmith forecast`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import (
    SHARDS,
    Html,
    Json,
    Source,
    SourceOptions,
    check_html,
    title_of,
)
from recordsmith.cli.pack import print_detected

if TYPE_CHECKING:
    from recordsmith.forecasting import ForecastReport

_SHARD_OPTIONS = "shards shard_size_bytes keys"


def forecast(
    source: Source,
    options: Annotated[dict[str, Any], OptionsOf("forecast", panels={SHARDS: _SHARD_OPTIONS})],
    source_options: SourceOptions,
    speed: Annotated[
        bool, typer.Option("--speed/--no-speed", help="Measure speeds.", show_default=False)
    ] = True,
    plot: Annotated[
        str | None, typer.Option(help="Also draw the forecast: .png or .svg.", metavar="FILE")
    ] = None,
    html: Html = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
    json: Json = False,
) -> None:
    """Stores a random sample of the images as raw pixels, PNG, JPEG and smaller images, and writes
    nothing. The sizes of all samples and many headers make the forecast precise.

    Example: `recordsmith forecast flowers --qualities 95,80 --plot forecast.png`
    """
    from recordsmith.forecasting.plot import check_plot_path, save_plot
    from recordsmith.stores import as_location

    if html is not None:
        check_html(html, overwrite=overwrite)
    if plot is not None:
        check_plot_path(as_location(plot), overwrite=overwrite)
    detected = rs.detect(source, **source_options)
    listed = print_detected(detected, json=json)
    with console.progress_bar("forecasting", speed=False) as progress:
        report = rs.forecast(listed, measure_speed=speed, **options, progress=progress)
    if plot is not None:
        save_plot(report, plot, title=title_of([source]), overwrite=overwrite)
    if html is not None:
        rs.save_html(report, html, title=title_of([source]), overwrite=overwrite)
    if json:
        console.print_json(report.to_json() | {"format": detected.reading.format})
    else:
        print_forecast(report, source)
    if plot is not None:
        console.print_aside(f"plot: {plot}")
    console.print_written_page(html)


def print_forecast(report: ForecastReport, source: str) -> None:
    """Print the table of the variants, what explains it, and the command to pack one of them."""
    from recordsmith.forecasting.forecast_text import (
        HEADINGS,
        OPTIONAL,
        cells,
        pack_options,
        remarks,
    )
    from recordsmith.forecasting.plot import sample_text

    samples = console.count(report.sample_count, "sample")
    title = f"{samples}, {console.size(report.source_bytes)}"
    console.print_line(f"{title}: {sample_text(report)}", title=title)
    print()
    rows = [cells(variant) for variant in report.variants]
    filled = [
        place for place in range(len(HEADINGS)) if place == 0 or any(row[place] for row in rows)
    ]
    console.print_table(
        [HEADINGS[place] for place in filled],
        [[row[place] for place in filled] for row in rows],
        [HEADINGS[place] for place in filled if 0 < place < len(HEADINGS) - 1],
        [heading for heading in OPTIONAL if heading in {HEADINGS[place] for place in filled}],
    )
    print()
    for remark in remarks(report):
        console.print_line(f"- {remark}")
    console.print_list(
        f"unreadable, {report.unreadable_count:,} of the sample",
        report.unreadable,
        number=report.unreadable_count,
    )
    console.print_list("notices", report.notices)
    if report.image_count:
        best = report.recommended
        words = f"recordsmith pack {shlex.quote(source)} OUT {pack_options(best)}".rstrip()
        what = f"smallest without visible loss at full size: {best.label}"
        if best is report.original:
            what = "no variant is much smaller without visible loss; keep the images as they are"
        console.print_hint(f"{what}: `{words}`")
