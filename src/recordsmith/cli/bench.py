"""`recordsmith bench`."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all
from recordsmith.cli.wording import in_options
from recordsmith.errors import OptionError

if TYPE_CHECKING:
    from recordsmith.measuring import Trial

_SIZE = re.compile(r"(\d{1,6})(?:x(\d{1,6}))?", re.ASCII)
_BAR_WIDTH = 30
_WIDTH = 100  # of a line at most
_SPARED = ("measured", "rounds", "MB/s")  # columns that a narrow terminal is spared, in this order


def bench(
    paths: Paths,
    split: Split = None,
    batch_size: Annotated[int, typer.Option(help="Examples in a batch.", min=1, metavar="N")] = 32,
    size: Annotated[
        str,
        typer.Option(
            help="What pictures are brought to, in pixels: 224, or height x width as in 192x256.",
            metavar="SIZE",
        ),
    ] = "224",
    fit: Annotated[
        str,
        typer.Option(
            help="resize, crop-or-pad, center-crop, contain, random-crop or pad.", metavar="FIT"
        ),
    ] = "resize",
    key: Annotated[
        str | None,
        typer.Option(help="The feature that holds the pictures. [default: found]", metavar="KEY"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="How many decode; 0: none but the loop's. [default: as many as processors]",
            min=0,
            metavar="N",
        ),
    ] = None,
    shuffle: Annotated[
        bool | None,
        typer.Option(
            "--shuffle/--no-shuffle",
            help="In which order. [default: shuffled; compressed shards through a buffer]",
        ),
    ] = None,
    skip_errors: Annotated[
        int, typer.Option(help="Leave out so many damaged records.", min=0, metavar="N")
    ] = 0,
    seconds: Annotated[
        float, typer.Option(help="How long it may take, about, in seconds.", metavar="SECONDS")
    ] = 10.0,
    json: Json = False,
) -> None:
    """Measure how fast a dataset loads, and what would make it faster.

    Loads it as asked; then tries, for a moment each, other numbers of threads, other orders, and
    some of its pictures packed at a smaller side. On Ctrl-C prints what it has by then.

    Example: `recordsmith bench out --split train --batch-size 32 --size 224`
    """
    options: dict[str, Any] = {"size": _parse_size(size), "fit": fit}
    options["shuffle"] = None if shuffle else shuffle  # what is compressed through a buffer
    report: rs.BenchReport | None = None
    try:
        with _display() as show:

            def keep(now: rs.BenchReport) -> None:
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
                tell=keep,
                **options,
            )
    except KeyboardInterrupt:
        if report is not None and report.trials:
            _print(report, json, paths)
        raise
    _print(report, json, paths)


def _print(report: rs.BenchReport, json: bool, paths: list[str]) -> None:
    if json:
        console.print_json(report.to_json())
    else:
        print_bench_report(report, paths)


def print_bench_report(report: rs.BenchReport, paths: Sequence[str] = ()) -> None:
    """What was measured, as a table, and what would help.

    paths: what was loaded, as the user typed it.
    """
    typed = shlex.quote(paths[0]) if len(paths) == 1 else "PATH"
    asked = report.asked
    rate = f"{asked.records_per_second:,.0f} {_unit(report)}"
    width = min(_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDTH
    asked_for = console.printable(_asked(report))
    loaded = console.wrapped(
        f"{rate}, {console.size(asked.bytes_per_second)}/s: {asked_for}", width
    )
    print("\n".join(loaded).replace(rate, console.bold(rate), 1))
    print("\n".join(console.wrapped(_spent(asked), width)))
    print()
    headings, *rows = _table(report, width)
    console.print_table(headings, rows, " ".join(headings[3:]))
    print()
    for sentence in report.advice:
        advice = in_options(sentence).replace("pack PATH OUT", f"pack {typed} OUT")
        line = console.printable(f"- {advice}")
        print("\n".join(console.wrapped(line, width, "  ")))
    console.print_list(f"skipped, {len(report.skipped):,}", report.skipped)


def _table(report: rs.BenchReport, width: int) -> list[tuple[str, ...]]:
    """The headings and a row for each trial, in as many columns as lines of this width can hold."""
    lines = [_headings(report), *map(_row, report.trials)]
    for spared in _SPARED:
        if sum(max(map(len, column)) + 2 for column in zip(*lines, strict=True)) - 2 <= width:
            break
        at = lines[0].index(spared)
        lines = [(*line[:at], *line[at + 1 :]) for line in lines]
    return lines


def _headings(report: rs.BenchReport) -> tuple[str, ...]:
    return ("tried", "threads", "order", _unit(report), "rounds", "MB/s", "measured")


def _unit(report: rs.BenchReport) -> str:
    return "pictures/s" if report.picture_key is not None else "records/s"


def _asked(report: rs.BenchReport) -> str:
    """What is loaded, and how."""
    asked = report.asked
    what = "all columns"
    if report.picture_key is not None:
        what = f"{console.printable(report.picture_key)} to {report.picture}"
    return (
        f"{what}, batches of {report.batch_size:,}, {console.count(asked.thread_count, 'thread')}, "
        f"{asked.order}"
    )


def _spent(trial: Trial) -> str:
    """Where the time went."""
    shares = ", ".join(f"{100 * share:.0f}% {name}" for name, share in trial.shares.items())
    return f"threads spent {shares}; the loop waited {100 * trial.waiting_share:.0f}% of the time"


def _row(trial: Trial) -> tuple[str, ...]:
    total = trial.total
    return (
        trial.in_words,
        str(trial.thread_count),
        trial.order,
        f"{trial.records_per_second:,.0f}",
        f"{trial.lowest:,.0f} to {trial.highest:,.0f}" if len(trial.rounds) > 1 else "once",
        f"{trial.bytes_per_second / 1e6:,.1f}",
        f"{total.record_count:,} in {total.seconds:.1f} s",
    )


def _parse_size(text: str) -> int | tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise OptionError(
            f"--size is {text!r:.60}; expected a number, or height and width: 192x256"
        )
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))


# -- while it runs ---------------------------------------------------------------------------------


@contextmanager
def _display() -> Iterator[Callable[[rs.BenchReport], None]]:
    """Shows what is known so far, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda _report: None
        return
    from rich.console import Console
    from rich.live import Live

    terminal = Console(stderr=True)
    with Live(console=terminal, transient=True, auto_refresh=False) as live:
        yield lambda report: live.update(_picture(report, terminal.width - 2), refresh=True)


def _picture(report: rs.BenchReport, width: int) -> Any:
    """The display: what is measured, how fast, where the time goes, and what came out so far."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    clock = Table.grid(padding=(0, 2))
    elapsed = min(report.elapsed_seconds, report.total_seconds)
    clock.add_row(
        Text(f"{elapsed:4.1f} of {report.total_seconds:g} s", "green"),
        ProgressBar(report.total_seconds, elapsed, width=_BAR_WIDTH),
        Text(report.doing, "bold"),
    )
    running = [trial for trial in report.trials if trial.in_words == report.doing]
    if not report.trials:
        return clock
    trial = running[0] if running else report.asked
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
