"""Finds the rank of this process, as set by torch's launchers."""

from __future__ import annotations

import os

import torch.distributed

from recordsmith.errors import OptionError
from recordsmith.loading.adapters import Rank


def this_rank() -> Rank:
    """Return rank and world_size of this process: `Loader(..., **this_rank())`.

    Uses torch.distributed if it is initialized, else RANK and WORLD_SIZE of the environment, which
    torchrun sets, else rank 0 of 1.

    Raises:
        OptionError: RANK and WORLD_SIZE are invalid.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return Rank(
            rank=torch.distributed.get_rank(), world_size=torch.distributed.get_world_size()
        )
    values = [os.environ.get(name) for name in ("RANK", "WORLD_SIZE")]
    if None in values:
        return Rank(rank=0, world_size=1)
    try:
        rank, world_size = (int(number or "") for number in values)
    except ValueError:
        rank, world_size = -1, 0
    if not 0 <= rank < world_size:
        raise OptionError(
            f"the environment has RANK={values[0]} and WORLD_SIZE={values[1]}",
            option="rank",
            value=values[0],
            expected="a rank of at least 0 and below the world size",
        )
    return Rank(rank=rank, world_size=world_size)
