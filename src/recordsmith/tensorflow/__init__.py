"""Batches for TensorFlow: a `tf.data.Dataset` over a loader, and specs for plain `TFRecordDataset`.

import recordsmith.tensorflow

for batch in recordsmith.tensorflow.batches(loader): ...
"""

from recordsmith.support.errors import needs_extra

with needs_extra("tensorflow"):
    from recordsmith.tensorflow.parsing import feature_spec, sequence_feature_spec
    from recordsmith.tensorflow.stream import batches, this_rank
    from recordsmith.tensorflow.tensors import convert, element_spec

__all__ = [
    "batches",
    "convert",
    "element_spec",
    "feature_spec",
    "sequence_feature_spec",
    "this_rank",
]
