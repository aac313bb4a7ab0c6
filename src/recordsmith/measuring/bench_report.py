"""The measurements so far. Immutable, so that they can be shown while measuring continues."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from recordsmith.errors import DataError
from recordsmith.loading.order.link import Link
from recordsmith.summaries import Report


@dataclass(frozen=True)
class Measured:
    """One measurement of loading, without the warm-up.

    Attributes:
        seconds: the total time.
        waited_seconds: the time for which the loop waited for batches.
        batch_count, record_count, byte_count: what was loaded; bytes as stored.
        reading_seconds, decoding_seconds, idle_seconds: summed over all threads.
        cpu_seconds: of the whole process.
        image_pixel_count, decoded_pixel_count: pixels of the images, and how many were decoded.
    """

    seconds: float = 0.0
    batch_count: int = 0
    record_count: int = 0
    byte_count: int = 0
    reading_seconds: float = 0.0
    decoding_seconds: float = 0.0
    idle_seconds: float = 0.0
    waited_seconds: float = 0.0
    cpu_seconds: float = 0.0
    image_pixel_count: int = 0
    decoded_pixel_count: int = 0

    @property
    def records_per_second(self) -> float:
        return self.record_count / self.seconds if self.seconds else 0.0

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(Measured))
        )


@dataclass(frozen=True)
class Trial:
    """One way to load a dataset, with its measurements.

    Attributes:
        name: `requested` for the requested options; `threads`, `order`, `sample`, `tiles` or
            `smaller` for alternatives.
        thread_count: the number of threads.
        order: `in order`, `shuffled`, `blocks` or `buffer`.
        shorter_side: for `smaller`, the shorter side of the resized images.
        rounds: the measurements.
    """

    name: str
    thread_count: int
    order: str
    shorter_side: int | None = None
    rounds: tuple[Measured, ...] = ()

    @property
    def label(self) -> str:
        """What the trial measures, as text."""
        threads = f"{self.thread_count} thread{'s' * (self.thread_count != 1)}"
        return {
            "requested": "as given",
            "threads": threads,
            "order": self.order,
            "sample": "sample",
            "tiles": "sample, tiles",
            "smaller": f"sample, shorter side {self.shorter_side}",
        }[self.name]

    @property
    def total(self) -> Measured:
        """All rounds together."""
        return sum(self.rounds, Measured())

    @property
    def records_per_second(self) -> float:
        """Records per second, over all rounds."""
        return self.total.records_per_second

    @property
    def bytes_per_second(self) -> float:
        """Stored bytes per second, over all rounds."""
        total = self.total
        return total.byte_count / total.seconds if total.seconds else 0.0

    @property
    def record_bytes(self) -> float:
        """Stored bytes of a record, on average."""
        total = self.total
        return total.byte_count / total.record_count if total.record_count else 0.0

    @property
    def cpu_microseconds(self) -> float:
        """CPU time of the process for a record, in microseconds."""
        total = self.total
        return 1e6 * total.cpu_seconds / total.record_count if total.record_count else 0.0

    @property
    def decoded_share(self) -> float | None:
        """The share of the images' pixels that was decoded; None without images."""
        total = self.total
        if not total.image_pixel_count:
            return None
        return total.decoded_pixel_count / total.image_pixel_count

    @property
    def lowest(self) -> float:
        """Records per second of the slowest round."""
        return min((one.records_per_second for one in self.rounds), default=0.0)

    @property
    def highest(self) -> float:
        """Records per second of the fastest round."""
        return max((one.records_per_second for one in self.rounds), default=0.0)

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the threads' time: `reading`, `decoding`, `idle`; they sum to 1."""
        total = self.total
        parts = {
            "reading": total.reading_seconds,
            "decoding": total.decoding_seconds,
            "idle": total.idle_seconds,
        }
        whole = sum(parts.values())
        return {name: seconds / whole if whole else 0.0 for name, seconds in parts.items()}

    @property
    def waiting_share(self) -> float:
        """The share of the time for which the loop waited for batches."""
        total = self.total
        return total.waited_seconds / total.seconds if total.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; counts are named rounds, batches, records, bytes, threads."""
        total = self.total
        return {
            "name": self.name,
            "threads": self.thread_count,
            "order": self.order,
            "shorter_side": self.shorter_side,
            "rounds": len(self.rounds),
            "seconds": total.seconds,
            "batches": total.batch_count,
            "records": total.record_count,
            "bytes": total.byte_count,
            "records_per_second": self.records_per_second,
            "lowest_records_per_second": self.lowest,
            "highest_records_per_second": self.highest,
            "bytes_per_second": self.bytes_per_second,
            "reading_seconds": total.reading_seconds,
            "decoding_seconds": total.decoding_seconds,
            "idle_seconds": total.idle_seconds,
            "waited_seconds": total.waited_seconds,
            "cpu_seconds": total.cpu_seconds,
            "decoded_share": self.decoded_share,
        }


@dataclass(frozen=True)
class ImageSample:
    """A sample of images, unchanged, with tiles and at a smaller size.

    Attributes:
        count: the number of images.
        byte_count: the size of their files.
        tiles_byte_count, smaller_byte_count: that of the others; None if they are not measured.
    """

    count: int
    byte_count: int
    tiles_byte_count: int | None = None
    smaller_byte_count: int | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict: images, bytes, tiles_bytes, smaller_bytes."""
        return {
            "images": self.count,
            "bytes": self.byte_count,
            "tiles_bytes": self.tiles_byte_count,
            "smaller_bytes": self.smaller_byte_count,
        }


@dataclass(frozen=True, repr=False)
class BenchReport(Report):
    """The results of `bench` so far.

    record_count, size_bytes: of the dataset; bytes of its shards.
    batch_size: examples in a batch.
    image_key: the feature whose images are decoded; None where there are none: then all
        features are read as columns.
    image: how images are decoded, as text.
    compression: of the shards: none, gzip, zlib or mixed.
    processor_count: the number of available processors.
    cached_share: the estimated share of the files in memory before the measurement; None if
        unknown.
    trials: the measurements; the first one is of the requested options.
    sample: of the trials `sample`, `tiles` and `smaller`.
    link: the network between this machine and the dataset; None if the dataset is local.
    skipped: the errors of skipped records.
    elapsed_seconds, total_seconds: the time since the start, and the time limit.
    activity: what is measured now, as text; empty at the end.
    advice: sentences based on these figures.
    """

    record_count: int
    size_bytes: int
    batch_size: int
    image_key: str | None
    image: str
    compression: str
    processor_count: int
    cached_share: float | None
    total_seconds: float
    trials: tuple[Trial, ...] = ()
    sample: ImageSample | None = None
    link: Link | None = None
    skipped: tuple[DataError, ...] = ()
    elapsed_seconds: float = 0.0
    activity: str = ""
    advice: tuple[str, ...] = field(default=())

    @property
    def requested(self) -> Trial:
        """The measurement of the requested options."""
        return self.trials[0]

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON-able dict; counts are named records, threads."""
        return {
            "records": self.record_count,
            "size_bytes": self.size_bytes,
            "batch_size": self.batch_size,
            "image_key": self.image_key,
            "image": self.image,
            "compression": self.compression,
            "processors": self.processor_count,
            "cached_share": self.cached_share,
            "elapsed_seconds": self.elapsed_seconds,
            "is_complete": not self.activity,
            "trials": [trial.to_json() for trial in self.trials],
            "sample": None if self.sample is None else self.sample.to_json(),
            "link": None if self.link is None else asdict(self.link),
            "skipped": list(map(str, self.skipped)),
            "advice": list(self.advice),
        }
