"""What a terminal and a page show of a verification: each kind of defect, and their places."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from recordsmith.errors import DAMAGED_RECORDS, SHOWN_RECORDS, DataError, Defect
from recordsmith.examining.verification.defect_explanations import explain
from recordsmith.reports import Example, Place, ReportContent, ReportTable, ShownFinding, Strip
from recordsmith.words import count as format_count
from recordsmith.words import size as format_size

if TYPE_CHECKING:
    from recordsmith.examining.verification.verify_report import ShardFindings, VerifyReport

_EXAMPLES = 10  # of a kind of defect
_ENDS_READING = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION, Defect.DECOMPRESSION_LIMIT)


def verify_content(report: VerifyReport) -> ReportContent:
    """Return what a terminal and a page show of a verification."""
    errors = (*report.defects, *report.notices)
    paths = [*(shard.path for shard in report.shards), *(e.path for e in errors if e.path)]
    names = distinct_names(dict.fromkeys(paths))
    verdict = "good" if report.is_good else format_count(report.defect_count, "defect")
    intact = "intact records" if report.record_count != 1 else "intact record"
    if report.expected_record_count not in (None, report.record_count):
        intact = f"intact of {report.expected_record_count:,} records"
    figures = [
        (f"{report.record_count:,}", intact),
        (f"{report.shard_count:,}", "shards"),
        (format_size(report.size_bytes), "read"),
    ]
    if report.image_count:
        figures.append((f"{report.image_count:,}", "images decoded"))
    shards = format_count(report.shard_count, "shard")
    what = "Every checksum, payload and image" if report.is_deep else "Every checksum"
    reached = "" if report.is_good else " that could be reached"
    tables = (
        _shards(report, names),
        _errors("Defects", report.defects, report.defect_count, names),
        _errors("Notices", report.notices, len(report.notices), names),
    )
    return ReportContent(
        summary=f"{verdict}: {report.record_count:,} {intact} in {shards}, {figures[2][0]}. "
        f"{what}{reached} was checked{', with exceptions:' if report.unchecked else '.'}",
        verdict=verdict,
        level="good" if report.is_good else "bad",
        figures=figures,
        tables=[table for table in tables if table.rows],
        findings=[*_findings(report)],
        notes=[*report.unchecked, *_notes(report)],
    )


def _notes(report: VerifyReport) -> Iterator[str]:
    if any(error.defect in _ENDS_READING for error in report.defects):
        yield "Records after the damage were not checked: `recordsmith salvage` searches them."
    if any(
        error.offset is not None and error.path in report.compressions for error in report.defects
    ):
        yield "In compressed files, offsets count decompressed bytes."
    compressions = [*report.compressions.values()]
    for name in ("gzip", "zlib"):
        if name in compressions:  # TensorFlow cannot detect it
            which = "the file is"
            if report.shard_count > 1:
                which = f"{compressions.count(name):,} of {report.shard_count:,} files are"
            yield (
                f"{which} compressed with {name}: TensorFlow needs "
                f'`compression_type="{name.upper()}"`; otherwise it reports "corrupted record at 0"'
            )


def _findings(report: VerifyReport) -> Iterator[ShownFinding]:
    """Explain each kind of defect, with its first places; records that `head` can show as well."""
    unreadable = {
        error.path
        for error in report.defects
        if error.defect in DAMAGED_RECORDS
        and (error.defect is not Defect.PAYLOAD_CRC or error.path in report.compressions)
    }
    for errors, is_notice in ((report.defects, False), (report.notices, True)):
        kinds: dict[Defect, list[DataError]] = {}
        for error in errors:
            kinds.setdefault(error.defect, []).append(error)
        for kind, alike in sorted(kinds.items(), key=lambda item: -len(item[1])):
            meaning, advice = explain(kind)
            yield ShownFinding(
                str(kind),
                meaning,
                advice,
                severity="notice" if is_notice else "",
                level="note" if is_notice else "bad",
                count=len(alike),
                examples=[Example(str(error)) for error in alike[:_EXAMPLES]],
                places=[
                    Place(str(error.path), error.record)
                    for error in alike[:_EXAMPLES]
                    if kind in SHOWN_RECORDS
                    and error.record is not None
                    and error.path not in (None, *unreadable)
                ],
            )


def _shards(report: VerifyReport, names: Mapping[str, str]) -> ReportTable:
    rows = []
    for shard in sorted(report.shards, key=lambda shard: shard.is_good):  # bad ones first, in order
        note = f"{format_count(shard.record_count, 'record')}, {format_size(shard.size_bytes)}"
        if not shard.is_good:
            note += f", {format_count(shard.defect_count, 'defect')}"
        rows.append((names[shard.path], _strip(shard), note))
    legend = ""
    if not report.is_good:
        compressed = ", or for a compressed file from its first record to the last one read"
        legend = (
            "Each bar is a file from its first byte to its last"
            f"{compressed if report.compressions else ''}. Grey: skipped, because the framing "
            "before it is damaged; red: the whole file is invalid."
        )
    title = "Shards" if report.is_good else "Location of defects"
    return ReportTable(
        title, ("file", "", "records"), rows, ("records",), note=legend, terminal_rows=0
    )


def _strip(shard: ShardFindings) -> Strip:
    places = [(_share(shard, error), error) for error in shard.defects]
    marks = [(share, _tip(error)) for share, error in places if share is not None]
    if not shard.is_good and not marks:
        return Strip("bad", (), is_whole=True)
    ends = [share for share, error in places if error.defect in _ENDS_READING and share is not None]
    return Strip("good" if shard.is_good else "bad", marks, ends[0] if ends else 1)


def _tip(error: DataError) -> str:
    place = "" if error.record is None else f"record {error.record:,}: "
    return f"{place}{error.defect}"


def _share(shard: ShardFindings, error: DataError) -> float | None:
    """The position of a defect in the file, from 0 to 1; None if it affects the whole file."""
    if error.defect is Defect.NOT_A_TFRECORD and not shard.seen_count:
        return None
    is_plain = shard.compression in (None, "none")  # otherwise offsets count decompressed bytes
    if is_plain and error.offset is not None and error.offset < shard.size_bytes:
        return error.offset / shard.size_bytes
    if error.record is not None and shard.seen_count:
        return min(1.0, error.record / shard.seen_count)
    return None


def _errors(
    title: str, errors: Iterable[DataError], total: int, names: Mapping[str, str]
) -> ReportTable:
    rows = [
        (
            names[error.path] if error.path else "",
            "" if error.record is None else f"{error.record:,}",
            "" if error.offset is None else f"{error.offset:,}",
            str(error.defect),
            error.detail,
        )
        for error in errors
    ]
    heads = ("file", "record", "byte", "defect", "what")
    more = total - len(rows)
    return ReportTable(title, heads, rows, ("record", "byte"), terminal_rows=0, more=more)


def distinct_names(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to its part below the folder that all have in common."""
    listed = list(paths)
    start = os.path.commonprefix(listed).rfind("/") + 1  # noqa: RUF071 - cut at a folder
    return {path: path[start:] for path in listed}
