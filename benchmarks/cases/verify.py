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


SMALL, LARGE = "small-4-times.tfrecord", "large.tfrecord"

CASES = (
    Case(
        name="verify-small",
        title="Verify small records",
        what="Both checksums of every record of about 200 bytes.",
        unit="record",
        peers=(
            Peer(OURS, _recordsmith(SMALL)),
            Peer("two threads (see the wall)", _recordsmith(SMALL, 2)),
            Peer("a checksum of the bytes, in memory", _memory(SMALL), at_most=1 / 0.6),
            Peer("reading the file", reading(SMALL)),
            Peer("TFRecordDataset, batch(1024)", _tensorflow(SMALL, 1024), at_most=1 / 20),
        ),
        inputs=(SMALL,),
        on_wall_too=True,
    ),
    Case(
        name="verify-large",
        title="Verify large records",
        what=f"Both checksums of every record of about {LARGE_BYTES // 1000} kB, as photographs.",
        unit="record",
        peers=(
            Peer(OURS, _recordsmith(LARGE)),
            Peer("two threads (see the wall)", _recordsmith(LARGE, 2)),
            Peer("a checksum of the bytes, in memory", _memory(LARGE), at_most=1 / 0.6),
            Peer("reading the file", reading(LARGE)),
            Peer("TFRecordDataset, batch(8)", _tensorflow(LARGE, 8), at_most=1 / 8),
        ),
        inputs=(LARGE,),
        on_wall_too=True,
    ),
)
