"""`recordsmith forecast`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import (
    Html,
    Json,
    Source,
    SourceOptions,
    check_html,
    title_of,
)
from recordsmith.cli.pack import print_detected
from recordsmith.cli.report_text import print_report


def forecast(
    source: Source,
    options: Annotated[dict[str, Any], OptionsOf("forecast")],
    source_options: SourceOptions,
    plot: Annotated[
        str | None, typer.Option(help="Also draw the sizes: a .png file.", metavar="FILE")
    ] = None,
    html: Html = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
    json: Json = False,
) -> None:
    """Stores a random sample of the images as raw pixels, PNG, JPEG and smaller images, and writes
    nothing. The error is estimated from the spread in the sample.

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
        report = rs.forecast(listed, **options, progress=progress)
    if plot is not None:
        save_plot(report, plot, title=title_of([source]), overwrite=overwrite)
    if html is not None:
        rs.save_html(report, html, title=title_of([source]), overwrite=overwrite)
    if json:
        console.print_json(report.to_json() | {"format": detected.reading.format})
    else:
        print_report(report.content())
    if plot is not None:
        console.print_aside(f"plot: {plot}")
    console.print_written_page(html)
