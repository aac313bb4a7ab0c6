"""Where does the time of a loader go, and what would make it faster?

Each batch carries what was spent on it; a `Tally` adds that up when the batch is handed out, in the
thread of the one who asks, together with the time on either side of asking. Nothing is measured
record by record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

_READY_SHARE = 0.1  # who waits less than this for batches is not held up by them


@dataclass
class Spent:
    """What a batch took: seconds of threads, and what was read for it."""

    reading_seconds: float = 0.0
    decoding_seconds: float = 0.0
    function_seconds: float = 0.0
    record_count: int = 0
    byte_count: int = 0
    refused_count: int = 0

    def add(self, other: Spent) -> None:
        """Add what another batch took."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class LoaderStats:
    """What a loader's last iteration did so far, up to the batch that it handed out last.

    elapsed_seconds: from asking for the first batch on.
    first_batch_seconds: how long the first batch took; it is in none of the shares below.
    waited_seconds: how long the loop waited for the batches after it.
    between_seconds: how long the loop took from getting a batch to asking for the next: training.
    reading_seconds, decoding_seconds, function_seconds: what threads spent on the batches that were
        handed out; function_seconds are those of filter and maps.
    idle_seconds: how long threads had nothing to do.
    batch_count, record_count, byte_count: what was handed out; records and bytes as they were read.
    refused_count, skipped_count: records of these that a filter refused; that were skipped.
    thread_count: how many threads work; 0 for none but the caller's.
    processor_count: how many could work at once.
    has_pixels: whether pictures or masks are decoded.
    """

    elapsed_seconds: float = 0.0
    first_batch_seconds: float = 0.0
    waited_seconds: float = 0.0
    between_seconds: float = 0.0
    reading_seconds: float = 0.0
    decoding_seconds: float = 0.0
    function_seconds: float = 0.0
    idle_seconds: float = 0.0
    batch_count: int = 0
    record_count: int = 0
    byte_count: int = 0
    refused_count: int = 0
    skipped_count: int = 0
    thread_count: int = 0
    processor_count: int = 1
    has_pixels: bool = False

    @property
    def records_per_second(self) -> float:
        """Records that were handed out, by the time from the first batch on."""
        return self.record_count / self.elapsed_seconds if self.elapsed_seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes of these records, as they are stored."""
        return self.byte_count / self.elapsed_seconds if self.elapsed_seconds else 0.0

    @property
    def bottleneck(self) -> str:
        """What holds the loop up, and what would help, in plain words."""
        total = self.waited_seconds + self.between_seconds
        if self.batch_count < 2 or not total:
            return "Nothing can be said yet: it takes two batches to see who waits for whom."
        share = self.waited_seconds / total
        if share < _READY_SHARE:
            return (
                "The training step is the bottleneck: batches were ready and waited "
                f"{_percent(1 - share)} of the time."
            )
        if not self.thread_count:
            return (
                f"Nothing is made ahead with threads=0: the loop waited {_percent(share)} of the "
                f"time while it made each batch itself. {self._most()[0]} what took "
                "most of it. threads=1 or more would work meanwhile."
            )
        work = self.reading_seconds + self.decoding_seconds + self.function_seconds
        if self.thread_count > 1 and self.idle_seconds > work:
            return (
                f"Threads are held up by each other: the loop waited {_percent(share)} of the time "
                f"for batches, and {self.thread_count} threads had nothing to do "
                f"{_percent(self.idle_seconds / (self.idle_seconds + work))} of theirs. Larger "
                "batches, or a larger prefetch, would give them more to do at once."
            )
        what, verb, advice = self._most()
        threads = "one thread" if self.thread_count == 1 else f"{self.thread_count} threads"
        if self.thread_count < self.processor_count:
            advice = f"more threads or {advice}"
        return (
            f"{what} the bottleneck: the loop waited {_percent(share)} of the time for batches, in "
            f"which {threads} {verb}. {advice[0].upper()}{advice[1:]} would help."
        )

    def _most(self) -> tuple[str, str, str]:
        """(what took most of the threads' time, what they did, what would help)."""
        decoding = ("Decoding records is", "decoded", "fewer features")
        if self.has_pixels:
            decoding = ("Decoding pictures is", "decoded", "pictures packed at a smaller side")
        functions = ("Your functions are", "ran them", "whole batches at once (map_batches)")
        return max(
            (self.reading_seconds, ("Reading is", "read", "a faster disk or shuffle=Blocks()")),
            (self.decoding_seconds, decoding),
            (self.function_seconds, functions),
        )[1]

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called batches, records, bytes."""
        return {
            "batches": self.batch_count,
            "records": self.record_count,
            "bytes": self.byte_count,
            "refused": self.refused_count,
            "skipped": self.skipped_count,
            "records_per_second": self.records_per_second,
            "bytes_per_second": self.bytes_per_second,
            "elapsed_seconds": self.elapsed_seconds,
            "first_batch_seconds": self.first_batch_seconds,
            "waited_seconds": self.waited_seconds,
            "between_seconds": self.between_seconds,
            "reading_seconds": self.reading_seconds,
            "decoding_seconds": self.decoding_seconds,
            "function_seconds": self.function_seconds,
            "idle_seconds": self.idle_seconds,
            "threads": self.thread_count,
            "bottleneck": self.bottleneck,
        }

    def __str__(self) -> str:
        left_out = [
            f"{count:,} {what}"
            for count, what in ((self.refused_count, "refused"), (self.skipped_count, "skipped"))
            if count
        ]
        done = f"{self.batch_count:,} batches, {self.record_count:,} records"
        lines = [
            f"{done}{''.join(f', {words}' for words in left_out)}",
            f"{self.records_per_second:,.0f} records/s, {self.bytes_per_second / 1e6:,.1f} MB/s",
            f"{'the loop':12}{self.first_batch_seconds:9.2f} s to the first batch",
            f"{'':12}{self.waited_seconds:9.2f} s waiting for the others",
            f"{'':12}{self.between_seconds:9.2f} s between batches",
            f"{f'{self.thread_count} threads':12}{self.reading_seconds:9.2f} s reading",
            f"{'':12}{self.decoding_seconds:9.2f} s decoding",
            f"{'':12}{self.function_seconds:9.2f} s in your functions",
            f"{'':12}{self.idle_seconds:9.2f} s idle",
            self.bottleneck,
        ]
        return "\n".join(lines)


class Tally:
    """Adds up what one iteration does. Used by who asks for batches."""

    def __init__(self) -> None:
        self._spent = Spent()
        self._batch_count = 0
        self._skipped_count = 0
        self._first = 0.0
        self._waited = 0.0
        self._between = 0.0
        self._idle = 0.0
        self._answered_at: float | None = None

    def ask(self, now: float) -> None:
        """A batch is asked for."""
        if self._answered_at is not None:
            self._between += now - self._answered_at

    def answer(
        self, asked_at: float, now: float, spent: Spent, skipped_count: int, idle_seconds: float
    ) -> None:
        """It is handed out; `idle_seconds` of the threads until now."""
        if self._batch_count:
            self._waited += now - asked_at
        else:
            self._first = now - asked_at
        self._answered_at = now
        self._idle = idle_seconds
        self._batch_count += 1
        self._skipped_count += skipped_count
        self._spent.add(spent)

    def stats(self, known: LoaderStats) -> LoaderStats:
        """`known`, with everything that was added up."""
        return replace(
            known,
            elapsed_seconds=self._first + self._waited + self._between,
            first_batch_seconds=self._first,
            waited_seconds=self._waited,
            between_seconds=self._between,
            idle_seconds=self._idle,
            batch_count=self._batch_count,
            skipped_count=self._skipped_count,
            **vars(self._spent),
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
