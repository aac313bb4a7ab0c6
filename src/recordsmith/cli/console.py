"""How the commands print: errors, progress bars, tables, numbers.

Control characters reach a terminal only, and only ours: what comes from a file is made printable.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from recordsmith.words import count, printable, size

if TYPE_CHECKING:
    from recordsmith.packing import PackReport
    from recordsmith.reshaping import ReshardReport

__all__ = [
    "and_more",
    "bold",
    "count",
    "place",
    "print_aside",
    "print_code",
    "print_error",
    "print_hint",
    "print_json",
    "print_line",
    "print_list",
    "print_summary",
    "print_table",
    "print_written",
    "printable",
    "progress_bar",
    "shortened",
    "size",
    "wrapped",
]

_REFRESH_SECONDS = 0.05
_LONGEST_LINE = 2000
_LONGEST_CELL = 200
_MOST_SPLITS = 10
_NARROWEST = 40  # columns; in fewer a terminal wraps by itself
_GLUE = "\0"  # stands for the spaces in a command while lines are wrapped; never printed


def print_error(message: str) -> None:
    """One paragraph on standard error."""
    prefix = "error:"
    lines = f"{prefix} {printable(message, keep=chr(10))}".split("\n")
    text = "\n".join(_for_terminal(shortened(line), sys.stderr) for line in lines)
    red = f"\x1b[1;31m{prefix}\x1b[0m" if _is_styled(sys.stderr) else prefix
    print(red + text[len(prefix) :], file=sys.stderr)


def print_aside(message: str) -> None:
    """Something to know, on standard error: standard output is for what was asked."""
    print(_for_terminal(shortened(printable(message)), sys.stderr), file=sys.stderr)


def print_hint(message: str) -> None:
    """What one may do next, for somebody who looks on: on a terminal only."""
    if sys.stderr.isatty():
        print_aside(message)


def print_line(text: str, indent: str = "", *, title: str = "") -> None:
    """A sentence, made printable: on a terminal wrapped at words, elsewhere one line to search.

    title: what it begins with, to be set in bold.
    """
    lines = _for_terminal(indent + shortened(printable(text)), sys.stdout)
    print(bold(title) + lines[len(title) :] if title and lines.startswith(title) else lines)


def _for_terminal(line: str, stream: TextIO) -> str:
    """The line itself, or, where it is longer than a line of the terminal, several."""
    columns = shutil.get_terminal_size().columns
    if not stream.isatty() or len(line) <= columns or columns < _NARROWEST:
        return line
    indent = line[: len(line) - len(line.lstrip(" "))]
    return "\n".join(wrapped(line, columns, f"{indent}  "))


def wrapped(line: str, width: int, hang: str = "") -> list[str]:
    """The lines of a printable one, wrapped at words; a command in it stays whole, to be copied.

    hang: what the second line and those after it begin with.
    """
    whole = re.sub("`[^`]*`", lambda command: command[0].replace(" ", _GLUE), line)
    wrapper = textwrap.TextWrapper(
        width,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(_GLUE, " ") for part in wrapper.wrap(whole)]


def print_json(document: Any) -> None:
    """One JSON document on standard output, ASCII only."""
    print(json.dumps(document, indent=1, allow_nan=False))


def print_code(code: str) -> None:
    """Python, in colours on a terminal; it can be copied from there as it is."""
    if not _is_styled(sys.stdout):
        print(code, end="")
        return
    from rich.console import Console
    from rich.syntax import Syntax

    syntax = Syntax("", "python", theme="ansi_dark", background_color="default")
    Console().print(syntax.highlight(code), soft_wrap=True, end="")


def shortened(line: str) -> str:
    """A line without what nobody reads of it, such as a name of a megabyte."""
    more = len(line) - _LONGEST_LINE
    return line if more <= 0 else f"{line[:_LONGEST_LINE]}… ({count(more, 'character')} more)"


def bold(text: str) -> str:
    """`text` in bold on a terminal."""
    return f"\x1b[1m{text}\x1b[0m" if _is_styled(sys.stdout) else text


def _is_styled(stream: TextIO) -> bool:
    """Whether bold and colours can be shown, and nobody asks for none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: str | Sequence[str] = ""
) -> None:
    """Aligned columns; those whose heading is among `right`, names or their words, are set to the
    right.
    """
    names = right.split() if isinstance(right, str) else right
    cells = [list(head), *([printable(_cut(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    to_right = [title in names for title in head]
    for number, row in enumerate(cells):
        line = "  ".join(
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(row, widths, to_right, strict=True)
        ).rstrip()
        print(bold(line) if number == 0 else line)


def _cut(cell: str) -> str:
    """What of a cell leaves room for the others: names may be as long as somebody likes."""
    return cell if len(cell) <= _LONGEST_CELL else f"{cell[: _LONGEST_CELL - 1]}…"


def print_list(
    title: str,
    lines: Sequence[str],
    most: int = 10,
    *,
    number: int | None = None,
    indent: str = "",
) -> None:
    """A titled list, cut after `most` lines; says how many are left out.

    number: how many there are, if a report keeps only the first of them.
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
    """How many more there are, and where they are told.

    Args:
        left_out: how many are not shown.
        listed: how many a report lists, as --json has them.
        shown: how many are shown at most.
        number: how many there are, if a report keeps only the first of them.
    """
    if number is None or number <= listed:
        where = " (all of them with --json)"
    else:
        where = f" (the first {listed:,} with --json)" if listed > shown else ""
    return f"… and {left_out:,} more{where}"


def print_summary(title: str, splits: Mapping[str, int], *more: str) -> None:
    """What a job did: the title, how many records each split has, and what more there is to say."""
    print(title)
    shown = dict(list(splits.items())[:_MOST_SPLITS])
    for name, records in shown.items():
        print(f"  {printable(name)}: {count(records, 'record')}")
    if len(splits) > len(shown):
        print(f"  {and_more(len(splits) - len(shown), len(splits), len(shown))}")
    for line in more:
        print(f"  {line}")


def print_written(report: PackReport | ReshardReport, verb: str, what: str) -> None:
    """What a job wrote, and where; or that all of it was there already."""
    into = place(report.shard_count, "shard", report.folder)
    title = (
        f"{verb} {what} into {into}"
        if report.is_new
        else f"nothing to do: {what} are there already, in {into}"
    )
    sizes = f"{size(report.bytes_in)} in, {size(report.bytes_out)} out"
    print_summary(bold(title), report.splits, sizes)
    if report.kept_count:
        written = report.shard_count - report.kept_count
        print(
            f"  {count(report.kept_count, 'shard')} complete from before, checked and kept; "
            f"{written:,} written now"
        )


def place(number: int, noun: str, folder: Path) -> str:
    """3 shards in out."""
    return f"{count(number, noun)} in {printable(str(folder))}"


@contextmanager
def progress_bar(
    what: str, *, of_bytes: bool = False, speed: bool = True, again: str = ""
) -> Iterator[Callable[[int, int], None]]:
    """A bar with rate and time left while the block runs, on a terminal only.

    Gives a function that is told (done, total), from any thread; until it is first called the bar
    shows that something is going on. A total of 0 means that nobody knows it.

    Args:
        what: is done.
        of_bytes: what is counted.
        speed: false where much is counted that need not be read, or was done by an earlier job.
        again: what is done when the total grows after all of it was done: then a bar begins anew,
            as one that falls back makes nobody wiser.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Things a second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f}/s", style="cyan")

    class Count(ProgressColumn):
        """Things done, of all."""

        def render(self, task: Task) -> Text:
            total = "" if task.total is None else f"/{task.total:,.0f}"
            return Text(f"{task.completed:,.0f}{total}", style="green")

    class OnceBegun(ProgressColumn):
        """A column that is empty until there is something to measure."""

        def __init__(self, column: ProgressColumn) -> None:
            super().__init__()
            self.column = column

        def render(self, task: Task) -> Any:
            return self.column.render(task) if task.completed else ""

    measures: tuple[ProgressColumn, ...]
    measures = (DownloadColumn(), TransferSpeedColumn()) if of_bytes else (Count(), Rate())
    if not speed:
        measures = measures[:1]
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        *map(OnceBegun, measures),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
    )
    lock = threading.Lock()
    told = 0.0
    before = whole = 0  # what bars that are full have counted

    def tell(done: int, total: int) -> None:
        nonlocal told, before, whole
        now = time.monotonic()
        if now - told < _REFRESH_SECONDS and done != total and not (again and whole):
            return
        with lock:
            told = now
            if again and whole and total > whole:
                before, whole = whole, 0
                bar.reset(task, description=again)
            if again and done == total:
                whole = total
            bar.update(task, completed=done - before, total=(total - before) or None)

    with bar:
        task = bar.add_task(what, total=None)
        yield tell
