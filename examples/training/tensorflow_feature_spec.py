"""TensorFlow reads packed records by itself: TFRecordDataset and parse_example.

    python examples/training/tensorflow_feature_spec.py

The schema of the dataset provides the arguments of parse_example.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
from data import NAMES, options, packed_flowers
from tensorflow.keras import layers

import recordsmith as rs
from recordsmith.tensorflow.parsing import feature_spec

BATCH_SIZE = 20


def read(folder: Path, split: str) -> tf.data.Dataset:
    """Batches of images, uint8, and labels."""
    dataset = rs.open(folder, split=split)
    spec = feature_spec(dataset.schema, ["image/encoded", "image/class/label"])

    def parse(payloads: Any) -> Any:
        features = tf.io.parse_example(payloads, spec)
        decoded = tf.map_fn(
            tf.io.decode_jpeg, features["image/encoded"], fn_output_signature=tf.uint8
        )
        return tf.ensure_shape(decoded, (None, 96, 96, 3)), features["image/class/label"]

    records = tf.data.TFRecordDataset(tf.io.gfile.glob(f"{folder}/{split}-*.tfrecord"))
    if split == "train":
        records = records.shuffle(len(dataset))
    return records.batch(BATCH_SIZE, drop_remainder=split == "train").map(parse).prefetch(2)


def make_model() -> tf.keras.Model:
    model = [
        layers.RandomCrop(80, 80),  # the centre, except in training
        layers.RandomFlip("horizontal"),
        layers.Resizing(48, 48),
        layers.Rescaling(1 / 127.5, offset=-1),
    ]
    for filters in (16, 32, 64):
        model += [
            layers.Conv2D(filters, 3, padding="same", use_bias=False),
            layers.BatchNormalization(momentum=0.8),
            layers.ReLU(),
            layers.MaxPooling2D(),
        ]
    model += [layers.GlobalAveragePooling2D(), layers.Dense(len(NAMES))]
    return tf.keras.Sequential(model)


def main() -> None:
    args = options(__doc__, images=300, epochs=12).parse_args()
    tf.keras.utils.set_random_seed(0)
    tf.config.experimental.enable_op_determinism()

    folder = packed_flowers(args.folder, args.images)
    train, validation = read(folder, "train"), read(folder, "validation")
    for key, feature in feature_spec(rs.open(folder, split="train").schema).items():
        print(f"{key:20}{feature}")

    model = make_model()
    optimizer = tf.keras.optimizers.AdamW(2e-3)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(pixels: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(pixels, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def is_right(pixels: Any, labels: Any) -> Any:
        return tf.argmax(model(pixels, training=False), axis=1) == labels

    for epoch in range(args.epochs):
        losses = [train_step(pixels, labels) for pixels, labels in train]
        right = tf.concat([is_right(pixels, labels) for pixels, labels in validation], axis=0)
        mean, share = tf.reduce_mean(losses), tf.reduce_mean(tf.cast(right, tf.float32))
        print(f"epoch {epoch + 1:2}  loss {mean:.4f}  accuracy {share:.1%}")


if __name__ == "__main__":
    main()
