"""What a terminal and a page show of statistics: the main figures, tables and findings.

The tables are next to the statistics that they show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recordsmith.checking.shard_summaries import PAYLOADS
from recordsmith.checking.stats.class_counts import TEXT_OF_LABEL
from recordsmith.checking.stats.feature_stats import (
    BytesStats,
    bytes_table,
    features_table,
    numbers_table,
)
from recordsmith.checking.stats.findings import group_findings
from recordsmith.checking.stats.record_builder import MAX_FEATURES, MAX_LEFT_OUT
from recordsmith.support.reports import ReportContent, ReportTable
from recordsmith.support.words import count as format_count
from recordsmith.support.words import size as format_size

if TYPE_CHECKING:
    from recordsmith.checking.stats.stats_report import StatsReport

_FOREIGN = ("ELWC", "Event", "other")


def stats_content(report: StatsReport) -> ReportContent:
    """Return what a terminal and a page show of statistics."""
    findings = len(report.findings)
    size = format_size(report.size_bytes)
    number = len(report.payloads)
    payloads = ", ".join(
        PAYLOADS[payload][n != 1] if number == 1 else format_count(n, *PAYLOADS[payload])
        for payload, n in report.payloads.items()
    )
    shards = format_count(len(report.shards), "shard")
    summary = f"{format_count(report.record_count, 'record')} in {shards}, {size}"
    return ReportContent(
        summary=f"{summary}: {payloads}" if payloads else summary,
        verdict=format_count(findings, "finding") if findings else "no findings",
        level="note" if findings else "good",
        figures=(
            (f"{report.record_count:,}", "records"),
            (f"{len(report.shards):,}", "shards"),
            (size, "read"),
            (f"{sum(map(len, report.sections.values())):,}", "features"),
        ),
        tables=[table for table in _tables(report) if table.rows],
        findings=[*group_findings(report.findings)],
        notes=[*_notes(report)],
    )


def _tables(report: StatsReport) -> Iterator[ReportTable]:
    yield report.splits_table()
    for section, features in report.sections.items():
        yield features_table(section, features)
        yield numbers_table(features)
        yield bytes_table(features)
        for key, feature in features.items():
            values = feature.values.get("bytes")
            if isinstance(values, BytesStats) and values.images is not None:
                yield values.images.table(key, values.sizes)
    counts = {key: classes.by_split() for key, classes in report.classes.items()}
    repeated = {  # texts that only repeat the names of the labels
        text for key, text in TEXT_OF_LABEL.items() if counts.get(key) == counts.get(text)
    }
    for key, classes in report.classes.items():
        if key not in repeated:
            yield classes.table(key)
    for key, masks in report.masks.items():
        yield masks.table(key)
    if report.boxes is not None:
        yield report.boxes.table()
    if report.episodes is not None:
        yield report.episodes.table()


def _notes(report: StatsReport) -> Iterator[str]:
    if report.left_out:
        least = "at least " if report.left_out >= MAX_LEFT_OUT else ""
        have = "has" if report.left_out == 1 else "have"
        yield (
            f"{least}{format_count(report.left_out, 'more feature')} {have} no statistics: only "
            f"the first {MAX_FEATURES:,} get them. If feature names contain values, such as an id, "
            "store these in one feature with the same name in all records."
        )
    number = sum(report.payloads.get(payload, 0) for payload in _FOREIGN)
    if number:
        is_all = number == report.record_count
        records = "all records" if is_all else format_count(number, "record")
        are = "is not an Example" if number == 1 and not is_all else "are not Examples"
        yield f"{records} {are}: only sizes are shown. `recordsmith head` shows their contents"
