"""Every checksum of a file checked, and nothing else done with its records.

TensorFlow has no command for it; reading a file with tf.data checks it on the way, up to the first
damaged record.
"""

from __future__ import annotations

from typing import Any

from case import OURS, Case, Peer, Task
from cases.whole_file import reading
from inputs import LARGE_BYTES, Inputs


def _recordsmith(name: str, threads: int = 1) -> Any:
    def prepare(inputs: Inputs) -> Task:
        from recordsmith import verify

        path = inputs.path(name)

        def records(report: Any) -> int:
            assert report.is_good
            return int(report.record_count)

        return Task(
            lambda: verify(path, threads=threads), inputs.record_counts[name], digest=records
        )

    return prepare


def _tensorflow(name: str, batch_size: int) -> Any:
    """The leanest of what was tried: reduce, filter, loops in Python and in a graph cost more."""

    def prepare(inputs: Inputs) -> Task:
        import tensorflow as tf

        options = tf.data.Options()
        options.autotune.enabled = False
        dataset = tf.data.TFRecordDataset(str(inputs.path(name))).batch(batch_size)
        dataset = dataset.with_options(options)

        def run() -> int:
            return sum(int(batch.shape[0]) for batch in dataset)

        return Task(run, inputs.record_counts[name], digest=int)

    return prepare


def _memory(name: str) -> Any:
    """How fast one core reads the same bytes: their checksum in memory, by the fastest library."""

    def prepare(inputs: Inputs) -> Task:
        import google_crc32c

        data = inputs.path(name).read_bytes()
        count = inputs.record_counts[name]

        def run() -> int:
            google_crc32c.value(data)
            return count

        return Task(run, count, digest=int)

    return prepare


def _case(size: str, name: str, of_what: str, batch_size: int, least_times: int) -> Case:
    """`least_times`: how many times as much TensorFlow must take."""
    return Case(
        name=f"verify-{size}",
        title=f"Verify {size} records",
        what=f"Both checksums of every record of {of_what}.",
        unit="record",
        peers=(
            Peer(OURS, _recordsmith(name)),
            Peer("two threads (see the wall)", _recordsmith(name, 2)),
            Peer("a checksum of the bytes, in memory", _memory(name), at_most=1 / 0.6),
            Peer("reading the file", reading(name)),
            Peer(
                f"TFRecordDataset, batch({batch_size})",
                _tensorflow(name, batch_size),
                at_most=1 / least_times,
            ),
        ),
        inputs=(name,),
        on_wall_too=True,
    )


CASES = (
    _case("small", "small-4-times.tfrecord", "about 200 bytes", 1024, 20),
    _case("large", "large.tfrecord", f"about {LARGE_BYTES // 1000} kB, as photographs", 8, 8),
)
