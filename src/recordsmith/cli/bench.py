"""`recordsmith bench`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all
from recordsmith.cli.report_text import print_report
from recordsmith.errors import OptionError
from recordsmith.words import percent

if TYPE_CHECKING:
    from recordsmith.measuring import BenchReport

_SIZE = re.compile(r"(\d{1,6})(?:x(\d{1,6}))?", re.ASCII)


def bench(
    paths: Paths,
    split: Split = None,
    batch_size: Annotated[int, typer.Option(help="Examples in a batch.", min=1, metavar="N")] = 32,
    size: Annotated[
        str,
        typer.Option(
            help="Image size in pixels: 224, or height x width such as 192x256.",
            metavar="SIZE",
        ),
    ] = "224",
    fit: Annotated[
        str,
        typer.Option(
            help="resize, crop-or-pad, center-crop, contain, random-crop or pad.",
            metavar="FIT",
        ),
    ] = "resize",
    key: Annotated[
        str | None,
        typer.Option(help="The feature that holds the images. [default: detected]", metavar="KEY"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Decoding threads; 0 decodes in the main thread. [default: one per processor]",
            min=0,
            metavar="N",
        ),
    ] = None,
    shuffle: Annotated[
        bool | None,
        typer.Option(
            "--shuffle/--no-shuffle",
            help="Whether to shuffle. [default: shuffle; compressed shards with a buffer]",
        ),
    ] = None,
    skip_errors: Annotated[
        int, typer.Option(help="Skip up to N damaged records.", min=0, metavar="N")
    ] = 0,
    seconds: Annotated[
        float, typer.Option(help="About how long to measure, in seconds.", metavar="SECONDS")
    ] = 10.0,
    json: Json = False,
) -> None:
    """Measure how fast a dataset loads, and what limits it.

    Loads it with the given options. Ctrl-C prints the results so far.

    Example: `recordsmith bench out --split train --batch-size 32 --size 224`
    """
    options: dict[str, Any] = {"size": _parse_size(size), "fit": fit}
    options["shuffle"] = None if shuffle else shuffle  # None uses a buffer for compressed shards
    report: BenchReport | None = None
    try:
        with _display() as show:

            def keep(now: BenchReport) -> None:
                nonlocal report
                report = now
                show(now)

            report = rs.bench(
                one_or_all(paths),
                split,
                batch_size=batch_size,
                key=key,
                threads=threads,
                skip_errors=skip_errors,
                seconds=seconds,
                on_update=keep,
                **options,
            )
    except KeyboardInterrupt:
        if report is not None and report.measured.batch_count:
            _print(report, json)
        raise
    _print(report, json)


def _print(report: BenchReport, json: bool) -> None:
    if json:
        console.print_json(report.to_json())
    else:
        print_report(report.content())


def _parse_size(text: str) -> int | tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise OptionError(
            option="size", value=text, expected="a number, or height and width such as 192x256"
        )
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


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
