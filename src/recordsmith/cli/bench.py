"""`recordsmith bench`."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import WHICH, Json, Paths, one_or_all
from recordsmith.cli.wording import can_be_shown, how_to_show
from recordsmith.words import percent

if TYPE_CHECKING:
    from recordsmith.measuring import BenchReport, Trial

_BAR_WIDTH = 30
_WIDTH = 100  # the longest line
_OPTIONAL = ("measured", "MB/s", "rounds", "kB", "decoded", "CPU µs")
"""Columns left out of narrow terminals, in this order."""


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
        bool | None,
        typer.Option(
            "--shuffle/--no-shuffle",
            help="Whether to shuffle. [default: shuffle; compressed shards with a buffer]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Loads it with the given options; then briefly tries other numbers of threads, other orders,
    tiles and smaller images. Ctrl-C prints the results so far.

    Example: `recordsmith bench out --split train --batch-size 32 --size 224`
    """
    order = None if shuffle else shuffle  # None uses a buffer for compressed shards
    report: BenchReport | None = None
    try:
        with _display() as show:

            def keep(now: BenchReport) -> None:
                nonlocal report
                report = now
                show(now)

            report = rs.bench(
                one_or_all(paths), threads=threads, shuffle=order, on_update=keep, **options
            )
    except KeyboardInterrupt:
        if report is not None and report.trials:
            _print(report, json, paths)
        raise
    _print(report, json, paths)


def _print(report: BenchReport, json: bool, paths: list[str]) -> None:
    if json:
        console.print_json(report.to_json())
    else:
        print_bench_report(report, paths)


def print_bench_report(report: BenchReport, paths: Sequence[str] = ()) -> None:
    """Print the measurements as a table, and advice.

    Args:
        report: of a measurement.
        paths: the measured paths, as typed.
    """
    typed = shlex.quote(paths[0]) if len(paths) == 1 else "PATH"
    requested = report.requested
    rate = f"{requested.records_per_second:,.0f} {_unit(report)}"
    width = min(_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDTH
    loaded = f"{rate}, {console.size(requested.bytes_per_second)}/s: {_configuration(report)}"
    console.print_line(loaded, title=rate)
    console.print_line(_time_shares(requested))
    print()
    headings, *rows = _table(report, width)
    console.print_table(headings, rows, " ".join(headings[3:]))
    print()
    for sentence in report.advice:
        advice = sentence.replace(" PATH OUT", f" {typed} OUT")
        console.print_line(f"- {advice}")
    skipped = report.skipped
    console.print_list(f"skipped, {len(skipped):,}", list(map(str, skipped)))
    for command in how_to_show(
        (str(error.path), error.record or 0) for error in skipped if can_be_shown(error)
    ):
        console.print_line(command, "  ")


def _table(report: BenchReport, width: int) -> list[tuple[str, ...]]:
    """The headings and one row per trial, with the columns that fit the width."""
    lines = [_headings(report), *map(_row, report.trials)]
    lines = [*zip(*(cells for cells in zip(*lines, strict=True) if any(cells[1:])), strict=True)]
    for optional in _OPTIONAL:
        if sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2 <= width:
            break
        if optional in lines[0]:
            at = lines[0].index(optional)
            lines = [(*line[:at], *line[at + 1 :]) for line in lines]
    return lines


def _headings(report: BenchReport) -> tuple[str, ...]:
    return (
        *("tried", "threads", "order", _unit(report), "rounds", "CPU µs", "decoded", "kB"),
        *("MB/s", "measured"),
    )


def _unit(report: BenchReport) -> str:
    return "images/s" if report.image_key is not None else "records/s"


def _configuration(report: BenchReport) -> str:
    """Describe what is loaded and how."""
    requested = report.requested
    what = "all columns"
    if report.image_key is not None:
        what = f"{console.printable(report.image_key)} to {report.image}"
    threads = console.count(requested.thread_count, "thread")
    return f"{what}, batches of {report.batch_size:,}, {threads}, {requested.order}"


def _time_shares(trial: Trial) -> str:
    """Describe where the time went."""
    shares = ", ".join(f"{100 * share:.0f}% {name}" for name, share in trial.shares.items())
    return f"threads spent {shares}; the loop waited {100 * trial.waiting_share:.0f}% of the time"


def _row(trial: Trial) -> tuple[str, ...]:
    total, share = trial.total, trial.decoded_share
    return (
        trial.label,
        str(trial.thread_count),
        trial.order,
        f"{trial.records_per_second:,.0f}",
        f"{trial.lowest:,.0f} to {trial.highest:,.0f}" if len(trial.rounds) > 1 else "once",
        f"{trial.cpu_microseconds:,.0f}",
        "" if share is None else percent(share),
        f"{trial.record_bytes / 1e3:,.1f}",
        f"{trial.bytes_per_second / 1e6:,.1f}",
        f"{total.record_count:,} in {total.seconds:.1f} s",
    )


# -- while it runs ---------------------------------------------------------------------------------


@contextmanager
def _display() -> Iterator[Callable[[BenchReport], None]]:
    """Show intermediate results, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _report: None
        return
    from rich.console import Console
    from rich.live import Live

    terminal = Console(stderr=True)
    with Live(console=terminal, transient=True, auto_refresh=False) as live:
        yield lambda report: live.update(_rendered(report, terminal.width - 2), refresh=True)


def _rendered(report: BenchReport, width: int) -> Any:
    """Draw the display: current trial, throughput, time shares and results so far."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    clock = Table.grid(padding=(0, 2))
    elapsed = min(report.elapsed_seconds, report.total_seconds)
    clock.add_row(
        Text(f"{elapsed:4.1f} of {report.total_seconds:g} s", "green"),
        ProgressBar(report.total_seconds, elapsed, width=_BAR_WIDTH),
        Text(report.activity, "bold"),
    )
    running = [trial for trial in report.trials if trial.label == report.activity]
    if not report.trials:
        return clock
    trial = running[0] if running else report.requested
    latest = trial.rounds[-1]
    bars = Table.grid(padding=(0, 2))
    bars.add_row(
        Text(f"{latest.records_per_second:,.0f} {_unit(report)}", "bold cyan"),
        Text(f"{console.size(trial.bytes_per_second)}/s", "cyan"),
    )
    for name, share in trial.shares.items():
        bars.add_row(name, ProgressBar(1.0, share, width=_BAR_WIDTH), f"{100 * share:.0f}%")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    headings, *rows = _table(report, width)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number >= 3 else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return Group(clock, "", bars, "", table)
