"""Prints a report on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.cli import console
from recordsmith.cli.wording import how_to_show
from recordsmith.reports import Bar, Cell, Histogram, ReportContent, ReportTable, group_findings

_BLOCKS = " ▁▂▃▄▅▆▇█"
_BAR = 24
_LONGEST_CELL = 48
_FEATURES_SHOWN = 5  # with the same finding
_SHOWN_OF_KIND = 5


def print_report(content: ReportContent) -> None:
    """Print what a report shows; the findings come last."""
    console.print_line(content.summary, title=content.summary.partition(" in ")[0])
    for table in content.tables:
        _print_table(table)
    for note in content.notes:
        print()
        console.print_line(note)
    print()
    print(console.bold(content.verdict))
    for group in group_findings(content.findings, _FEATURES_SHOWN, _SHOWN_OF_KIND):
        about = f"{group.about}: " if group.about else ""
        console.print_line(f"{group.kind}: {about}{group.text} {group.cure}".rstrip(), "  ")
        for command in how_to_show((place.path, place.record) for place in group.places):
            console.print_line(command, "    ")


def _print_table(table: ReportTable) -> None:
    print()
    if table.title:
        print(console.bold(console.printable(table.title)))
    columns = [number for number, head in enumerate(table.heads) if head not in table.wide]
    rows = [[_text(row[column]) for column in columns] for row in table.rows[: table.terminal_rows]]
    heads = [table.heads[column] for column in columns]
    console.print_table(heads, rows, table.numbers, table.optional)
    more = len(table.rows) - len(rows)
    if more:
        print(f"  {console.and_more(more, len(table.rows), len(rows))}")
    if table.note:
        console.print_line(table.note, "  ")


def _text(cell: Cell) -> str:
    if isinstance(cell, Bar):
        return "█" * max(1, round(_BAR * cell.share))
    if isinstance(cell, Histogram):
        return _bars(cell.counts)
    return console.shortened_in_middle(cell, _LONGEST_CELL)


def _bars(counts: Sequence[int]) -> str:
    most = max(counts, default=0)
    return "".join(
        _BLOCKS[-(-count * (len(_BLOCKS) - 1) // most) if count else 0] for count in counts
    )
