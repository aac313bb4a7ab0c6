"""`recordsmith verify`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.function_options import OptionsOf
from recordsmith.cli.options import (
    WHICH,
    Html,
    Json,
    OverwritePage,
    Paths,
    check_html,
    one_or_all,
    title_of,
)
from recordsmith.cli.wording import can_be_shown, how_to_show
from recordsmith.errors import DAMAGED_RECORDS, Defect
from recordsmith.words import first_of

if TYPE_CHECKING:
    from recordsmith.examining.verification import VerifyReport


_EXAMPLES = 3  # shown records with the same defect in the same feature
_POSITIONS = 10
_LOST_FRAMING = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION)  # later records cannot be reached
_MOST_PATHS = 3  # in a suggested command


def verify(
    paths: Paths,
    options: Annotated[dict[str, Any], OptionsOf("verify", panels={WHICH: "split"})],
    html: Html = None,
    overwrite: OverwritePage = False,
    json: Json = False,
) -> None:
    """Prints the defects and exits with 1 if there are any.

    Example: `recordsmith verify out --deep`

    Own rules: `recordsmith verify new --schema schema.json`
    """
    check_html(html, overwrite=overwrite)
    with console.progress_bar("verifying", of_bytes=True) as progress:
        report = rs.verify(one_or_all(paths), **options, progress=progress)
    if html is not None:
        rs.save_html(report, html, title=title_of(paths), overwrite=overwrite)
    schema = options.get("schema")
    console.print_result(
        report, lambda: print_verify_report(report, schema=schema, paths=paths), json=json
    )
    console.print_written_page(html)
    if not report.is_good:
        raise typer.Exit(1)


def print_verify_report(
    report: VerifyReport, *, schema: str | None = None, paths: Sequence[str] = ()
) -> None:
    """Print the defects, one per line, and explain them."""
    intact = console.count(report.record_count, "intact record")
    if report.expected_record_count not in (None, report.record_count):
        intact = f"{report.record_count:,} intact of {report.expected_record_count:,} records"
    read = (
        f"{intact} in "
        f"{console.count(report.shard_count, 'shard')}, {console.size(report.size_bytes)}"
    )
    if report.image_count:
        read += f", {console.count(report.image_count, 'image')} decoded"
    if report.is_good:
        all_was_seen = report.is_deep and not report.unchecked
        also = ", and every payload is valid" if all_was_seen else ""
        if schema is not None:
            also += f"; every record matches the rules of {schema}"
        console.print_line(f"good: {read}; every checksum matches{also}", title="good")
    else:
        rules = schema is not None and all(error.feature is not None for error in report.defects)
        defects = console.count(report.defect_count, "rule violation" if rules else "defect")
        if any(error.defect in _LOST_FRAMING for error in report.defects):
            read += (
                "; records after the damage were not checked (`recordsmith salvage` searches them)"
            )
        console.print_line(f"{defects}; {read}", title=defects)
    _print_defects(report)
    if report.defect_count > len(report.defects):
        print(f"  … and {report.defect_count - len(report.defects):,} more")
    unreadable = {error.path for error in report.defects if _hinders(error, report)}
    for line in how_to_show(
        (str(error.path), error.record or 0)
        for error in report.defects
        if can_be_shown(error) and error.path not in unreadable
    ):
        console.print_line(line, "  ")
    notices: dict[Defect, list[rs.DataError]] = {}
    for notice in report.notices:
        notices.setdefault(notice.defect, []).append(notice)
    for defect, alike in notices.items():
        shown = len(alike) if len(alike) <= _EXAMPLES + 1 else _EXAMPLES
        for notice in alike[:shown]:
            console.print_line(f"notice: {notice}", "  ")
        if shown < len(alike):
            print(f"    … and {len(alike) - shown:,} more with {defect} (all of them with --json)")
    for reason in [*_of_compression(report), *report.unchecked]:
        console.print_line(f"note: {reason}", "  ")
    typed = shlex.join(paths) if 0 < len(paths) <= _MOST_PATHS else "PATH"
    salvage = f"`recordsmith salvage {typed} OUT`"
    explanations = report.to_json()["explanations"]
    for name, explanation in explanations.items():
        print()
        console.print_line(f"{name}: {explanation['meaning']}", title=name)
        console.print_line(explanation["advice"].replace("`recordsmith salvage`", salvage), "  ")


def _hinders(error: rs.DataError, report: VerifyReport) -> bool:
    """Whether records of the file cannot be read by their positions because of the defect."""
    return error.defect in DAMAGED_RECORDS and (
        error.defect is not Defect.PAYLOAD_CRC or error.path in report.compressions
    )


def _of_compression(report: VerifyReport) -> Iterator[str]:
    """Remind users to pass the compression to TensorFlow, which cannot detect it."""
    counts = Counter(shard.compression for shard in report.shards)
    for name in ("gzip", "zlib"):
        if counts[name]:
            which = "the file is"
            if report.shard_count > 1:
                which = f"{counts[name]:,} of {report.shard_count:,} files are"
            yield (
                f"{which} compressed with {name}: TensorFlow needs "
                f'`compression_type="{name.upper()}"`; otherwise it reports "corrupted record at 0"'
            )


def _print_defects(report: VerifyReport) -> None:
    """Print a line per defect, but only a few if they are the same in many records."""
    unexplained = set(report.compressions)  # compressed files whose offsets are not explained yet
    groups: dict[object, list[rs.DataError]] = {}
    for error in report.defects:
        has_many = error.feature is not None and error.record is not None
        same = (error.defect, error.feature) if has_many else id(error)
        groups.setdefault(same, []).append(error)
    for group in groups.values():
        # a line `… in 1 more record` would not be shorter than the record
        shown = len(group) if len(group) <= _EXAMPLES + 1 else _EXAMPLES
        for error in group[:shown]:
            console.print_line(str(error), "  ")
            if error.offset is not None and error.path in unexplained:
                unexplained.remove(error.path)
                print("    (offsets in this file count decompressed bytes)")
        if shown < len(group):
            console.print_line(f"… {_others(group[shown:])}", "    ")


def _others(alike: list[rs.DataError]) -> str:
    """Describe more of the same defect in the same feature."""
    records = dict.fromkeys((error.path, error.record) for error in alike)
    paths = dict.fromkeys(error.path for error in alike)
    line = f"{alike[0].defect} of {alike[0].feature!r} "
    if len(records) == len(alike):
        line += f"in {len(records):,} more records"
    else:  # several Examples of one ranking list
        line += f"{len(alike):,} more times, in {console.count(len(records), 'record')}"
    if len(paths) > 1:
        return f"{line} of {len(paths):,} shards"
    return f"{line}: {first_of([f'{record:,}' for _, record in records], _POSITIONS)}"
