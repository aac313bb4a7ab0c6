"""Prints a report on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.cli import console
from recordsmith.support import reports

_BLOCKS = " ▁▂▃▄▅▆▇█"
_BAR = 24
_LONGEST_CELL = 48
_EXAMPLES = 10


def print_report(content: reports.ReportContent) -> None:
    """Print what a report shows; the findings come last."""
    summary = content.summary
    is_verdict = summary.startswith(content.verdict)
    console.print_line(
        summary, title=content.verdict if is_verdict else summary.partition(" in ")[0]
    )
    for table in content.tables:
        if table.terminal_rows:
            _print_table(table)
    for note in content.notes:
        print()
        console.print_line(note)
    if not is_verdict:
        print()
        console.print_line(content.verdict, title=content.verdict)
    for finding in content.findings:
        print()
        _print_finding(finding)


def _print_finding(finding: reports.ShownFinding) -> None:
    title = f"{finding.severity}: {finding.kind}" if finding.severity else finding.kind
    title += f" ({finding.count:,})" if finding.count else ""
    about = f"{finding.about}: " if finding.about else ""
    console.print_line(f"{title}: {about}{finding.text}", title=title)
    for example in finding.examples[:_EXAMPLES]:
        console.print_line(example.text, "  ")
    if finding.count > _EXAMPLES:
        left_out = finding.count - min(_EXAMPLES, len(finding.examples))
        print(f"  {console.and_more(left_out, len(finding.examples), _EXAMPLES, finding.count)}")
    if finding.cure:
        console.print_line(finding.cure, "  ")
    for command in reports.show_commands(finding.places):
        console.print_line(f"show it: `{command}`", "  ")


def _print_table(table: reports.ReportTable) -> None:
    print()
    if table.title:
        console.print_line(table.title, title=table.title)
    columns = [number for number, head in enumerate(table.heads) if head not in table.wide]
    rows = [[_text(row[column]) for column in columns] for row in table.rows[: table.terminal_rows]]
    heads = [table.heads[column] for column in columns]
    console.print_table(heads, rows, table.numbers, table.optional)
    more = len(table.rows) - len(rows) + table.more
    if more:
        print(f"  {console.and_more(more, len(table.rows), len(rows))}")
    if table.note:
        console.print_line(table.note, "  ")


def _text(cell: reports.Cell) -> str:
    if isinstance(cell, reports.Bar):
        return "█" * max(1, round(_BAR * cell.share))
    if isinstance(cell, reports.Histogram):
        return _bars(cell.counts)
    return console.shortened_in_middle(cell, _LONGEST_CELL) if isinstance(cell, str) else ""


def _bars(counts: Sequence[int]) -> str:
    most = max(counts, default=0)
    return "".join(
        _BLOCKS[-(-count * (len(_BLOCKS) - 1) // most) if count else 0] for count in counts
    )
