"""One model of a report for people: a title, figures, tables, and findings with places and cures.

A job describes its report once, as a `ReportContent`. `cli.report_text` prints it, and
`drawing.report_page` writes it as a page. JSON has the data behind it: `serialization.to_json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from recordsmith.words import count as format_count
from recordsmith.words import first_of

Level: TypeAlias = Literal["good", "note", "bad", "quiet"]


@dataclass(frozen=True)
class Place:
    """The place of a record: its file and its position in that file, counted from 0."""

    path: str
    record: int

    def __str__(self) -> str:
        return f"{self.path}, record {self.record}"


@dataclass(frozen=True)
class Finding:
    """A likely problem.

    kind: a stable name for the problem, which the documentation of the job lists.
    feature: the feature with the problem; None for the dataset.
    text: what was found.
    cure: what to do about it.
    places: records that show the problem, if they are known.
    """

    kind: str
    feature: str | None
    text: str
    cure: str = ""
    places: tuple[Place, ...] = ()


class Example(NamedTuple):
    """An example of a finding in a line, and what draws it: JPEG files; None for nothing."""

    text: str
    draw: Callable[[], Sequence[bytes]] | None = None


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
    places: Sequence[Place] = ()


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


def group_findings(
    findings: Iterable[Finding], max_features: int = 5, max_of_kind: int = 10
) -> Iterator[ShownFinding]:
    """Group findings that differ only in their feature; a last group counts those of a kind."""
    groups: dict[tuple[str, str, str, tuple[Place, ...]], list[str]] = {}
    for finding in findings:
        group = groups.setdefault((finding.kind, finding.text, finding.cure, finding.places), [])
        group += [finding.feature] if finding.feature is not None else []
    shown: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    for (kind, text, cure, places), features in groups.items():
        if shown[kind] == max_of_kind:
            hidden[kind] += max(1, len(features))
            continue
        shown[kind] += 1
        names = [name if len(name) <= 80 else f"{name[:79]}…" for name in features]
        yield ShownFinding(kind, text, cure, first_of(names, max_features), places=places)
    for kind, number in hidden.items():
        more = f"and {format_count(number, 'more such finding')}; the JSON report lists all."
        yield ShownFinding(kind, more)
