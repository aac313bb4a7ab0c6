"""`recordsmith stats`, `schema` and `diff`: what records contain, have in common, and differ in."""

from __future__ import annotations

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

_WHICH = {WHICH: "split"}


def stats(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("stats", panels=_WHICH)],
    html: Html = None,
    overwrite: OverwritePage = False,
    json: Json = False,
) -> None:
    """Reads every record. Covers ranges and frequent values, classes, image sizes, masks and boxes.

    Example: `recordsmith stats out`

    HTML page: `recordsmith stats out --html stats.html`
    """
    check_html(html, overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        report = rs.stats(one_or_all(paths), **options, progress=progress)
    if html is not None:
        rs.save_html(report, html, title=title_of(paths), overwrite=overwrite)
    console.print_result(report, lambda: print_report(report.content()), json=json)
    console.print_written_page(html)


def schema(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("schema", panels=_WHICH)],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="The file to write. [default: standard output]", metavar="FILE"
        ),
    ] = None,
    overwrite: OverwritePage = False,
) -> None:
    """Edit the rules as needed. `recordsmith verify PATH --schema FILE` checks records against
    them.

    Example: `recordsmith schema out -o schema.json`
    """
    if out is not None:
        from recordsmith.stores import as_location

        as_location(out).check_target(overwrite=overwrite)
    with console.progress_bar("reading", of_bytes=True) as progress:
        rules = rs.schema(one_or_all(paths), **options, progress=progress)
    if out is None:
        console.print_json(rules.to_json())
        return
    rules.save(out, overwrite=overwrite)
    count = sum(map(len, rules.sections.values()))
    print(f"{console.printable(out)}: rules for {console.count(count, 'feature')}")


def diff(
    a: str,
    b: str,
    options: Annotated[dict[str, Any], OptionsOf("diff", panels=_WHICH)],
    *,
    json: Json = False,
) -> None:
    """Exits with 1 if they differ.

    Example: `recordsmith diff out old`

    By a feature: `recordsmith diff a.tfrecord b.tfrecord --by id`

    Args:
        a: a TFRecord file, a folder, or a quoted pattern such as 'data/*.tfrecord'.
        b: the dataset to compare it with.
    """
    with console.progress_bar("comparing", of_bytes=True) as progress:
        report = rs.diff(a, b, **options, progress=progress)
    console.print_result(report, lambda: print_report(report.content()), json=json)
    if not report.is_equal:
        raise typer.Exit(1)
