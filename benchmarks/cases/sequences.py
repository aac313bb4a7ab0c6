"""SequenceExamples of video features to padded batches."""

from __future__ import annotations

from functools import partial
from typing import Any

from case import OURS, Case, Peer, Task
from inputs import Inputs

_BATCH, _STEPS, _BYTES = 128, 300, 1024


def _recordsmith(inputs: Inputs) -> Task:
    import recordsmith as rs

    features = {
        "id": rs.Bytes("id"),
        "labels": rs.Ragged("labels"),
        "rgb": rs.Steps(rs.Raw("rgb", (_BYTES,), "uint8"), _STEPS),
    }
    dataset = rs.open(inputs.path("videos.tfrecord"))
    assert dataset.schema.sections  # known in advance, as TensorFlow needs it

    def run() -> list[int]:
        # without threads of its own, as TensorFlow without parallel calls
        loader: Any = rs.Loader(dataset, features, batch_size=_BATCH, threads=0)
        return [_sum(batch["rgb"], batch["rgb_lengths"]) for batch in loader]

    return Task(run, records=inputs.video_count, digest=sum)


def _tensorflow(inputs: Inputs, *, is_lean: bool) -> Task:
    """In the caller's thread; or as guides advise it, tuned for seconds on the wall."""
    import tensorflow as tf

    context = {"id": tf.io.FixedLenFeature((), tf.string), "labels": tf.io.VarLenFeature(tf.int64)}
    lists = {"rgb": tf.io.FixedLenSequenceFeature((), tf.string)}

    def parse(payloads: Any) -> Any:
        _, steps, lengths = tf.io.parse_sequence_example(payloads, context, lists)
        rgb = tf.io.decode_raw(steps["rgb"], tf.uint8, fixed_length=_BYTES)
        missing = _STEPS - tf.shape(rgb)[1]
        return tf.pad(rgb, [[0, 0], [0, missing], [0, 0]]), lengths["rgb"]

    dataset = tf.data.TFRecordDataset(str(inputs.path("videos.tfrecord"))).batch(_BATCH)
    if is_lean:
        options = tf.data.Options()
        options.autotune.enabled = False
        dataset = dataset.map(parse).with_options(options)
    else:
        dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)

    def run() -> list[int]:
        return [_sum(rgb.numpy(), lengths.numpy()) for rgb, lengths in dataset]

    return Task(run, records=inputs.video_count, digest=sum)


def _sum(rgb: Any, lengths: Any) -> int:
    """A few numbers of a batch, so that summing them costs nothing."""
    assert rgb.shape[1:] == (_STEPS, _BYTES)
    return int(rgb[:, ::100, :4].sum()) + int(lengths.sum())


CASE = Case(
    name="video-features",
    title="Read video features in padded batches",
    what=(
        "SequenceExamples of 150 to 300 steps with 1,024 bytes each, to batches of 128 x 300 x "
        "1,024; both checksums of every record checked."
    ),
    unit="record",
    peers=(
        Peer(OURS, _recordsmith),
        Peer("tf.data, no autotuning", partial(_tensorflow, is_lean=True)),
        Peer("tf.data, AUTOTUNE", partial(_tensorflow, is_lean=False), at_most=1 / 3),
    ),
    inputs=("videos.tfrecord",),
)
