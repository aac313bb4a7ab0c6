"""recordsmith: TFRecord shards, read by `rs.Loader`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rival import SIDE, Batch, Loader, Options, Photo, Rival


def pack(photos: Sequence[Photo], out: Path) -> None:
    import recordsmith as rs

    rs.pack(rs.ImageFolder(photos[0].path.parent.parent), out, shards=8)


class Images(Loader):
    """`rs.Loader` with a global shuffle."""

    order: Any = True

    def __init__(self, options: Options) -> None:
        import recordsmith as rs

        if options.what == "bytes":
            image: Any = rs.Bytes("image/encoded")
        else:
            fit: Any = "random-crop" if options.what == "crops" else "resize"
            image = rs.Image(size=SIDE, fit=fit)
        keep = options.keep
        place: Any = options.place
        if options.cache is not None:
            place = rs.remote(place, cache=options.cache, cache_bytes=options.cache_bytes)
        self._loader = rs.Loader(
            self._records(place),
            {"image": image, "key": rs.Text("image/filename")},
            **loading(options, self.order),
            filter=None if keep is None else lambda example: keep(key_of(example["key"])),
        )

    def _records(self, place: Any) -> Any:
        import recordsmith as rs

        return rs.open(place)

    def epoch(self) -> Iterator[Batch]:
        for batch in self._loader:
            yield as_batch(batch)

    def state(self) -> Any:
        return self._loader.state_dict()

    def load(self, state: Any) -> None:
        self._loader.load_state_dict(state)


def loading(options: Options, order: Any = True) -> dict[str, Any]:
    """The options of `rs.Loader` that do not depend on what is loaded."""
    return {
        "batch_size": options.batch_size,
        "shuffle": options.shuffle and order,
        "seed": options.seed,
        "threads": options.threads,
        "prefetch": options.prefetch,
        "rank": options.rank,
        "world_size": options.world_size,
    }


def key_of(name: str) -> int:
    return int(Path(name).stem)


def as_batch(batch: dict[str, Any]) -> Batch:
    import numpy as np

    return Batch(np.array([key_of(name) for name in batch["key"]], np.int64), batch["image"])


def verify(place: str) -> list[str]:
    import recordsmith as rs

    return [str(defect) for defect in rs.verify(place).defects]


def reader(place: str) -> Callable[[Sequence[int]], list[bytes]]:
    import recordsmith as rs

    dataset = rs.open(place)
    return lambda positions: [dataset[number]["image/encoded"][0] for number in positions]


RIVAL = Rival(
    title="recordsmith",
    distributions=("recordsmith",),
    pages=("docs/loading.md", "docs/packing.md"),
    chosen="a global shuffle, threads; all else as by default",
    pack=pack,
    loader=Images,
    reader=reader,
    verify=verify,
    checked="all records read back, synced",
)
