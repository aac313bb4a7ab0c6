"""Printing of errors, progress bars, tables and numbers.

Text from files is escaped; only our own control characters reach a terminal.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, TextIO

from recordsmith.support import words

if TYPE_CHECKING:
    from recordsmith.writing import PackReport, ReshardReport

count, printable, size = words.count, words.printable, words.size
shortened_in_middle = words.shortened

_REFRESH_SECONDS = 0.05
_MAX_LINE = 2000
_MAX_CELL = 200
_MAX_SPLITS = 10
_MIN_COLUMNS = 40  # columns; narrower terminals wrap by themselves
_GLUE = "\0"  # replaces the spaces in a command while lines are wrapped; never printed

_NUMBERS = re.compile(r"[-+\d.,]*\d[-+\d.,%e]*( (to|[kMGTP]?B|bytes?)( [\d.,]+)?)?")

_is_quiet = False
_json_output: TextIO | None = None  # standard output, while other output goes to standard error


@contextmanager
def only_json() -> Iterator[None]:
    """Print on standard error in the block, except for `print_json`.

    This includes what libraries and their processes print, such as an engine; in a process of its
    own, also after the block, as some libraries print when the process ends.
    """
    global _json_output  # noqa: PLW0603
    output = _json_output = sys.stdout
    with suppress(OSError, ValueError):  # streams of tests have no descriptors
        if sys.stdout.fileno() == 1:
            sys.stdout.flush()
            other = sys.stderr.fileno()
            _json_output = open(os.dup(1), "w", encoding="ascii")  # noqa: SIM115
            os.dup2(other, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if _json_output is not output:
            with suppress(OSError):  # of a closed pipe, which `print_json` has raised
                _json_output.close()
        _json_output = None


@contextmanager
def quiet() -> Iterator[None]:
    """Print no progress bars and no messages but errors in the block."""
    global _is_quiet  # noqa: PLW0603
    _is_quiet = True
    try:
        yield
    finally:
        _is_quiet = False


@contextmanager
def not_quiet() -> Iterator[None]:
    """Print the output of the block also with --quiet, then on standard error."""
    if _is_quiet:
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def print_error(message: str, *lines: str) -> None:
    """Print an error on standard error: one paragraph, and lines below it."""
    prefix = "error:"
    shown = (shortened(printable(line)) for line in (f"{prefix} {message}", *lines))
    text = "\n".join(_for_terminal(line, sys.stderr) for line in shown)
    red = f"\x1b[1;31m{prefix}\x1b[0m" if _is_styled(sys.stderr) else prefix
    print(red + text[len(prefix) :], file=sys.stderr)


def print_aside(message: str) -> None:
    """Print a message on standard error, to keep it out of the command's output."""
    if message and not _is_quiet:
        print(_for_terminal(shortened(printable(message)), sys.stderr), file=sys.stderr)


def print_hint(message: str) -> None:
    """Print what to do next, on a terminal only."""
    if sys.stderr.isatty():
        print_aside(message)


def print_line(text: str, indent: str = "", *, title: str = "") -> None:
    """Print a line with control characters escaped, wrapped on a terminal.

    `title` is the beginning of the text that is printed in bold.
    """
    lines = _for_terminal(indent + shortened(printable(text)), sys.stdout)
    if title and lines.startswith(title):
        lines = bold(title) + lines[len(title) :]
    first, newline, rest = lines.partition("\n")
    if title and len(first) < len(title) and title.startswith(first):  # wrapped
        lines = f"{bold(first)}{newline}{rest}"
    print(lines)


def print_path(path: str, indent: str = "") -> None:
    """Print a path on a line of its own, on a terminal shortened in the middle to fit."""
    shown = printable(path)
    if sys.stdout.isatty():
        columns = max(_MIN_COLUMNS, shutil.get_terminal_size().columns)
        shown = shortened_in_middle(shown, columns - len(indent))
    print(f"{indent}{shown}")


