"""Batches for TensorFlow: a `tf.data.Dataset` over a loader, and specs for plain `TFRecordDataset`.

import recordsmith.tensorflow

for batch in recordsmith.tensorflow.batches(loader): ...
"""

try:
    import tensorflow as tf  # noqa: F401 - to report if it is missing
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise  # it is installed, but one of its dependencies is not
    from recordsmith.errors import MissingExtraError

    raise MissingExtraError("tensorflow", "tensorflow") from None

from recordsmith.tensorflow.parsing import feature_spec, sequence_feature_spec
from recordsmith.tensorflow.ranks import this_rank
from recordsmith.tensorflow.stream import batches
from recordsmith.tensorflow.tensors import convert, element_spec

__all__ = [
    "batches",
    "convert",
    "element_spec",
    "feature_spec",
    "sequence_feature_spec",
    "this_rank",
]
