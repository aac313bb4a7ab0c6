"""`recordsmith forecast`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.detected import print_detected
from recordsmith.cli.options import (
    Html,
    Json,
    Threads,
    check_html,
    parse_keys,
    parse_numbers,
    title_of,
)
from recordsmith.cli.report_text import print_report
from recordsmith.cli.source_options import takes_source_options


@takes_source_options
def forecast(
    source: Annotated[
        str,
        typer.Argument(
            help="Class folders, images and masks, VOC, COCO or YOLO annotations, a table, tar "
            "files, or TFRecord shards.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    sample: Annotated[
        int,
        typer.Option(help="Number of samples to store.", min=10, metavar="N"),
    ] = 200,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.", metavar="N")] = 0,
    qualities: Annotated[
        str, typer.Option(help="Qualities of JPEG.", metavar="N,…")
    ] = "100,95,90,80",
    shorter_sides: Annotated[
        str,
        typer.Option(help="Lengths of the shorter side, in pixels.", metavar="N,…"),
    ] = "512,256",
    plot: Annotated[
        str | None, typer.Option(help="Also draw the sizes: a .png file.", metavar="FILE")
    ] = None,
    html: Html = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
    source_options: Any = None,
    keys: Annotated[
        str | None,
        typer.Option(help="Names of features, as for pack.", metavar="NAMES"),
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Forecast how large a dataset becomes.

    Stores a random sample of the images as raw pixels, PNG, JPEG and smaller images, and writes
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
        report = rs.forecast(
            listed,
            sample_count=sample,
            seed=seed,
            qualities=parse_numbers(qualities, "qualities") if qualities else (),
            shorter_sides=parse_numbers(shorter_sides, "shorter_sides") if shorter_sides else (),
            keys=None if keys is None else parse_keys(keys, "keys"),
            threads=threads,
            progress=progress,
        )
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
