"""What a rival is: how it packs images, yields batches of them, and resumes.

Each module of this folder has one, `RIVAL`, written as the rival's own documentation advises. It is
imported only by the Python of its environment, and imports its libraries inside of functions, so
that the time to import them is measured where it is spent.
"""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

SIDE = 224

What = Literal["images", "crops", "bytes"]


class Photo(NamedTuple):
    """A JPEG file to be packed. `key` counts them from 0, and is stored with each."""

    key: int
    path: Path
    label: int


def with_key(photo: Photo) -> bytes:
    """A record of formats that store bytes only: the key in eight bytes, and the JPEG file."""
    return photo.key.to_bytes(8, "little") + photo.path.read_bytes()


def key_and_image(record: Any) -> tuple[int, Any]:
    """The parts of such a record."""
    view = memoryview(record)
    return int.from_bytes(view[:8], "little"), view[8:]


def photos_of(folder: Path) -> list[Photo]:
    """The JPEG files of a folder of classes, whose names are their keys."""
    paths = sorted(folder.glob("*/*.jpg"), key=lambda path: int(path.stem))
    classes = sorted({path.parent.name for path in paths})
    return [Photo(int(path.stem), path, classes.index(path.parent.name)) for path in paths]


def shard_bytes(photos: Sequence[Photo]) -> int:
    """How large shards may be: 64 MiB, or an eighth of a small dataset."""
    return min(64 << 20, -(-sum(photo.path.stat().st_size for photo in photos) // 8))


def digest_of(images: Iterable[tuple[int, str]]) -> str:
    """Of keys and SHA-256 hashes of JPEG files, in any order."""
    return hashlib.sha256(repr(sorted(images)).encode()).hexdigest()


def hashes_of(batches: Iterable[Batch]) -> Iterator[tuple[int, str]]:
    """Key and SHA-256 hash of each JPEG file, of a loader of "bytes"."""
    for batch in batches:
        for key, image in zip(batch.keys, batch.images, strict=True):
            yield int(key), hashlib.sha256(image).hexdigest()


def written_once(place: Path, write: Callable[[Path], None]) -> Path:
    """A folder, which is written whole or not at all if it is missing."""
    if not place.exists():
        partial = place.with_name(f"{place.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        write(partial)
        partial.rename(place)
    return place


class Batch(NamedTuple):
    """`keys`: int64 (n,). `images`: uint8 (n, 224, 224, 3), or the n JPEG files, for "bytes".

    Arrays, or tensors.
    """

    keys: Any
    images: Any


@dataclass(frozen=True)
class Options:
    """What a loader is asked for.

    place: the folder that `pack` wrote, or its URL in a bucket.
    what: "images": decoded whole, and resized to 224 by 224 pixels by bilinear interpolation;
        "crops": a random rectangle of 8 to 100 % of the area, resized in the same way;
        "bytes": the JPEG files as they are.
    threads: how many threads, or worker processes, prepare batches; 0 for none but the main thread.
    prefetch: how many batches each of them is ahead.
    keep: for rivals that filter: called with a key, whether the record is wanted.
    cache: a folder for shards from the bucket; `cache_bytes`: how large it may grow.
    """

    place: str
    what: What = "images"
    batch_size: int = 32
    threads: int = 2
    prefetch: int = 2
    seed: int = 0
    shuffle: bool = True
    rank: int = 0
    world_size: int = 1
    keep: Callable[[int], bool] | None = None
    cache: str | None = None
    cache_bytes: int | None = None

    @property
    def thread_count(self) -> int:
        """`threads`, but at least one: for libraries that always have a thread of their own."""
        return max(self.threads, 1)


class UnsupportedError(Exception):
    """The rival cannot do this. The text says so in a few words, with the page that says it."""


class Loader(ABC):
    """Epochs of batches."""

    @abstractmethod
    def epoch(self) -> Iterator[Batch]:
        """Begin the next epoch, or go on with the one whose state was loaded."""

    def state(self) -> Any:
        """Return what JSON or pickle can keep, after the batch that was yielded last.

        Raises:
            UnsupportedError: the documentation has no state.
        """
        raise UnsupportedError("none documented")

    def load(self, state: Any) -> None:
        """Go on with a state of another process: the next epoch begins after its batch."""
        raise UnsupportedError(f"none documented, {type(state)}")

    def load_other_ranks(self, states: Sequence[Any]) -> None:
        """Go on with the states of another number of ranks; here any of them is for all."""
        self.load(states[0])


@dataclass(frozen=True)
class Rival:
    """One of those that are compared.

    title: as the tables have it.
    distributions: whose versions are printed.
    pages: the documentation that it follows.
    chosen: which settings, and why, in a sentence or two.
    pack: writes images to a folder; None if it reads the files as they are.
    loader: begins to load.
    reader: returns what reads the JPEG files at some positions; None if it cannot.
    verify: its own tool that checks a packed folder: returns what it finds; None if it has none.
    checked: how what was packed is checked before packing ends, as documented.
    environment: the lock file of this folder with its libraries: "torch" or "tensorflow".
    """

    title: str
    distributions: tuple[str, ...]
    pages: tuple[str, ...]
    chosen: str
    pack: Callable[[Sequence[Photo], Path], None] | None
    loader: Callable[[Options], Loader]
    reader: Callable[[str], Callable[[Sequence[int]], list[bytes]]] | None = None
    verify: Callable[[str], list[str]] | None = None
    checked: str = "no"
    environment: str = "torch"
