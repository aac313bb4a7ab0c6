"""recordsmith.tensorflow and recordsmith.keras next to tf.data on the same file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loaders
from case import OURS, Case, Peer, Task
from cases.loader import epochs_of
from inputs import Inputs

_WHAT = (
    "The JPEG files of 500 by 375 pixels and 107 kB to shuffled batches of 32 images of 224 by "
    "224 pixels, uint8, as tensors, two threads. "
)


def _fit(data: Callable[[Inputs], Any]) -> Callable[[Inputs], Task]:
    """An epoch of Keras on the TensorFlow backend, with a model that costs next to nothing."""

    def prepare(inputs: Inputs) -> Task:
        import keras

        images = keras.Input((loaders.SIDE, loaders.SIDE, 3), dtype="uint8")
        few = keras.layers.Rescaling(1 / 255)(images[:, loaders.SPARSE, loaders.SPARSE])
        classes = keras.layers.Dense(8, "softmax")(keras.layers.Flatten()(few))
        model = keras.Model(images, classes)
        model.compile("sgd", "sparse_categorical_crossentropy")
        given = data(inputs)

        def run() -> int:
            model.fit(given, verbose=0, shuffle=False)
            return int(model.optimizer.iterations)

        return Task(run, inputs.camera_count, digest=lambda steps: steps)

    return prepare


def _dataset(inputs: Inputs) -> Any:
    dataset = loaders.adapted_dataset(inputs.folder)
    return dataset.map(lambda batch: (batch["image"], batch["label"]))


def _py_dataset(inputs: Inputs) -> Any:
    from recordsmith.keras import batches

    return batches(loaders.image_loader(inputs.folder), "image", "label")


def _plain(inputs: Inputs) -> Any:
    import tensorflow as tf

    dataset = loaders.tensorflow_dataset(inputs.folder, "camera-packed")
    batch_count = -(-inputs.camera_count // loaders.BATCH)  # else Keras warns that data ran out
    return dataset.apply(tf.data.experimental.assert_cardinality(batch_count))


CASES = (
    Case(
        name="tensorflow",
        title="TensorFlow: recordsmith.tensorflow",
        what=_WHAT,
        unit="image",
        peers=(
            Peer(OURS, epochs_of(loaders.tensorflow_adapter)),
            Peer("tf.data", epochs_of(loaders.tensorflow), at_most=1 / 1.1),
            Peer("the loader alone", epochs_of(loaders.recordsmith)),
        ),
        inputs=("camera", "camera-packed"),
        on_wall_too=True,
    ),
    Case(
        name="keras",
        title="Keras: an epoch of fit",
        what=_WHAT + "The model takes 49 pixels of each, so that the data are what costs.",
        unit="image",
        peers=(
            Peer(OURS, _fit(_dataset)),
            Peer("tf.data", _fit(_plain), at_most=1.0),
            Peer("recordsmith.keras", _fit(_py_dataset)),
        ),
        inputs=("camera", "camera-packed"),
        on_wall_too=True,
    ),
)
