"""What the page of a verification shows: each kind of defect, their places, and all of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from recordsmith.errors import DataError, Defect
from recordsmith.examining.verification import ShardFindings, VerifyReport
from recordsmith.examining.verification.defect_explanations import explain
from recordsmith.reports import Level, ReportContent, ReportTable, ShownFinding, Strip
from recordsmith.wire import Compression
from recordsmith.words import count as format_count
from recordsmith.words import size as format_size

_ENDS_READING = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION, Defect.DECOMPRESSION_LIMIT)


def verify_content(report: VerifyReport) -> ReportContent:
    """Return what the page of a verification shows."""
    errors = (*report.defects, *report.notices)
    names = distinct_names(
        dict.fromkeys(
            [
                *(shard.path for shard in report.shards),
                *(error.path for error in errors if error.path),
            ]
        )
    )
    what = "Every checksum, payload and image" if report.is_deep else "Every checksum"
    reached = "" if report.is_good else " that could be reached"
    intact = "intact records"
    if report.expected_record_count not in (None, report.record_count):
        intact = f"intact of {report.expected_record_count:,} records"
    figures = [
        (f"{report.record_count:,}", intact),
        (f"{report.shard_count:,}", "shards"),
        (format_size(report.size_bytes), "read"),
    ]
    if report.image_count:
        figures.append((f"{report.image_count:,}", "images decoded"))
    tables = (
        _shards(report, names),
        _errors("Defects", report.defects, report.defect_count, names, report.compressions),
        _errors("Notices", report.notices, len(report.notices), names, report.compressions),
    )
    return ReportContent(
        summary=f"{what}{reached} was checked{', with exceptions:' if report.unchecked else '.'}",
        verdict="good" if report.is_good else format_count(report.defect_count, "defect"),
        level="good" if report.is_good else "bad",
        figures=figures,
        tables=[table for table in tables if table.rows],
        findings=[*_kinds(report)],
        notes=report.unchecked,
    )


def _kinds(report: VerifyReport) -> Iterator[ShownFinding]:
    """Explain each kind of defect."""
    for errors, is_notice in ((report.defects, False), (report.notices, True)):
        for name, count in Counter(str(error.defect) for error in errors).most_common():
            meaning, advice = explain(name)
            level: Level = "note" if is_notice else "bad"
            yield ShownFinding(name, meaning, advice, level=level, count=count)


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
    return ReportTable(title, ("file", "", "records"), rows, ("records",), note=legend)


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
    title: str,
    errors: Iterable[DataError],
    total: int,
    names: Mapping[str, str],
    compressions: Mapping[str, Compression],
) -> ReportTable:
    listed = list(errors)
    is_compressed = any(e.offset is not None and e.path in compressions for e in listed)
    rows = [
        (
            names[error.path] if error.path else "",
            "" if error.record is None else f"{error.record:,}",
            "" if error.offset is None else f"{error.offset:,}",
            str(error.defect),
            error.detail,
        )
        for error in listed
    ]
    heads = ("file", "record", "byte", "defect", "what")
    more = total - len(listed)
    note = "In compressed files, offsets count decompressed bytes." if is_compressed else ""
    return ReportTable(title, heads, rows, ("record", "byte"), note=note, more=more)


def distinct_names(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to its part below the folder that all have in common."""
    listed = list(paths)
    start = os.path.commonprefix(listed).rfind("/") + 1  # noqa: RUF071 - cut at a folder
    return {path: path[start:] for path in listed}
