"""The report of a verification: findings for each shard and for the whole dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recordsmith.checking.verification.defect_explanations import EXPLANATIONS
from recordsmith.format.wire import Compression
from recordsmith.support.errors import DAMAGED_RECORDS, DataError, Defect
from recordsmith.support.reports import (
    Example,
    ReportContent,
    ReportTable,
    ShownFinding,
    SourceLocation,
    Strip,
)
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.words import common_prefix
from recordsmith.support.words import count as format_count
from recordsmith.support.words import size as format_size

MAX_DEFECTS_PER_SHARD = 1000
"""How many defects of a shard are listed; further ones are only counted."""

_EXAMPLES = 10  # of a kind of defect
_ENDS_READING = (Defect.LENGTH_CRC, Defect.BROKEN_COMPRESSION, Defect.DECOMPRESSION_LIMIT)
_ERROR_FIELDS = ("defect", "path", "record", "offset", "feature", "detail")


@dataclass
class ShardFindings:
    """The findings for one shard.

    path: path of the file.
    size_bytes: size of the file when reading began.
    compression: none, gzip or zlib, detected from the first bytes; None if not detected.
    record_count: number of intact records.
    seen_count: number of records, intact or not, up to a damaged length.
    defects: the first defects, at most MAX_DEFECTS_PER_SHARD.
    defect_count: number of all defects.
    notices: findings that are not defects.
    checksum: CRC-32C of the file; None if it was not read completely.
    is_read: whether the file could be read.
    image_count: number of decoded images.
    places: the record, defect and detail of all defects; None to keep none.
    """

    path: str
    size_bytes: int = 0
    compression: Compression | None = None
    record_count: int = 0
    seen_count: int = 0
    defects: list[DataError] = field(default_factory=list)
    defect_count: int = 0
    notices: list[DataError] = field(default_factory=list)
    checksum: int | None = None
    is_read: bool = True
    image_count: int = 0
    places: list[tuple[int | None, str, str]] | None = None

    @property
    def is_good(self) -> bool:
        """Whether the shard has no defects."""
        return self.defect_count == 0

    def add(self, errors: Iterable[DataError]) -> None:
        given = list(errors)
        for error in given:
            if error.path is None:
                error.path = self.path
        if self.places is not None:
            self.places += [(error.record, str(error.defect), error.detail) for error in given]
        self.defects += given[: max(0, MAX_DEFECTS_PER_SHARD - len(self.defects))]
        self.defect_count += len(given)

    def notice(self, errors: Iterable[DataError]) -> None:
        for error in errors:
            if error.path is None:
                error.path = self.path
            self.notices.append(error)


@dataclass(repr=False)
class VerifyReport(Report):
    """The report of a verification.

    record_count: number of intact records.
    expected_record_count: number of records in the manifest, including missing shards; None without
        a manifest.
    shard_count: number of shards read.
    size_bytes: number of bytes read.
    defects: the defects found, at most 1,000 per shard.
    defect_count: number of all defects.
    notices: findings that are not defects: bad reads that were right the second time, files that
        changed while they were being read.
    shards: the findings for each shard.
    image_count: number of decoded images.
    is_deep: whether payloads and images were checked, not only checksums.
    unchecked: what was not checked, and why.
    """

    _shown = ("is_good",)

    record_count: int = 0
    expected_record_count: int | None = None
    shard_count: int = 0
    size_bytes: int = 0
    defects: list[DataError] = field(default_factory=list)
    defect_count: int = 0
    notices: list[DataError] = field(default_factory=list)
    shards: list[ShardFindings] = field(default_factory=list)
    image_count: int = 0
    is_deep: bool = False
    unchecked: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether no defects were found."""
        return self.defect_count == 0

    @property
    def compressions(self) -> dict[str, Compression]:
        """The compression of each compressed shard, by path; offsets count decompressed bytes."""
        return {
            shard.path: shard.compression
            for shard in self.shards
            if shard.compression not in (None, "none")
        }

    def add(self, defects: Iterable[DataError]) -> None:
        """Add defects that do not belong to a shard that was read."""
        listed = list(defects)
        self.defects += listed
        self.defect_count += len(listed)

    def add_shard(self, shard: ShardFindings, *, is_of_layer: bool = False) -> None:
        """Add what was found in a shard, or in the file of a layer, which adds no records."""
        if not is_of_layer:
            self.shards.append(shard)
            self.shard_count += 1
            self.record_count += shard.record_count
        self.size_bytes += shard.size_bytes
        self.image_count += shard.image_count
        self.defects += shard.defects
        self.defect_count += shard.defect_count
        self.notices += shard.notices

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        errors = (*self.defects, *self.notices)
        paths = [*(shard.path for shard in self.shards), *(e.path for e in errors if e.path)]
        names = distinct_names(dict.fromkeys(paths))
        verdict = "good" if self.is_good else format_count(self.defect_count, "defect")
        intact = "intact records" if self.record_count != 1 else "intact record"
        if self.expected_record_count not in (None, self.record_count):
            intact = f"intact of {self.expected_record_count:,} records"
        figures = [
            (f"{self.record_count:,}", intact),
            (f"{self.shard_count:,}", "shards"),
            (format_size(self.size_bytes), "read"),
        ]
        if self.image_count:
            figures.append((f"{self.image_count:,}", "images decoded"))
        shards = format_count(self.shard_count, "shard")
        what = "Every checksum, payload and image" if self.is_deep else "Every checksum"
        reached = "" if self.is_good else " that could be reached"
        tables = (
            _shards(self, names),
            _errors("Defects", self.defects, self.defect_count, names),
            _errors("Notices", self.notices, len(self.notices), names),
        )
        return ReportContent(
            summary=f"{verdict}: {self.record_count:,} {intact} in {shards}, {figures[2][0]}. "
            f"{what}{reached} was checked{', with exceptions:' if self.unchecked else '.'}",
            verdict=verdict,
            level="good" if self.is_good else "bad",
            figures=figures,
            tables=[table for table in tables if table.rows],
            findings=[*_findings(self)],
            notes=[*self.unchecked, *_notes(self)],
        )

    def to_json(self) -> dict[str, Any]:
        """Return records, expected, shards, size_bytes, images, deep, defect_count, defects,
        notices, explanations and unchecked.

        Each defect and notice has defect, path, record, offset, feature (null if unknown) and
        detail. `explanations` maps each defect name that occurs to its meaning and advice.
        """
        defects = dict.fromkeys(error.defect for error in (*self.defects, *self.notices))
        return {
            "records": self.record_count,
            "expected": self.expected_record_count,
            "shards": self.shard_count,
            "size_bytes": self.size_bytes,
            "images": self.image_count,
            "deep": self.is_deep,
            "defect_count": self.defect_count,
            "defects": [fields_to_json(error, _ERROR_FIELDS) for error in self.defects],
            "notices": [fields_to_json(error, _ERROR_FIELDS) for error in self.notices],
            "explanations": {str(defect): EXPLANATIONS[defect]._asdict() for defect in defects},
            "unchecked": self.unchecked,
        }


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
    """Explain each kind of defect, with its first places; records that can be shown as well."""
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
            meaning, advice = EXPLANATIONS[kind]
            yield ShownFinding(
                str(kind),
                meaning,
                advice,
                severity="notice" if is_notice else "",
                level="note" if is_notice else "bad",
                count=len(alike),
                examples=[Example(str(error), place=_place(error)) for error in alike[:_EXAMPLES]],
                places=[
                    place
                    for error in alike[:_EXAMPLES]
                    if (place := error.shown_place) and error.path not in unreadable
                ],
            )


def _place(error: DataError) -> SourceLocation | None:
    if error.path is None or error.record is None:
        return None
    return SourceLocation(str(error.path), error.record)


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
    start = common_prefix(listed).rfind("/") + 1
    return {path: path[start:] for path in listed}
