"""Batches of a loader as JAX arrays: on one device, or spread over many.

    for batch in recordsmith.jax.batches(loader, sharding):
        state = train_step(state, batch["image"], batch["label"])

`convert` puts one batch on devices; `batches` does it a few batches ahead of the loop, in the
loop's own thread: JAX copies while the device computes. Numbers that JAX would cut to 32 bits in
silence are an error; text and bytes, of which JAX has no arrays, stay on the host.
"""

from __future__ import annotations

import functools
import math
import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recordsmith.errors import MissingExtraError, OptionError, names_like
from recordsmith.example import BytesArray, RaggedArray
from recordsmith.loading import Loader
from recordsmith.loading.options import whole_number
from recordsmith.loading.suitable import Rank, check_loader, check_rank

try:
    import jax
    from jax.sharding import NamedSharding, Sharding
except ModuleNotFoundError as error:
    raise MissingExtraError("jax", "jax") from error

Batch: TypeAlias = dict[str, Any]
Shardings: TypeAlias = Sharding | Mapping[str, Sharding | None] | None
"""One for all entries of numbers; or one for each entry that is named."""

_NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


class Ragged(NamedTuple):
    """Rows of unequal length: row i is values[row_splits[i]:row_splits[i + 1]]. A pytree.

    values: (value_count,).
    row_splits: integers, (row_count + 1,).
    """

    values: jax.Array
    row_splits: jax.Array


def batches(
    loader: Loader, sharding: Shardings = None, *, prefetch: int = 2, any_rank: bool = False
) -> Batches:
    """The batches of a loader, converted, on their way to the devices ahead of the loop.

    Args:
        sharding: how the rows are spread over devices: one for all entries of numbers, or a dict
            with one for each entry that is spread. Where it reaches over several processes, their
            batches become one array. None for the default device.
        prefetch: how many batches are put on devices ahead of the one that is asked for; they
            take memory there.
        any_rank: the loader may have another rank and world_size than this process: for processes
            that shall read the same.

    Raises:
        OptionError: the loader reads the records of another rank; batches cannot be divided by
            the devices; the loader uses memory again.
    """
    check_loader(
        loader,
        reuse="a JAX array on the CPU is the memory of the batch itself, and another device may "
        "still copy from it",
    )
    ahead_count = whole_number("prefetch", prefetch, 0)
    splits = _splits(sharding)
    if not any_rank:
        how = "Loader(..., **this_rank(sharding))" if splits else "Loader(..., **this_rank())"
        check_rank(loader, this_rank(sharding), f"{how}, after jax.distributed.initialize()")
    made = Batches(loader, sharding, splits, ahead_count)
    made.check_rows()
    return made


def convert(batch: Mapping[str, Any], sharding: Shardings = None) -> Batch:
    """A batch with JAX arrays: numbers as `jax.Array`, ragged ones as `Ragged`, text as lists of
    str, and byte strings as lists of bytes, both on the host.

    Without `jax_enable_x64` JAX has 32 bits: int64 become int32, float64 float32. On the CPU an
    array may be the memory of the batch itself, which must not be changed then.

    Args:
        sharding: as of `batches`.

    Raises:
        OptionError: a number does not fit into 32 bits; the rows cannot be divided by the devices;
            an entry that is spread over devices is ragged or no numbers.
    """
    if sharding is None or isinstance(sharding, Sharding):
        return {name: _convert(name, entry, sharding) for name, entry in batch.items()}
    _splits(sharding)  # says what it is, if it is none
    for name, of_entry in sharding.items():
        if name not in batch:
            hint = names_like(name, batch, "it has none at all")
            raise OptionError(f"there is a sharding for {name!r}, but no such entry; {hint}")
        if of_entry is not None and not _has_numbers(batch[name]):
            raise OptionError(
                f"there is a sharding for {name!r}, which is no array of numbers: text and bytes "
                "stay on the host, so leave it out"
            )
    return {name: _convert(name, entry, sharding.get(name)) for name, entry in batch.items()}


def this_rank(sharding: Shardings = None) -> Rank:
    """Which process this is, of how many: `Loader(..., **this_rank())`.

    Args:
        sharding: that of the batches, where processes share rows, as those do which only cut the
            model: they have one rank, and read the same.
    """
    splits = _splits(sharding)
    if splits:
        return Rank(rank=splits[0].rank, world_size=splits[0].world_size)
    return Rank(rank=jax.process_index(), world_size=jax.process_count())


