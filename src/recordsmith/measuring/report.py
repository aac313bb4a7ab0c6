"""What was measured so far. Immutable, so that it can be shown while the measuring goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Measured:
    """One stretch of loading, after a first batch that does not count.

    seconds: how long it took, of which the loop waited for batches `waited_seconds`.
    batch_count, record_count, byte_count: what came out; bytes as they are stored.
    reading_seconds, decoding_seconds, idle_seconds: of all threads together.
    """

    seconds: float = 0.0
    batch_count: int = 0
    record_count: int = 0
    byte_count: int = 0
    reading_seconds: float = 0.0
    decoding_seconds: float = 0.0
    idle_seconds: float = 0.0
    waited_seconds: float = 0.0

    @property
    def records_per_second(self) -> float:
        return self.record_count / self.seconds if self.seconds else 0.0

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            *(getattr(self, part.name) + getattr(other, part.name) for part in fields(Measured))
        )


@dataclass(frozen=True)
class Trial:
    """One way to load, and what was measured of it, in as many rounds as there was time for.

    name: `asked` for what was asked for; `threads`, `order`, `sample`, `smaller` for what else is
        tried.
    thread_count: how many threads work.
    order: `in order`, `shuffled`, `blocks` or `buffer`.
    shorter_side: of `smaller`, the side that the pictures of the sample were brought to.
    rounds: one for each time that it was measured.
    """

    name: str
    thread_count: int
    order: str
    shorter_side: int | None = None
    rounds: tuple[Measured, ...] = ()

    @property
    def in_words(self) -> str:
        """What it tries."""
        threads = f"{self.thread_count} thread{'s' * (self.thread_count != 1)}"
        return {
            "asked": "as asked",
            "threads": threads,
            "order": self.order,
            "sample": "some of the pictures",
            "smaller": f"these at a shorter side of {self.shorter_side}",
        }[self.name]

    @property
    def total(self) -> Measured:
        """All rounds together."""
        return sum(self.rounds, Measured())

    @property
    def records_per_second(self) -> float:
        """Over all rounds."""
        return self.total.records_per_second

    @property
    def bytes_per_second(self) -> float:
        """Bytes as they are stored, over all rounds."""
        total = self.total
        return total.byte_count / total.seconds if total.seconds else 0.0

    @property
    def lowest(self) -> float:
        """Records a second of the slowest round."""
        return min((one.records_per_second for one in self.rounds), default=0.0)

    @property
    def highest(self) -> float:
        """Records a second of the fastest round."""
        return max((one.records_per_second for one in self.rounds), default=0.0)

    @property
    def shares(self) -> dict[str, float]:
        """How the time of the threads was spent: `reading`, `decoding`, `idle`, of 1 in all."""
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
        """For which part of the time the loop waited for batches."""
        total = self.total
        return total.waited_seconds / total.seconds if total.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; counts are called rounds, batches, records, bytes, threads."""
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
        }


@dataclass(frozen=True)
class Sample:
    """Some pictures of the dataset, as they are and at a smaller side.

    count: how many.
    byte_count, smaller_byte_count: of their files.
    """

    count: int
    byte_count: int
    smaller_byte_count: int

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict: pictures, bytes, smaller_bytes."""
        return {
            "pictures": self.count,
            "bytes": self.byte_count,
            "smaller_bytes": self.smaller_byte_count,
        }


@dataclass(frozen=True)
class BenchReport:
    """What `bench` has measured so far.

    record_count, size_bytes: of the dataset; bytes of its shards.
    batch_size: examples in a batch.
    picture_key: the feature whose pictures are decoded; None where there are none: then all
        features are read as columns.
    picture: what becomes of the pictures, in words.
    compression: of the shards: none, gzip, zlib or mixed.
    processor_count: how many threads can work at once.
    cached_share: which part of the files was in the system's memory before anything was measured,
        as a sample of places tells; None where the system does not say.
    trials: what was measured; the first is what was asked for.
    sample: of the trials `sample` and `smaller`.
    skipped: records that were left out, and why.
    elapsed_seconds, total_seconds: since it began; that it may take.
    doing: what is measured now, in words; empty at the end.
    advice: sentences on what would help, from these figures.
    """

    record_count: int
    size_bytes: int
    batch_size: int
    picture_key: str | None
    picture: str
    compression: str
    processor_count: int
    cached_share: float | None
    total_seconds: float
    trials: tuple[Trial, ...] = ()
    sample: Sample | None = None
    skipped: tuple[str, ...] = ()
    elapsed_seconds: float = 0.0
    doing: str = ""
    advice: tuple[str, ...] = field(default=())

    @property
    def asked(self) -> Trial:
        """What was measured of that which was asked for."""
        return self.trials[0]

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called records, threads."""
        return {
            "records": self.record_count,
            "size_bytes": self.size_bytes,
            "batch_size": self.batch_size,
            "picture_key": self.picture_key,
            "picture": self.picture,
            "compression": self.compression,
            "processors": self.processor_count,
            "cached_share": self.cached_share,
            "elapsed_seconds": self.elapsed_seconds,
            "is_complete": not self.doing,
            "trials": [trial.to_json() for trial in self.trials],
            "sample": None if self.sample is None else self.sample.to_json(),
            "skipped": list(self.skipped),
            "advice": list(self.advice),
        }
