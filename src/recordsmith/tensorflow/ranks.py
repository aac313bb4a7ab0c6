"""Which process of a TensorFlow training job is this?"""

from __future__ import annotations

import json

import tensorflow as tf

from recordsmith.errors import OptionError
from recordsmith.loading.suitable import Rank

_TRAINERS = ("chief", "master", "worker")  # in the order of TensorFlow's own numbers


def this_rank() -> Rank:
    """The rank of this process and their number: `Loader(..., **this_rank())`.

    Asks the cluster resolver of the strategy whose scope this is, then TF_CONFIG; without either
    it is 0 of 1. The replicas of one process, as of a MirroredStrategy, are one rank.

    Raises:
        OptionError: this process does not train, such as a parameter server; TF_CONFIG is no JSON.
    """
    resolver = None
    if tf.distribute.has_strategy():
        resolver = tf.distribute.get_strategy().cluster_resolver
    if resolver is None:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    try:
        tasks = resolver.cluster_spec().as_dict()
        kind, number = resolver.task_type, resolver.task_id
    except json.JSONDecodeError as error:
        raise OptionError(f"TF_CONFIG is no JSON: {error}") from None
    counts = {name: len(tasks.get(name, ())) for name in _TRAINERS}
    if not any(counts.values()) or kind == "evaluator":  # alone, or beside those that train
        return Rank(rank=0, world_size=1)
    if kind not in _TRAINERS or number is None:
        raise OptionError(f"TensorFlow says that this process is a {kind}, which reads no batches")
    before = _TRAINERS[: _TRAINERS.index(kind)]
    rank = sum(counts[name] for name in before) + int(number)
    return Rank(rank=rank, world_size=sum(counts.values()))
