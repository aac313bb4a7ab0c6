"""One model of a report for people: a title, figures, tables, and findings with places and cures.

A job describes its report once, as a `ReportContent`. `cli.report_text` prints it, and
`drawing.report_page` writes it as a page. JSON has the data behind it: `serialization.to_json`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

Level: TypeAlias = Literal["good", "note", "bad", "quiet"]

_MAX_SHOWN = 10  # records in a command
_MAX_FILES_SHOWN = 3


@dataclass(frozen=True)
class SourceLocation:
    """Where a record is: its file and its number in that file, counted from 0."""

    path: str
    record: int

    def __str__(self) -> str:
        return f"{self.path}, record {self.record}"


class Example(NamedTuple):
    """An example of a finding in a line, what draws it as JPEG files, and its record."""

    text: str
    draw: Callable[[], Sequence[bytes]] | None = None
    place: SourceLocation | None = None


@dataclass(frozen=True)
class ShownFinding:
    """A finding as it is shown.

    about: the features that it is about.
    severity: such as error; empty if all findings are alike. `level` is its colour.
    count: how many places have it; 0 if it is one.
    examples: the first of these places; places: those of records.
    """

    kind: str
    text: str
    cure: str = ""
    about: str = ""
    severity: str = ""
    level: Level = "note"
    count: int = 0
    examples: Sequence[Example] = ()
    places: Sequence[SourceLocation] = ()


class Bar(NamedTuple):
    """A cell with a bar: a share of the longest one in its column, from 0 to 1."""

    share: float


class Histogram(NamedTuple):
    """A cell with a bar for each bin: `counts[i]` values from `edges[i]` to `edges[i + 1]`."""

    edges: Sequence[float]
    counts: Sequence[int]


class Strip(NamedTuple):
    """A cell that shows a file from its first byte to its last.

    level: whether it is good.
    marks: where something is, from 0 to 1, with what is there.
    skipped_from: from where on it was not read; 1 for nothing.
    is_whole: whether it is bad as a whole.
    """

    level: Level
    marks: Sequence[tuple[float, str]]
    skipped_from: float = 1
    is_whole: bool = False


Cell: TypeAlias = str | Bar | Histogram | Strip


@dataclass(frozen=True)
class ReportTable:
    """Cells below headings.

    title: above the table; empty for none.
    heads: the headings; numbers: those of right-aligned columns.
    optional: headings of columns that a narrow terminal leaves out, in this order.
    wide: headings of columns that only a page has.
    note: below the table.
    terminal_rows: how many rows a terminal shows; 0 for a table of pages.
    more: how many rows there are in addition to these.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: Sequence[str] = ()
    optional: Sequence[str] = ()
    wide: Sequence[str] = ()
    note: str = ""
    terminal_rows: int = 200
    more: int = 0


@dataclass(frozen=True)
class ReportContent:
    """What a report shows.

    summary: what was read, in a line, which may begin with the verdict.
    verdict: the result, in a few words; `level` is how good it is.
    figures: the main figures with their names.
    notes: sentences, such as what the report does not have.
    """

    summary: str
    verdict: str
    level: Level
    figures: Sequence[tuple[str, str]]
    tables: Sequence[ReportTable]
    findings: Sequence[ShownFinding]
    notes: Sequence[str] = ()


def has_viewer() -> bool:
    """Whether the extra `view` is installed."""
    return all(map(find_spec, ("starlette", "uvicorn")))


def show_command(paths: Sequence[str], positions: Iterable[int], split: str | None = None) -> str:
    """Return the command that shows some records: the first ones, if there are many.

    It opens them in a browser, or prints them where the extra `view` is not installed.
    """
    typed = [f"./{path}" if path.startswith("-") else path for path in paths]
    of_split = [] if split is None else ["--split", split]
    at = ",".join(map(str, islice(dict.fromkeys(positions), _MAX_SHOWN)))
    command = ["recordsmith", "view" if has_viewer() else "head"]
    return shlex.join([*command, *typed, *of_split, "--at", at])


def show_commands(places: Iterable[SourceLocation]) -> list[str]:
    """Return the command that shows the records of each file; only for the first files."""
    of_file: dict[str, list[int]] = {}
    for place in places:
        of_file.setdefault(place.path, []).append(place.record)
    first = islice(of_file.items(), _MAX_FILES_SHOWN)
    return [show_command([path], positions) for path, positions in first]
