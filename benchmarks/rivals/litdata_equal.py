"""LitData with ranks and workers of the same length, as it advises for several ranks."""

from __future__ import annotations

from dataclasses import replace

import litdata_chunks
from rival import Options


class Images(litdata_chunks.Images):
    """`drop_last` is True, whether there are several ranks or not."""

    def __init__(self, options: Options) -> None:
        super().__init__(options, drop_last=True)


RIVAL = replace(
    litdata_chunks.RIVAL,
    title="LitData, drop_last",
    chosen="as above, with `drop_last=True`",
    loader=Images,
)