def _for_terminal(line: str, stream: TextIO) -> str:
    """Wrap a long line between words, but not within commands, so that they can be copied."""
    columns = shutil.get_terminal_size().columns
    if not stream.isatty() or len(line) <= columns or columns < _MIN_COLUMNS:
        return line
    indent = line[: len(line) - len(line.lstrip(" "))]
    whole = re.sub("`[^`]*`", lambda command: command[0].replace(" ", _GLUE), line)
    wrapper = textwrap.TextWrapper(
        columns, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(whole).replace(_GLUE, " ")


def print_json(document: Any) -> None:
    """Print a JSON document on standard output, in ASCII."""
    print(json.dumps(document, indent=1, allow_nan=False), file=_json_output, flush=True)


def print_result(report: Any, show: Callable[[], None], *, json: bool) -> None:
    """Print the result of a command as JSON, or call `show` to print it for people."""
    if json:
        print_json(report.to_json())
    else:
        show()


def shortened(line: str) -> str:
    """Cut a very long line, such as a file name of a megabyte."""
    more = len(line) - _MAX_LINE
    return line if more <= 0 else f"{line[:_MAX_LINE]}… ({count(more, 'character')} more)"


def bold(text: str) -> str:
    """Return `text` in bold on a terminal."""
    return f"\x1b[1m{text}\x1b[0m" if _is_styled(sys.stdout) else text


def _is_styled(stream: TextIO) -> bool:
    """Whether bold and colours are supported and not disabled (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: str | Sequence[str] = "",
    optional: Sequence[str] = (),
) -> None:
    """Print aligned columns; on a terminal, as many as fit, with long texts folded.

    `right` has the headings of right-aligned columns, `optional` those of columns that a narrow
    terminal leaves out, in this order.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = right.split() if isinstance(right, str) else right
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    cells = [
        [printable(cell if len(cell) <= _MAX_CELL else f"{cell[: _MAX_CELL - 1]}…") for cell in row]
        for row in rows
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, *column in zip(head, *cells, strict=True):
        table.add_column(
            Text(title),
            justify="right" if title in names else "left",
            no_wrap=title in names or all(map(_NUMBERS.fullmatch, column)),
            overflow="fold",
        )
    for row in cells:
        table.add_row(*map(Text, row))
    output = Console(file=io.StringIO(), width=columns, force_terminal=_is_styled(sys.stdout))
    if optional and output.measure(table).maximum > columns:
        at = head.index(optional[0])
        fewer = [(*row[:at], *row[at + 1 :]) for row in (head, *rows)]
        print_table(fewer[0], fewer[1:], right, optional[1:])
        return
    with output.capture() as printed:
        output.print(table)
    for line in printed.get().splitlines():
        print(line.rstrip())


def print_list(
    title: str,
    lines: Sequence[str],
    most: int = 10,
    *,
    number: int | None = None,
    indent: str = "",
) -> None:
    """Print a list with a title, at most `most` lines of it; nothing if it is empty.

    `number` is the total number, if `lines` has only the first ones.
    """
    if not lines:
        return
    print_line(f"{title}:", indent)
    for line in lines[:most]:
        print_line(line, f"{indent}  ")
    left_out = (len(lines) if number is None else number) - min(most, len(lines))
    if left_out:
        print(f"{indent}  {and_more(left_out, len(lines), most, number)}")


def and_more(left_out: int, listed: int, shown: int, number: int | None = None) -> str:
    """Return a line such as `… and 3 more (all of them with --json)`.

    The report contains `listed` of `number` items, of which `shown` are printed.
    """
    if number is None or number <= listed:
        where = " (all of them with --json)"
    else:
        where = f" (the first {listed:,} with --json)" if listed > shown else ""
    return f"… and {left_out:,} more{where}"


def print_summary(title: str, splits: Mapping[str, int], *more: str) -> None:
    """Print the title in bold up to a semicolon, the records of each split, and more lines."""
    print_line(title, title=title.partition(";")[0])
    shown = dict(list(splits.items())[:_MAX_SPLITS])
    for name, records in shown.items():
        print(f"  {printable(name)}: {count(records, 'record')}")
    if len(splits) > len(shown):
        print(f"  {and_more(len(splits) - len(shown), len(splits), len(shown))}")
    for line in more:
        print_line(line, "  ")


def print_written(
    report: PackReport | ReshardReport, verb: str, what: str, read: str = "input files"
) -> None:
    """Print what a job wrote, or that everything was already there; `bytes_in` counts `read`."""
    into = f"{count(report.shard_count, 'shard')} in {printable(str(report.folder))}"
    title = (
        f"{verb} {what} into {into}"
        if report.is_new
        else f"nothing to do: {what} are already there, in {into}"
    )
    sizes = f"{size(report.bytes_in)} of {read}, {size(report.bytes_out)} of shards"
    print_summary(title, report.splits, sizes)
    if report.reused_count:
        written = report.shard_count - report.reused_count
        print(
            f"  resumed: {count(report.reused_count, 'shard')} of an earlier run verified and "
            f"kept, {written:,} written now"
        )


@contextmanager
def progress_bar(
    what: str, *, of_bytes: bool = False, speed: bool = True
) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar with rate and remaining time while the block runs, on a terminal only.

    Yields `progress(done, total)`, which any thread may call; total is 0 if unknown. `speed` is
    false if part of the work may be skipped.
    """
    if _is_quiet or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich import progress as columns
    from rich.console import Console
    from rich.text import Text

    class Rate(columns.ProgressColumn):
        """Items per second."""

        def render(self, task: columns.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f}/s", style="cyan")

    measures: list[columns.ProgressColumn] = [columns.MofNCompleteColumn(), Rate()]
    if of_bytes:
        measures = [columns.DownloadColumn(), columns.TransferSpeedColumn()]
    bar = columns.Progress(
        columns.SpinnerColumn(),
        columns.TextColumn("{task.description}"),
        columns.BarColumn(),
        *measures[: 2 if speed else 1],
        columns.TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
    shown_at = 0.0

    def update(done: int, total: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= _REFRESH_SECONDS or done == total:
            shown_at = now
            bar.update(task, completed=done, total=total or None)

    with bar:
        task = bar.add_task(what, total=None)
        yield update
