"""Finds the rank of this process in a TensorFlow training job."""

from __future__ import annotations

import json

import tensorflow as tf

from recordsmith.errors import OptionError
from recordsmith.loading.adapters import Rank

_TRAINERS = ("chief", "master", "worker")  # in the order of TensorFlow's own numbers


def this_rank() -> Rank:
    """Return rank and world_size of this process: `Loader(..., **this_rank())`.

    Uses the cluster resolver of the current strategy, else TF_CONFIG, else rank 0 of 1. The
    replicas of a process, such as with MirroredStrategy, have one rank.

    Raises:
        OptionError: this process does not train, such as a parameter server; or TF_CONFIG is not
            valid JSON.
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
        raise OptionError(f"TF_CONFIG is not valid JSON: {error}", option="rank") from None
    counts = {name: len(tasks.get(name, ())) for name in _TRAINERS}
    if not any(counts.values()) or kind == "evaluator":  # alone, or next to those that train
        return Rank(rank=0, world_size=1)
    if kind not in _TRAINERS or number is None:
        raise OptionError(
            f"this process is a {kind}, which does not read batches", option="rank", value=kind
        )
    before = _TRAINERS[: _TRAINERS.index(kind)]
    rank = sum(counts[name] for name in before) + int(number)
    return Rank(rank=rank, world_size=sum(counts.values()))
