"""Which rank is this process, in the eyes of torch's launchers?"""

from __future__ import annotations

import os

import torch.distributed

from recordsmith.errors import OptionError
from recordsmith.loading.suitable import Rank


def this_rank() -> Rank:
    """The rank of this process and their number: `Loader(..., **this_rank())`.

    As torch.distributed says, if it is initialised; else as RANK and WORLD_SIZE in the environment
    say, which torchrun sets; else rank 0 of 1.

    Raises:
        OptionError: RANK and WORLD_SIZE are no numbers that go together.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return Rank(
            rank=torch.distributed.get_rank(), world_size=torch.distributed.get_world_size()
        )
    told = [os.environ.get(name) for name in ("RANK", "WORLD_SIZE")]
    if None in told:
        return Rank(rank=0, world_size=1)
    try:
        rank, world_size = (int(number or "") for number in told)
    except ValueError:
        rank, world_size = -1, 0
    if not 0 <= rank < world_size:
        raise OptionError(
            f"the environment has RANK={told[0]} and WORLD_SIZE={told[1]}; expected a rank from 0 "
            "on and less than the world size"
        )
    return Rank(rank=rank, world_size=world_size)
