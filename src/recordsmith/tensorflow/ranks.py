"""Which process of a TensorFlow training job is this?"""

from __future__ import annotations

import tensorflow as tf

from recordsmith.errors import OptionError
from recordsmith.loading import Loader

_TRAINERS = ("chief", "master", "worker")  # in the order of TensorFlow's own numbers


def this_rank() -> dict[str, int]:
    """`rank` and `world_size` of this process, as a Loader takes them: `Loader(**this_rank())`.

    Asks the cluster resolver of the strategy whose scope this is, then TF_CONFIG; without either
    it is 0 of 1. The replicas of one process, as of a MirroredStrategy, are one rank.

    Raises:
        OptionError: this process does not train, such as a parameter server.
    """
    return _launched() or {"rank": 0, "world_size": 1}


def check_rank(loader: Loader, *, any_rank: bool) -> None:
    """That the loader is of the rank that TensorFlow says this process is, if it says any.

    Raises:
        OptionError: it is not.
    """
    launched = None if any_rank else _launched()
    own = {"rank": loader.rank, "world_size": loader.world_size}
    if launched is not None and launched != own:
        raise OptionError(
            f"the loader is rank {loader.rank} of {loader.world_size}, but TensorFlow says that "
            f"this process is {launched['rank']} of {launched['world_size']}: make it with "
            "Loader(..., **this_rank()), or say any_rank=True if processes shall read the same"
        )


def _launched() -> dict[str, int] | None:
    """What TensorFlow knows; None if this process was not launched as one of a job."""
    resolver = (
        tf.distribute.get_strategy().cluster_resolver if tf.distribute.has_strategy() else None
    )
    if resolver is None:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    tasks = resolver.cluster_spec().as_dict()
    kind, number = resolver.task_type, resolver.task_id
    counts = {name: len(tasks.get(name, ())) for name in _TRAINERS}
    if not any(counts.values()) or kind == "evaluator":
        return None
    if kind not in _TRAINERS or number is None:
        raise OptionError(f"TensorFlow says that this process is a {kind}, which reads no batches")
    before = _TRAINERS[: _TRAINERS.index(kind)]
    rank = sum(counts[name] for name in before) + int(number)
    return {"rank": rank, "world_size": sum(counts.values())}
