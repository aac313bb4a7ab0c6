"""TensorFlow alone, on records that recordsmith packed: TFRecordDataset and parse_example.

    python examples/training/tensorflow_feature_spec.py

What TensorFlow has to be told about the records is in the schema of the dataset.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from data import NAMES, options, packed_flowers

import recordsmith as rs
from recordsmith.tensorflow import feature_spec

KEYS = ["image/encoded", "image/class/label"]


def read(dataset: rs.Dataset, batch_size: int, *, is_training: bool) -> tf.data.Dataset:
    """Batches of pictures, float32 from 0 to 1, and labels."""
    spec = feature_spec(dataset.schema, KEYS)

    def decode(encoded: Any) -> Any:
        pixels = tf.io.decode_jpeg(encoded, channels=3)
        if is_training:
            pixels = tf.image.random_flip_left_right(tf.image.random_crop(pixels, (80, 80, 3)))
        return tf.image.resize(pixels, (48, 48)) / 255

    def parse(payloads: Any) -> Any:
        features = tf.io.parse_example(payloads, spec)
        pixels = tf.map_fn(decode, features["image/encoded"], fn_output_signature=tf.float32)
        return pixels, features["image/class/label"]

    records = tf.data.TFRecordDataset([str(shard.path) for shard in dataset.shards])
    if is_training:
        records = records.shuffle(len(dataset))
    return records.batch(batch_size, drop_remainder=is_training).map(parse).prefetch(2)
