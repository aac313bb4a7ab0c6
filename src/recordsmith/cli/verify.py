"""`recordsmith verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import (
    WHICH,
    Html,
    Json,
    OverwritePage,
    Paths,
    check_html,
    one_or_all,
    title_of,
)
from recordsmith.cli.report_text import print_report


def verify(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("verify", panels={WHICH: "split"})],
    html: Html = None,
    overwrite: OverwritePage = False,
    json: Json = False,
) -> None:
    """Prints the defects and exits with 1 if there are any.

    Example: `recordsmith verify out --deep`

    Own rules: `recordsmith verify new --schema schema.json`
    """
    check_html(html, overwrite=overwrite)
    with console.progress_bar("verifying", of_bytes=True) as progress:
        report = rs.verify(one_or_all(paths), **options, progress=progress)
    if html is not None:
        rs.save_html(report, html, title=title_of(paths), overwrite=overwrite)
    content = report.content()
    if "schema" in options and not report.unchecked:
        checked = content.summary.removesuffix(".")
        content = replace(content, summary=f"{checked}, and the rules of {options['schema']}")
    console.print_result(report, lambda: print_report(content), json=json)
    console.print_written_page(html)
    if not report.is_good:
        raise typer.Exit(1)
