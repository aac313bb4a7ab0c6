"""LanceDB with two splits on any number of ranks, so that its state is for one rank and for two."""

from __future__ import annotations

from dataclasses import replace

import lance_table
from rival import Options


class Images(lance_table.Images):
    def __init__(self, options: Options) -> None:
        super().__init__(options, num_splits=2)


RIVAL = replace(
    lance_table.RIVAL,
    title="LanceDB, two splits",
    chosen="as above, with `num_splits=2`",
    loader=Images,
)
