"""Measures where the time of a loader goes, and names the bottleneck.

Each batch carries its times; a `Tally` adds them up in the caller's thread when the batch is
returned, with the time before and after the request. Single records are not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from recordsmith.support.summaries import Report
from recordsmith.support.words import percent

_LINK_SHARE = 0.5  # of the waiting of a loop: more of it for records, and the network limits it
_READY_SHARE = 0.1  # a loop that waits less than this for batches is not limited by them


@dataclass
class BatchCost:
    """What a batch cost: seconds of threads, records, bytes used and read, pixels decoded."""

    reading_seconds: float = 0.0
    decoding_seconds: float = 0.0
    function_seconds: float = 0.0
    record_count: int = 0
    byte_count: int = 0
    read_byte_count: int = 0
    rejected_count: int = 0
    image_pixel_count: int = 0
    decoded_pixel_count: int = 0


@dataclass(frozen=True, repr=False)
class LoaderStats(Report):
    """Counts and times of a loader's current or last iteration, up to its last batch.

    Attributes:
        elapsed_seconds: since the first batch was requested.
        first_batch_seconds: time to the first batch; the shares below exclude it.
        waited_seconds: how long the loop waited for the other batches.
        between_seconds: how long the loop took between batches, such as for training.
        reading_seconds, decoding_seconds, function_seconds: what threads spent on the batches
            returned; function_seconds is for filter and maps.
        idle_seconds: how long threads were idle.
        batch_count, record_count, byte_count: batches returned, their records and the bytes of
            these.
        read_byte_count: bytes read for them: more where records are made of others, as windows
            of episodes are.
        rejected_count, skipped_count: records that the filter rejected, and that were skipped.
        image_pixel_count: pixels of the encoded images that were decoded, as stored.
        decoded_pixel_count: how many of these were decoded, in full or at a reduced size.
        thread_count: the number of threads; 0 for the caller's only.
        processor_count: how many threads can run at once.
        has_pixels: whether images or masks are decoded.
        is_remote: whether records are read over a network. Then they are read ahead, and
            reading_seconds is how long threads waited for them.
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
    read_byte_count: int = 0
    rejected_count: int = 0
    skipped_count: int = 0
    image_pixel_count: int = 0
    decoded_pixel_count: int = 0
    thread_count: int = 0
    processor_count: int = 1
    has_pixels: bool = False
    is_remote: bool = False

    @property
    def records_per_second(self) -> float:
        """Records read per second of elapsed time."""
        return self.record_count / self.elapsed_seconds if self.elapsed_seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes read per second of elapsed time."""
        return self.read_byte_count / self.elapsed_seconds if self.elapsed_seconds else 0.0

    @property
    def read_amplification(self) -> float | None:
        """Bytes read for each byte of the records; None before the first batch."""
        return self.read_byte_count / self.byte_count if self.byte_count else None

    @property
    def decoded_share(self) -> float | None:
        """The share of the images that was decoded: less than 1 for crops; None without images."""
        if not self.image_pixel_count:
            return None
        return self.decoded_pixel_count / self.image_pixel_count

    @property
    def bottleneck(self) -> str:
        """What limits the speed of the loop, and what would help, as text."""
        total = self.waited_seconds + self.between_seconds
        if self.batch_count < 2 or not total:
            return "The bottleneck is unknown before the second batch."
        share = self.waited_seconds / total
        if share < _READY_SHARE:
            return (
                "The training step is the bottleneck: batches were ready "
                f"{percent(1 - share)} of the time."
            )
        if self.is_remote and self.reading_seconds - self.first_batch_seconds > (
            _LINK_SHARE * self.waited_seconds
        ):
            return (
                f"The network is the bottleneck: the loop waited {percent(share)} of the time for "
                f"batches, while records arrived at {self.bytes_per_second / 1e6:,.1f} MB/s. A "
                "machine near the data, a local cache or shuffle=rs.BlockShuffle() would help."
            )
        if not self.thread_count:
            return (
                f"The loop makes each batch itself (threads=0) and waited {percent(share)} of the "
                f"time. {self._most()[0]} the largest part. Use threads=1 or more to prefetch."
            )
        work = self.reading_seconds + self.decoding_seconds + self.function_seconds
        if self.thread_count > 1 and self.idle_seconds > work:
            return (
                f"Threads wait for each other: the loop waited {percent(share)} of the time for "
                f"batches, and {self.thread_count} threads were idle "
                f"{percent(self.idle_seconds / (self.idle_seconds + work))} of theirs. Use larger "
                "batches or a larger prefetch."
            )
        what, verb, advice = self._most()
        threads = "one thread" if self.thread_count == 1 else f"{self.thread_count} threads"
        if self.thread_count < self.processor_count:
            advice = f"more threads or {advice}"
        return (
            f"{what} the bottleneck: the loop waited {percent(share)} of the time for batches "
            f"while {threads} {verb}. {advice[0].upper()}{advice[1:]} would help."
        )

    def _most(self) -> tuple[str, str, str]:
        """Return what took most of the threads' time, what they did, and what would help."""
        decoding = ("Decoding records is", "decoded", "fewer features")
        if self.has_pixels:
            smaller = "smaller images (`recordsmith pack --shorter-side`)"
            if (self.decoded_share or 1) < 1:
                tiles = "tiles in JPEGs that have none (`recordsmith pack PATH OUT --tiles`)"
                smaller = f"{tiles} or {smaller}"
            decoding = ("Decoding images is", "decoded", smaller)
        functions = ("Your functions are", "ran them", "whole batches at once (map_batches)")
        return max(
            (
                self.reading_seconds,
                ("Reading is", "read", "a faster disk or shuffle=BlockShuffle()"),
            ),
            (self.decoding_seconds, decoding),
            (self.function_seconds, functions),
        )[1]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict of all times and counts."""
        return {
            "batches": self.batch_count,
            "records": self.record_count,
            "bytes": self.byte_count,
            "read_bytes": self.read_byte_count,
            "read_amplification": self.read_amplification,
            "rejected": self.rejected_count,
            "skipped": self.skipped_count,
            "image_pixels": self.image_pixel_count,
            "decoded_pixels": self.decoded_pixel_count,
            "decoded_share": self.decoded_share,
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
            for count, what in ((self.rejected_count, "rejected"), (self.skipped_count, "skipped"))
            if count
        ]
        done = f"{self.batch_count:,} batches, {self.record_count:,} records"
        ratio, share, details = self.read_amplification, self.decoded_share, []
        if ratio is not None and self.read_byte_count != self.byte_count:  # windows of episodes
            details.append(f"read {ratio:.2f} bytes for each byte used")
        if share is not None:
            details.append(f"decoded {percent(share)} of the pixels of the images")
        lines = [
            ", ".join([done, *left_out]),
            f"{self.records_per_second:,.0f} records/s, {self.bytes_per_second / 1e6:,.1f} MB/s",
            *details,
            f"{'the loop':12}{self.first_batch_seconds:9.2f} s to the first batch",
            f"{'':12}{self.waited_seconds:9.2f} s waiting for later batches",
            f"{'':12}{self.between_seconds:9.2f} s between batches",
            f"{f'{self.thread_count} threads':12}{self.reading_seconds:9.2f} s reading",
            f"{'':12}{self.decoding_seconds:9.2f} s decoding",
            f"{'':12}{self.function_seconds:9.2f} s in your functions",
            f"{'':12}{self.idle_seconds:9.2f} s idle",
            self.bottleneck,
        ]
        return "\n".join(lines)


class Tally:
    """Adds up the statistics of an iteration, in the caller's thread."""

    def __init__(self) -> None:
        counted = ("first_batch_seconds", "waited_seconds", "between_seconds", "idle_seconds",
                   "batch_count", "skipped_count", *vars(BatchCost()))  # fmt: skip
        self._sums: dict[str, Any] = dict.fromkeys(counted, 0)
        self._delivered_at: float | None = None

    def request(self, now: float) -> None:
        """Count the time before a batch is requested."""
        if self._delivered_at is not None:
            self._sums["between_seconds"] += now - self._delivered_at

    def deliver(
        self, asked_at: float, now: float, cost: BatchCost, skipped_count: int, idle_seconds: float
    ) -> None:
        """Count a batch that is returned; `idle_seconds` of the threads until now."""
        sums = self._sums
        sums["waited_seconds" if sums["batch_count"] else "first_batch_seconds"] += now - asked_at
        self._delivered_at = now
        sums["idle_seconds"] = idle_seconds
        sums["batch_count"] += 1
        sums["skipped_count"] += skipped_count
        for name, value in vars(cost).items():
            sums[name] += value

    def stats(self, known: LoaderStats) -> LoaderStats:
        """Return `known` with all sums."""
        times = ("first_batch_seconds", "waited_seconds", "between_seconds")
        return replace(known, elapsed_seconds=sum(self._sums[name] for name in times), **self._sums)
