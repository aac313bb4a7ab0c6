"""The measurement of `bench`, what it shows, and advice that is based on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from recordsmith.loading.loader_stats import LoaderStats
from recordsmith.support.errors import DataError
from recordsmith.support.reports import Bar, Example, ReportContent, ReportTable, ShownFinding
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count
from recordsmith.support.words import percent
from recordsmith.support.words import size as format_size


@dataclass(frozen=True, repr=False)
class BenchReport(Report):
    """The results of `bench` so far.

    record_count, size_bytes: of the dataset; bytes of its shards.
    batch_size: examples in a batch.
    image_key: the feature whose images are decoded; None where there are none: then all
        features are read as columns.
    image: how images are decoded, as text.
    order: `in order` or `shuffled`.
    total_seconds, elapsed_seconds: the time limit, and the time since the start.
    is_complete: whether the measurement is done.
    measured: the statistics of the loader after the warm-up; its `elapsed_seconds` are this time.
    cpu_seconds: CPU time of the process in this time.
    skipped: the errors of skipped records.
    """

    record_count: int
    size_bytes: int
    batch_size: int
    image_key: str | None
    image: str
    order: str
    total_seconds: float
    elapsed_seconds: float = 0.0
    is_complete: bool = False
    measured: LoaderStats = field(default_factory=LoaderStats)
    cpu_seconds: float = 0.0
    skipped: tuple[DataError, ...] = ()

    @property
    def rate(self) -> str:
        """The throughput as text."""
        unit = "records/s" if self.image_key is None else "images/s"
        return f"{self.measured.records_per_second:,.0f} {unit}"

    @property
    def stages(self) -> dict[str, float]:
        """The seconds of all threads by stage."""
        measured = self.measured
        return {
            "reading": measured.reading_seconds,
            "decoding": measured.decoding_seconds,
            "idle": measured.idle_seconds,
        }

    @property
    def shares(self) -> dict[str, float]:
        """The share of each stage in the threads' time; they sum to 1."""
        whole = sum(self.stages.values()) or 1.0
        return {name: seconds / whole for name, seconds in self.stages.items()}

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences on what limits the loader, based on these figures."""
        if not self.measured.batch_count:
            return ()
        return tuple(_advice(self))

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON-able dict; counts are named records, threads."""
        dataset = ("record_count", "size_bytes", "batch_size", "image_key", "image")
        measurement = ("order", "elapsed_seconds", "is_complete", "measured", "cpu_seconds")
        return {
            **fields_to_json(self, dataset),
            "processors": self.measured.processor_count,
            "threads": self.measured.thread_count,
            **fields_to_json(self, measurement),
            "is_remote": self.measured.is_remote,
            "skipped": list(map(str, self.skipped)),
            "advice": list(self.advice),
        }

    def content(self) -> ReportContent:
        """Return what a terminal shows."""
        measured = self.measured
        what = "all columns" if self.image_key is None else f"{self.image_key} to {self.image}"
        threads = format_count(self.measured.thread_count, "thread")
        speed = f"{format_size(measured.bytes_per_second)}/s"
        per_record = 1e6 / max(1, measured.record_count)
        rows = [
            (
                name,
                percent(self.shares[name]),
                f"{seconds * per_record:,.0f}",
                Bar(self.shares[name]),
            )
            for name, seconds in self.stages.items()
        ]
        heads = ("threads", "of their time", "µs/record", "")
        note = f"{self.cpu_seconds * per_record:,.0f} µs of CPU time for each record"
        if measured.decoded_share is not None:
            note += f"; {percent(measured.decoded_share)} of the pixels were decoded"
        places = [place for error in self.skipped if (place := error.shown_place)]
        skipped = ShownFinding(
            "skipped",
            "records that cannot be read.",
            count=len(self.skipped),
            examples=[Example(str(error)) for error in self.skipped],
            places=places,
        )
        return ReportContent(
            summary=f"{self.rate}, {speed}: {what}, batches of {self.batch_size:,}, {threads}, "
            f"{self.order}",
            verdict=self.rate,
            level="good",
            figures=[(self.rate, "loaded"), (speed, "read")],
            tables=[ReportTable("", heads, rows, heads[1:3], note=note)],
            findings=[skipped] if self.skipped else [],
            notes=self.advice,
        )


def _advice(report: BenchReport) -> Iterator[str]:
    yield report.measured.bottleneck
    rate = report.measured.records_per_second
    if rate:
        count = min(report.batch_size, report.record_count)
        yield (
            f"A training step on a batch of {count:,} that takes longer than "
            f"{_rounded(1000 * count / rate)} ms will not wait for this loader."
        )
    if not report.measured.is_remote:
        yield (
            "Files in the page cache are read from memory: to measure the disk, use more data than "
            "fits there."
        )
    if report.record_count < report.batch_size:
        yield (
            f"The dataset has less than a batch of records: each batch was an epoch of "
            f"{report.record_count:,}."
        )


def _rounded(number: float) -> str:
    """Round to three significant digits: 1,230; 45.6."""
    return f"{float(f'{number:.3g}'):,.10g}"
