"""A loader as a `tf.data.Dataset`.

Under it is `Dataset.from_generator`, which takes arrays as they lie if each is a plain tensor; so a
batch travels flat, and a traced function puts it together again. Each iteration of the dataset is
one of the loader. What goes wrong there arrives as TensorFlow's error, with recordsmith's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import tensorflow as tf

from recordsmith.errors import FunctionError, OptionError
from recordsmith.loading import Loader
from recordsmith.tensorflow.ranks import check_rank
from recordsmith.tensorflow.tensors import Parts
from recordsmith.tensorflow.tensors import element_spec as spec_of


def batches(
    loader: Loader, *, element_spec: Mapping[str, Any] | None = None, any_rank: bool = False
) -> tf.data.Dataset:
    """The loader's batches as a `tf.data.Dataset` of dicts of tensors, without copying numbers.

    Each iteration of it, such as a Keras epoch, is one of the loader, whose epochs count on: each
    has an order of its own. It knows its length, unless the loader goes on inside an iteration.

    Args:
        element_spec: a `tf.TensorSpec` or `tf.RaggedTensorSpec` by name, where maps make batches
            of which the first one does not tell how all are; `element_spec(loader)` if not said.
        any_rank: do not compare the loader's rank with that of `this_rank()`: several processes
            shall read the same.

    Raises:
        OptionError: the loader uses memory again; its rank is not that of this process.
    """
    if not isinstance(loader, Loader):
        raise OptionError(f"the loader is {loader!r:.60}; expected a recordsmith.Loader")
    if loader.reuses_batches:
        raise OptionError(
            "this loader uses the memory of its batches again, but tensors share it and may be "
            "kept, and tf.data takes batches ahead: make the loader without reuse_batches"
        )
    check_rank(loader, any_rank=any_rank)
    specs = spec_of(loader) if element_spec is None else element_spec
    entries = {name: Parts(name, spec) for name, spec in specs.items()}
    count = _count(loader)

    def flat() -> Iterator[tuple[Any, ...]]:
        if count is not None and count != _length(loader):
            raise OptionError(
                f"the next iteration of the loader has {_length(loader)} batches, but {count} when "
                "batches(loader) was called: call it after load_state_dict"
            )
        with closing(iter(loader)) as iteration:
            for batch in iteration:
                if batch.keys() != entries.keys():
                    raise FunctionError(
                        f"this batch has the entries {', '.join(batch)}; expected "
                        f"{', '.join(entries)}: let your map answer these in all batches"
                    )
                yield tuple(
                    part for name, parts in entries.items() for part in parts.split(batch[name])
                )

    def joined(*flat: Any) -> dict[str, Any]:
        left = iter(flat)
        return {
            name: parts.join([next(left) for _ in parts.specs]) for name, parts in entries.items()
        }

    signature = tuple(spec for parts in entries.values() for spec in parts.specs)
    dataset: Any = tf.data.Dataset.from_generator(flat, output_signature=signature).map(joined)
    if count is not None:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    options = tf.data.Options()  # ranks are the loader's: TensorFlow shall not share out once more
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


def _count(loader: Loader) -> int | None:
    """How many batches each iteration has; None if the first one has fewer than the others."""
    return None if loader.goes_on else _length(loader)


def _length(loader: Loader) -> int:
    try:
        return len(loader)
    except TypeError:
        return int(tf.data.INFINITE_CARDINALITY)
