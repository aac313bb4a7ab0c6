"""Loaders for the workers of Ray Train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recordsmith.dataset import Dataset, dataset_of
from recordsmith.errors import OptionError
from recordsmith.loading import Loader, Mix
from recordsmith.loading.adapters import Rank

if TYPE_CHECKING:
    from recordsmith.dataset.locate import Paths
    from recordsmith.loading.features.declaration import Features


def this_rank() -> Rank:
    """Return rank and world_size of this worker of Ray Train: `Loader(..., **this_rank())`.

    Outside of a training function, rank 0 of 1.
    """
    from ray import train  # takes a second, and only training needs it

    try:
        context = train.get_context()
        return Rank(rank=context.get_world_rank(), world_size=context.get_world_size())
    except RuntimeError:  # not in a training function
        return Rank(rank=0, world_size=1)


def to_loader(
    dataset: Paths | Dataset | Mix,
    features: Features | None = None,
    *,
    batch_size: int,
    **options: Any,
) -> Loader:
    """Return a Loader of the examples that this worker of Ray Train has to read.

    Call it in the training function. Each example is read by exactly one worker in each epoch, and
    all workers have equally many steps.

    Args:
        dataset: a Dataset or Mix, or paths as in `recordsmith.open`, which all nodes share.
        features: as in `Loader`.
        batch_size: examples in a batch of one worker.
        options: of `Loader`, without rank and world_size.

    Raises:
        OptionError: as in `Loader`; or the options have a rank.
        FileAccessError, CorruptDataError: as in `recordsmith.open`.

    Example:
        def train_worker():
            loader = to_loader("/shared/flowers", ["image/width"], batch_size=64, shuffle=True)
            for batch in loader:
                ...
    """
    for name in ("rank", "world_size"):
        if name in options:
            raise OptionError(
                option=name, value=options[name], expected="absent, as Ray Train has it"
            )
    source = dataset if isinstance(dataset, Mix) else dataset_of(dataset)
    return Loader(source, features, batch_size=batch_size, **this_rank(), **options)
