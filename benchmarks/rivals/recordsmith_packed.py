"""recordsmith: rows of tokens, packed by `Packed`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from recordsmith_shards import loading
from rival import Batch, Loader, Options, Photo, Rival, UnsupportedError

LENGTH = 64


def pack(photos: Sequence[Photo], out: Path) -> None:
    """Documents of 1 to 50 tokens; each token of a document is its key, from 1."""
    import recordsmith as rs

    out.mkdir(parents=True)
    with rs.ShardWriter(out / "documents.tfrecord") as writer:
        for photo in photos:
            writer.write_example({"tokens": [photo.key + 1] * (1 + photo.key * 7 % 50)})


class Rows(Loader):
    """`rs.Loader` of shuffled rows; the keys of a batch are checksums of its rows."""

    def __init__(self, options: Options) -> None:
        import recordsmith as rs

        if options.keep is not None:
            raise UnsupportedError("rows have several documents: see Dataset.filter")
        self._loader = rs.Loader(
            rs.Packed(rs.open(options.place), "tokens", length=LENGTH, split_documents=False),
            **loading(options),
        )

    def epoch(self) -> Iterator[Batch]:
        for batch in self._loader:
            yield Batch([crc32(row.tobytes()) for row in batch["tokens"]], [])

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


RIVAL = Rival(
    title="recordsmith, packed tokens",
    distributions=("recordsmith",),
    pages=("docs/how-to/pack-tokens.md",),
    chosen=f"best fit into rows of {LENGTH} tokens, shuffled",
    pack=pack,
    loader=Rows,
)
