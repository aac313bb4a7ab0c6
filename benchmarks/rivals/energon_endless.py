"""Megatron Energon without an end, in virtual epochs, as on its page about saving."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import energon_tars
from rival import Options


class Images(energon_tars.Images):
    """A virtual epoch has as many batches as the dataset has, for each rank."""

    def __init__(self, options: Options) -> None:
        info = json.loads(Path(options.place, ".nv-meta", ".info.json").read_text())
        count = sum(info["shard_counts"].values())
        length = -(-count // (options.batch_size * options.world_size))
        super().__init__(options, virtual_epoch_length=length)


RIVAL = replace(
    energon_tars.RIVAL,
    title="Megatron Energon, endless",
    chosen="as above, but without `repeat=False`",
    loader=Images,
)
