"""`recordsmith lint`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.detected import print_detected
from recordsmith.cli.options import (
    Html,
    Json,
    OverwritePage,
    Threads,
    check_html,
    title_of,
)
from recordsmith.cli.source_options import takes_source_options

if TYPE_CHECKING:
    from recordsmith.linting import LintFinding, LintReport

_EXAMPLES = 5


@takes_source_options
def lint(
    source: Annotated[
        str,
        typer.Argument(
            help="What `recordsmith pack` accepts: a folder, annotations, a table, tar files.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    source_options: dict[str, Any],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Check only names, classes, orphans and the first bytes of some images.",
        ),
    ] = False,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="Leave out this check; may be repeated.", metavar="CHECK"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Run only this check; may be repeated.", metavar="CHECK"),
    ] = None,
    html: Html = None,
    overwrite: OverwritePage = False,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Check images, annotations and classes before packing them.

    Finds damaged images, invalid boxes and masks, misspelt classes, duplicates and images that are
    in two splits. Exits with 1 if there are errors or warnings, with 0 if there are only notes.

    Example: `recordsmith lint flowers`

    HTML page: `recordsmith lint flowers --html lint.html`
    """
    check_html(html, overwrite=overwrite)
    detected = rs.detect(source, **source_options)
    listed = print_detected(detected, json=json)
    with console.progress_bar("checking") as progress:
        report = rs.lint(
            listed,
            deep=not quick,
            ignore=ignore or (),
            only=only or (),
            threads=threads,
            progress=progress,
        )
    if html is not None:
        rs.save_html(report, html, title=title_of([source]), overwrite=overwrite)
    if json:
        console.print_json(report.to_json() | {"format": detected.reading.format})
    else:
        _print_report(report)
    console.print_written_page(html)
    if not report.is_clean:
        if not json and html is None:
            typed = shlex.quote(source)
            console.print_hint(
                f"next: preview them with `recordsmith lint {typed} --html lint.html`"
            )
        raise typer.Exit(1)


def _print_report(report: LintReport) -> None:
    counts = [
        console.count(count, noun)
        for count, noun in (
            (report.error_count, "error"),
            (report.warning_count, "warning"),
            (report.note_count, "note"),
        )
        if count
    ]
    read = console.count(report.sample_count, "sample")
    read += f", {console.count(report.image_count, 'image')} decoded" if report.is_deep else ""
    verdict = "clean" if report.is_clean else "not clean"
    console.print_line(f"{verdict}: {', '.join(counts) or 'no findings'}; {read}", title=verdict)
    for found in report.findings:
        print()
        _print_finding(found)


def _print_finding(found: LintFinding) -> None:
    """Print a finding: what it means, its first examples, and what to do."""
    title = f"{found.severity}: {found.check} ({found.count:,})"
    console.print_line(f"{title}: {found.meaning}", title=title)
    for example in found.examples[:_EXAMPLES]:
        console.print_line(example.describe(), "  ")
    if found.count > _EXAMPLES:
        left_out = found.count - min(_EXAMPLES, len(found.examples))
        print(f"  {console.and_more(left_out, len(found.examples), _EXAMPLES, found.count)}")
    console.print_line(found.cure(), "  ")
