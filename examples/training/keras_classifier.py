"""Keras: a classifier of flowers, on any backend.

KERAS_BACKEND=tensorflow python examples/training/keras_classifier.py
KERAS_BACKEND=torch python examples/training/keras_classifier.py
KERAS_BACKEND=jax python examples/training/keras_classifier.py
"""

from __future__ import annotations

import keras
from data import NAMES, options, packed_flowers
from keras import layers

import recordsmith as rs
from recordsmith.keras import batches


def make_model() -> keras.Model:
    inputs = x = keras.Input((48, 48, 3), dtype="uint8")
    x = layers.Rescaling(1 / 127.5, offset=-1)(x)
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.8)(x)
        x = layers.ReLU()(x)
        x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(len(NAMES))(x))


def main() -> None:
    args = options(__doc__, images=300, epochs=12).parse_args()
    keras.utils.set_random_seed(0)
    print("backend:", keras.backend.backend())
    if keras.backend.backend() == "torch":
        import torch

        torch.set_num_threads(1)  # a small model; leaves processors to the loader's threads

    dataset = packed_flowers(args.folder, args.images)
    crop = rs.Image("image/encoded", 48, "random-crop", crop_area=(0.4, 1), flip="horizontal")
    whole = rs.Image("image/encoded", 48, "center-crop")
    train = rs.Loader(
        rs.open(dataset, split="train"),
        {"image": crop, "label": "image/class/label"},
        batch_size=20,
        shuffle=True,
        seed=0,
        last_batch="drop",
    )
    validation = rs.Loader(
        rs.open(dataset, split="validation"),
        {"image": whole, "label": "image/class/label"},
        batch_size=30,
    )

    model = make_model()
    model.compile(
        optimizer=keras.optimizers.AdamW(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        batches(train, "image", "label"),
        validation_data=batches(validation, "image", "label"),
        epochs=args.epochs,
        verbose=2,
    )


if __name__ == "__main__":
    main()
