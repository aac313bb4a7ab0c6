"""How the commands print: errors, progress bars, tables, numbers.

Control characters reach a terminal only, and only ours: what comes from a file is made printable.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recordsmith.words import count, printable, size

__all__ = [
    "and_more",
    "bold",
    "count",
    "place",
    "print_aside",
    "print_code",
    "print_error",
    "print_json",
    "print_list",
    "print_summary",
    "print_table",
    "printable",
    "progress_bar",
    "shortened",
    "size",
    "sizes",
]

_REFRESH_SECONDS = 0.05
_LONGEST_LINE = 2000
_LONGEST_CELL = 200


def print_error(message: str) -> None:
    """One paragraph on standard error."""
    prefix = "\x1b[1;31merror:\x1b[0m" if sys.stderr.isatty() else "error:"
    lines = printable(message, keep="\n").split("\n")
    print(prefix, "\n".join(map(shortened, lines)), file=sys.stderr)


def print_aside(message: str) -> None:
    """Something to know, on standard error: standard output is for what was asked."""
    print(shortened(printable(message)), file=sys.stderr)


def print_json(document: Any) -> None:
    """One JSON document on standard output, ASCII only."""
    print(json.dumps(document, indent=1, allow_nan=False))


def print_code(code: str) -> None:
    """Python, in colours on a terminal; it can be copied from there as it is."""
    if not sys.stdout.isatty():
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
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text


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
    print(f"{indent}{title}:")
    for line in lines[:most]:
        print(f"{indent}  {shortened(printable(line))}")
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
    for name, records in splits.items():
        print(f"  {printable(name)}: {count(records, 'record')}")
    for line in more:
        print(f"  {line}")


def place(number: int, noun: str, folder: Path) -> str:
    """3 shards in out."""
    return f"{count(number, noun)} in {printable(str(folder))}"


def sizes(bytes_in: int, bytes_out: int) -> str:
    """How much a job read, and how much it wrote."""
    return f"{size(bytes_in)} in, {size(bytes_out)} out"


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