class Batches:
    """The batches of a loader as JAX arrays. Each iteration is one of the loader.

    `len`, `state_dict` and `load_state_dict` speak of the batch that was handed out last, not of
    those that are put ahead of it.
    """

    def __init__(
        self, loader: Loader, sharding: Shardings, splits: list[_Split], prefetch: int
    ) -> None:
        self._loader = loader
        self._sharding = sharding
        self._splits = splits
        self._prefetch = prefetch
        self._place: _Place | None = None

    def __repr__(self) -> str:
        return f"recordsmith.jax.batches({self._loader!r})"

    def __iter__(self) -> Iteration:
        """An iteration, which begins when its first batch is asked for."""
        return Iteration(self, self._sharding, self._prefetch)

    def __len__(self) -> int:
        """How many batches the next iteration gives.

        Raises:
            TypeError: it goes on for ever.
        """
        return len(self._loader)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, as `Loader.state_dict` tells it."""
        place, state = self._place, self._loader.state_dict()
        return place.of_loop if place is not None and place.of_loader == state else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another loop was, as `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)
        self._place = None

    # -- for its iterations ------------------------------------------------------------------------

    def begin(self) -> Iterator[Batch]:
        """An iteration of the loader."""
        of_loop, of_loader = self.state_dict(), self._loader.state_dict()
        if of_loop != of_loader:
            # The last iteration was broken off. The loader is further than the loop was, perhaps in
            # another epoch; the next one is that after the loop's.
            epoch = of_loop["epoch"] + (of_loop["read"] > 0)
            self.load_state_dict({**of_loop, "epoch": epoch, "read": 0, "begun": epoch})
        self.check_rows()
        self.tell(self._loader.state_dict())
        return iter(self._loader)

    def place(self) -> dict[str, Any]:
        """Where the loader is."""
        return self._loader.state_dict()

    def tell(self, of_loop: dict[str, Any]) -> None:
        """The loop has come to where the loader was then."""
        self._place = _Place(of_loop, self._loader.state_dict())

    def check_rows(self) -> None:
        """Whether the devices can share the rows of all batches.

        Raises:
            OptionError: they cannot.
        """
        loader = self._loader
        for split in self._splits:
            if loader.batch_size % split.part_count:
                raise OptionError(
                    f"{split.part_count} devices of this process share the rows of a batch, of "
                    f"which there are {loader.batch_size}: say a batch_size that is a multiple of "
                    f"{split.part_count}"
                )
            reason = loader.shorter_batches
            if reason is not None and (split.part_count > 1 or split.world_size > 1):
                raise OptionError(
                    f"{split.words}, so all batches need {loader.batch_size} rows, but {reason}"
                )


class _Place(NamedTuple):
    """Where the loop is, told when the loader was where it is now."""

    of_loop: dict[str, Any]
    of_loader: dict[str, Any]


class _Ahead(NamedTuple):
    """A batch that is on its way to the devices, and where the loader was after it."""

    batch: Batch
    place: dict[str, Any]


class Iteration:
    """One pass over the batches: an iterator that can be closed."""

    def __init__(self, batches: Batches, sharding: Shardings, prefetch: int) -> None:
        self._batches = batches
        self._sharding = sharding
        self._prefetch = prefetch
        self._source: Any = None
        self._ahead: deque[_Ahead] = deque()
        self._asked_count = 0
        self._end: Exception | None = None  # what comes after the batches that are put ahead
        self._is_closed = False

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._is_closed:
            raise StopIteration
        if self._source is None:
            self._source, self._process = self._batches.begin(), os.getpid()
        if os.getpid() != self._process:
            raise OptionError(
                "this iteration was begun in another process, which goes on with it: begin one of "
                "your own with iter(), in a process that was spawned, as JAX does not bear forks"
            )
        self._asked_count += 1
        # the first batch waits for no other, and the loop runs while those ahead of it are made
        wanted = min(self._asked_count, self._prefetch + 1)
        while len(self._ahead) < wanted and self._end is None:
            self._put()
        if not self._ahead:
            end = self._end
            self.close()
            assert end is not None
            if isinstance(end, StopIteration):
                self._batches.tell(self._batches.place())
            raise end
        batch, place = self._ahead.popleft()
        self._batches.tell(place)
        return batch

    def _put(self) -> None:
        """Send one more batch to the devices."""
        try:
            batch = convert(next(self._source), self._sharding)
        except Exception as error:  # noqa: BLE001 - it is raised after the batches before it
            self._end = error
        else:
            self._ahead.append(_Ahead(batch, self._batches.place()))

    def close(self) -> None:
        """End it, and the threads that work for it. There are no more batches afterwards."""
        self._is_closed = True
        self._ahead.clear()
        self._end = None  # an error keeps what it was raised in
        if self._source is not None:
            self._source.close()


# -- one entry -------------------------------------------------------------------------------------


def _has_numbers(entry: Any) -> bool:
    if isinstance(entry, RaggedArray):
        entry = entry.values
    if isinstance(entry, np.ndarray):
        return entry.dtype.kind not in "OSU"
    return isinstance(entry, jax.Array)


def _convert(name: str, entry: Any, sharding: Sharding | None) -> Any:
    if not _has_numbers(entry):
        is_array = isinstance(entry, (BytesArray, RaggedArray, np.ndarray))
        return entry.tolist() if is_array else entry
    if not isinstance(entry, RaggedArray):
        return _put(name, entry, sharding)
    if sharding is not None:
        raise OptionError(
            f"entry {name!r} has rows of unequal length, which cannot be spread over devices: make "
            "it a recordsmith.Padded, or give a sharding for each other entry by name"
        )
    return Ragged(_put(name, entry.values, None), _put(name, entry.row_splits, None))


def _put(name: str, array: Any, sharding: Sharding | None) -> jax.Array:
    if isinstance(array, np.ndarray):
        array = _narrowed(name, array)
    if sharding is not None:
        _check_shape(name, array.shape, sharding)
    try:
        if sharding is None or sharding.is_fully_addressable:
            return jax.device_put(array, sharding)
        # axes that are not rows are whole in each process, however they are cut
        whole = (array.shape[0] * _split(sharding).world_size, *array.shape[1:])
        return jax.make_array_from_process_local_data(sharding, array, whole)
    except (TypeError, ValueError) as error:
        raise OptionError(f"entry {name!r}, {array.dtype} {array.shape}: {error}") from error


def _narrowed(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in the dtype that JAX will have it in.

    JAX itself would wrap integers around, and takes no foreign byte order.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    narrow = _NARROW.get(array.dtype.name)
    if narrow is None or jax.config.jax_enable_x64:
        return array
    with np.errstate(over="ignore"):
        narrowed = array.astype(narrow)
    if array.dtype.kind in "iu":
        wrong = narrowed != array
    else:
        wrong = np.isfinite(array) & ~np.isfinite(narrowed)
    if wrong.any():
        raise OptionError(
            f"entry {name!r} has {array[wrong][0]}, {array.dtype}, which does not fit into "
            f"{narrow}, and JAX has no more bits: make the number smaller in map_batches, leave "
            "the entry out, or begin with jax.config.update('jax_enable_x64', True)"
        )
    return narrowed


# -- shardings -------------------------------------------------------------------------------------


class _Split(NamedTuple):
    """How a sharding cuts the first axis.

    part_count: how many parts the rows of this process are cut into.
    rank, world_size: which rows this process has, of how many groups of processes that have
        different ones.
    """

    part_count: int
    rank: int
    world_size: int

    @property
    def words(self) -> str:
        if self.world_size == 1:
            return f"{self.part_count} devices share the rows of a batch"
        return f"{self.world_size} processes share the rows of a batch"


def _splits(shardings: Shardings) -> list[_Split]:
    """How each sharding cuts the rows."""
    if shardings is None:
        return []
    if isinstance(shardings, Sharding):
        return [_split(shardings)]
    expected = "expected a jax.sharding.Sharding, or a dict of them by the names of entries"
    if not isinstance(shardings, Mapping):
        raise OptionError(f"the sharding is {shardings!r:.60}; {expected}")
    for name, sharding in shardings.items():
        if sharding is not None and not isinstance(sharding, Sharding):
            raise OptionError(f"the sharding of {name!r} is {sharding!r:.60}; {expected}")
    splits = [_split(sharding) for sharding in shardings.values() if sharding is not None]
    if len({(split.rank, split.world_size) for split in splits}) > 1:
        raise OptionError(
            "the shardings of different entries share out the rows among the processes "
            "differently, but a process has one batch: cut the first axis alike in all of them"
        )
    return splits


@functools.lru_cache(maxsize=64)
def _split(sharding: Sharding) -> _Split:
    try:
        parts: dict[int, set[int]] = {}  # process -> the parts that its devices hold
        for device, index in sharding.devices_indices_map(_part_counts(sharding)).items():
            parts.setdefault(device.process_index, set()).add(index[0].start or 0)
    except (KeyError, ValueError) as error:
        raise OptionError(
            f"the sharding is {sharding!r:.200}, which tells no devices for rows: {error}"
        ) from error
    groups = list(dict.fromkeys(frozenset(parts[process]) for process in sorted(parts)))
    own = parts.get(jax.process_index())
    if own is None:
        raise OptionError(f"the sharding has no device of process {jax.process_index()}")
    if sum(map(len, groups)) > len(frozenset().union(*groups)):
        raise OptionError(
            "the sharding gives processes rows of which each has some in common with another, but "
            "not all: order the devices of the mesh so that processes have the same rows or others"
        )
    return _Split(len(own), groups.index(frozenset(own)), len(groups))


def _part_counts(sharding: Sharding) -> tuple[int, ...]:
    """A shape with one row for each part, along all axes that are cut."""
    if not isinstance(sharding, NamedSharding):
        return (len(sharding.device_set),)
    sizes = sharding.mesh.shape
    cut = [names if isinstance(names, tuple) else (names,) for names in sharding.spec] or [()]
    return tuple(math.prod(sizes[name] for name in names if name is not None) for names in cut)


def _check_shape(name: str, shape: tuple[int, ...], sharding: Sharding) -> None:
    """Whether this process's part of an array can be cut as the sharding does."""
    if isinstance(sharding, NamedSharding) and len(sharding.spec) > len(shape):
        raise OptionError(
            f"entry {name!r} has shape {shape}, but its sharding cuts {len(sharding.spec)} axes: "
            f"{sharding.spec}; give one by name for each entry"
        )
    part_count = _split(sharding).part_count
    if shape[0] % part_count:
        raise OptionError(
            f"entry {name!r} has {shape[0]} rows, which {part_count} devices cannot share: make "
            "the loader with ends='drop' or ends='pad', and leave out what makes batches smaller"
        )
