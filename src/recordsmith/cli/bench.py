"""`recordsmith bench`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, Json, Paths, one_or_all
from recordsmith.cli.report_text import print_report
from recordsmith.words import percent

if TYPE_CHECKING:
    from recordsmith.measuring import BenchReport


def bench(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("bench", panels={WHICH: "split"})],
    threads: Annotated[
        int | None,
        typer.Option(
            help="Decoding threads; 0 decodes in the main thread. [default: one per processor]",
            min=0,
            metavar="N",
        ),
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle/--no-shuffle", help="Whether to shuffle.")
    ] = True,
    json: Json = False,
) -> None:
    """Loads it with the given options. Ctrl-C prints the results so far.

    Example: `recordsmith bench out --split train --batch-size 32 --size 224`
    """
    report: BenchReport | None = None
    try:
        with _display() as show:

            def keep(now: BenchReport) -> None:
                nonlocal report
                report = now
                show(now)

            report = rs.bench(
                one_or_all(paths), threads=threads, shuffle=shuffle, on_update=keep, **options
            )
    except KeyboardInterrupt:
        if report is not None and report.measured.batch_count:
            _print(report, json)
        raise
    _print(report, json)


def _print(report: BenchReport, json: bool) -> None:
    console.print_result(report, lambda: print_report(report.content()), json=json)


@contextmanager
def _display() -> Iterator[Callable[[BenchReport], None]]:
    """Show the measurement so far, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _report: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        yield lambda report: live.update(Text(_line(report)), refresh=True)


def _line(report: BenchReport) -> str:
    elapsed = min(report.elapsed_seconds, report.total_seconds)
    clock = f"{elapsed:.1f} of {report.total_seconds:g} s"
    if not report.measured.batch_count:
        return clock
    shares = [f"{name} {percent(share)}" for name, share in report.shares.items()]
    return "  ".join([clock, report.rate, *shares])
