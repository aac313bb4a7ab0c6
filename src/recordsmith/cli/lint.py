"""`recordsmith lint` and `forecast`: what a source is like before it is packed."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import (
    Html,
    Json,
    OverwritePage,
    Source,
    SourceOptions,
    check_html,
    title_of,
)
from recordsmith.cli.pack import print_detected
from recordsmith.cli.report_text import print_report


def lint(
    source: Source,
    options: Annotated[dict[str, Any], OptionsOf("lint")],
    source_options: SourceOptions,
    *,
    quick: bool = False,
    html: Html = None,
    overwrite: OverwritePage = False,
    json: Json = False,
) -> None:
    """Finds damaged images, invalid boxes and masks, misspelt classes, duplicates and images that
    are in two splits. Exits with 1 if there are errors or warnings, with 0 if there are only notes.

    Example: `recordsmith lint flowers`

    HTML page: `recordsmith lint flowers --html lint.html`

    Args:
        quick: check only names, classes and orphans, without opening images.
    """
    check_html(html, overwrite=overwrite)
    detected = rs.detect(source, **source_options)
    listed = print_detected(detected, json=json)
    with console.progress_bar("checking") as progress:
        report = rs.lint(listed, deep=not quick, **options, progress=progress)
    if html is not None:
        rs.save_html(report, html, title=title_of([source]), overwrite=overwrite)
    if json:
        console.print_json(report.to_json() | {"format": detected.reading.format})
    else:
        print_report(report.content())
    console.print_written_page(html)
    if not report.is_clean:
        if not json and html is None:
            typed = shlex.quote(source)
            console.print_hint(
                f"next: preview them with `recordsmith lint {typed} --html lint.html`"
            )
        raise typer.Exit(1)


def forecast(
    source: Source,
    options: Annotated[dict[str, Any], OptionsOf("forecast")],
    source_options: SourceOptions,
    *,
    plot: str | None = None,
    html: Html = None,
    overwrite: bool = False,
    json: Json = False,
) -> None:
    """Stores a random sample of the images as raw pixels, PNG, JPEG and smaller images, and writes
    nothing. The error is estimated from the spread in the sample.

    Example: `recordsmith forecast flowers --qualities 95,80 --plot forecast.png`

    Args:
        plot: also draw the sizes: a .png file.
        overwrite: replace files that exist.
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
