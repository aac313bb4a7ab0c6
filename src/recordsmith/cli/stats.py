"""`recordsmith stats`."""

from __future__ import annotations

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import (
    EngineName,
    Html,
    Json,
    OverwritePage,
    Paths,
    Split,
    Threads,
    check_html,
    one_or_all,
    title_of,
)
from recordsmith.cli.report_text import print_report
from recordsmith.engines import parse_engine


def stats(
    paths: Paths,
    split: Split = None,
    html: Html = None,
    overwrite: OverwritePage = False,
    engine: EngineName = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Print statistics of each feature, and likely problems.

    Reads every record. Covers ranges and frequent values, classes, image sizes, masks and boxes.

    Example: `recordsmith stats out`

    HTML page: `recordsmith stats out --html stats.html`
    """
    check_html(html, overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        report = rs.stats(
            one_or_all(paths),
            split,
            engine=parse_engine(engine),
            threads=threads,
            progress=progress,
        )
    if html is not None:
        rs.save_html(report, html, title=title_of(paths), overwrite=overwrite)
    if json:
        console.print_json(report.to_json())
        console.print_written_page(html)
        return
    print_report(report.content())
    console.print_written_page(html)
