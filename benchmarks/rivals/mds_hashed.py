"""MosaicML streaming with hashes of its shards, which are compared when a shard is fetched."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import mds
from rival import Options, Photo

_HASH = "xxh3_64"


def pack(photos: Sequence[Photo], out: Path) -> None:
    mds.pack(photos, out, [_HASH])


class Images(mds.Images):
    """The packed folder is the remote one, as only what is fetched is compared."""

    def __init__(self, options: Options) -> None:
        cache = options.cache or tempfile.mkdtemp()
        super().__init__(replace(options, cache=cache), validate_hash=_HASH)


_DOCS = "https://docs.mosaicml.com/projects/streaming/en/stable"

RIVAL = replace(
    mds.RIVAL,
    title="MosaicML streaming, hashes",
    pages=(f"{_DOCS}/dataset_configuration/shard_retrieval.html",),
    chosen=f"as above, with `hashes=[{_HASH!r}]` and `validate_hash`",
    pack=pack,
    loader=Images,
)
