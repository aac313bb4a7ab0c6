"""May an adapter for a framework hand on this loader's batches, in this process?"""

from __future__ import annotations

from typing import TypedDict

from recordsmith.errors import OptionError
from recordsmith.loading.loader import Loader


class Rank(TypedDict):
    """Which process this is, of how many: what a Loader takes."""

    rank: int
    world_size: int


def check_loader(loader: object, *, reuse: str | None = None) -> None:
    """Raise OptionError unless it is a loader whose batches can be handed on.

    Args:
        reuse: why its memory must not be used again; None if it may.
    """
    if not isinstance(loader, Loader):
        raise OptionError(f"the loader is {loader!r:.60}; expected a recordsmith.Loader")
    if reuse is not None and loader.reuses_batches:
        raise OptionError(
            f"the loader has reuse_batches=True, but {reuse}: make it without reuse_batches"
        )


def check_rank(loader: Loader, here: Rank, how: str = "Loader(..., **this_rank())") -> None:
    """Raise OptionError unless the loader reads the share of this process.

    Args:
        here: which process this is.
        how: how such a loader is made.
    """
    if (loader.rank, loader.world_size) != (here["rank"], here["world_size"]):
        raise OptionError(
            f"the loader reads for rank {loader.rank} of {loader.world_size}, but this process is "
            f"rank {here['rank']} of {here['world_size']}: make it with {how}; if other ranks "
            "shall read the same, say any_rank=True"
        )
