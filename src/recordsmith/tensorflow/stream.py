"""A loader as a `tf.data.Dataset`.

A batch passes through `tf.data` as plain arrays that are not copied, and a traced function puts it
together. Each iteration of the dataset is one of the loader. Errors arrive as TensorFlow's, with
the message of recordsmith.

`Dataset.from_generator` is not used: it makes the whole process clear new memory for each array of
128 KiB or more (M_MMAP_THRESHOLD), which costs half as much as decoding the images.
"""

from __future__ import annotations

import atexit
import itertools
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from recordsmith.loading import Iteration, Loader, Rank, check_loader
from recordsmith.support.errors import FunctionError, OptionError, option
from recordsmith.tensorflow.tensors import ALIGNMENT, EntryParts
from recordsmith.tensorflow.tensors import element_spec as spec_of

_TRAINERS = ("chief", "master", "worker")  # in the order of TensorFlow's own numbers
_FOREVER = 2**62  # batches
_QUIET = 0.05  # s without a call, after which the buffers of TensorFlow count as full
_PATIENCE = 5.0  # s


def batches(
    loader: Loader, *, element_spec: Mapping[str, Any] | None = None, any_rank: bool = False
) -> tf.data.Dataset:
    """Return the batches of a loader as a `tf.data.Dataset` of dicts of tensors.

    Each iteration, such as a Keras epoch, is one of the loader, with its own order. Numbers are not
    copied. The length is known, unless the loader resumes inside an iteration.

    Args:
        element_spec: `tf.TensorSpec` or `tf.RaggedTensorSpec` by name, for maps whose batches
            differ from the first one. Default: `element_spec(loader)`.
        any_rank: allow a loader with another rank than this process, such as when several ranks
            read the same records.

    Raises:
        OptionError: the loader has the rank of another process.

    Example:
        batches = recordsmith.tensorflow.batches(loader)
        for batch in batches:  # for model.fit, map batches to pairs of inputs and targets
            print(batch["image"].shape)  # (8, 32, 32, 3)
    """
    check_loader(loader, None if any_rank else this_rank())
    specs = spec_of(loader) if element_spec is None else element_spec
    entries = {name: EntryParts(name, spec) for name, spec in specs.items()}
    flat_specs = [spec for parts in entries.values() for spec in parts.specs]
    running = _Running(loader, entries)

    def iteration(_: Any) -> tf.data.Dataset:
        token, count = tf.py_function(lambda: _calls.do(running.begin), [], [tf.int64, tf.int64])
        token.set_shape((1,))
        count.set_shape(())

        def batch(_: Any) -> dict[str, Any]:
            flat = tf.numpy_function(
                lambda token: _calls.do(running.next, token),
                [token],
                [spec.dtype for spec in flat_specs],
            )
            for tensor, spec in zip(flat, flat_specs, strict=True):
                tensor.set_shape(spec.shape)
            left = iter(flat)
            return {
                name: parts.join([next(left) for _ in parts.specs])
                for name, parts in entries.items()
            }

        return tf.data.Dataset.range(count).map(tf.autograph.experimental.do_not_convert(batch))

    plain = tf.autograph.experimental.do_not_convert(iteration)
    dataset: Any = tf.data.Dataset.from_tensors(0).flat_map(plain)
    if running.count is not None:
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(running.count))
    options = tf.data.Options()  # ranks are the loader's: TensorFlow must not split again
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


def this_rank() -> Rank:
    """Return rank and world_size of this process: `Loader(..., **this_rank())`.

    Uses the cluster resolver of the current strategy, else TF_CONFIG, else rank 0 of 1. The
    replicas of a process, such as with MirroredStrategy, have one rank.

    Raises:
        OptionError: this process does not train, such as a parameter server; or TF_CONFIG is not
            valid JSON.

    Example:
        rank = recordsmith.tensorflow.this_rank()
        loader = rs.Loader(dataset, batch_size=8, shuffle=True, **rank)
    """
    resolver = None
    if tf.distribute.has_strategy():
        resolver = tf.distribute.get_strategy().cluster_resolver
    if resolver is None:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    try:
        tasks = resolver.cluster_spec().as_dict()
        kind, number = resolver.task_type, resolver.task_id
    except json.JSONDecodeError as error:
        raise OptionError(f"TF_CONFIG is not valid JSON: {error}", option="rank") from None
    counts = {name: len(tasks.get(name, ())) for name in _TRAINERS}
    if not any(counts.values()) or kind == "evaluator":  # alone, or next to those that train
        return Rank(rank=0, world_size=1)
    if kind not in _TRAINERS or number is None:
        raise OptionError(
            f"this process is a {kind}, which does not read batches", option="rank", value=kind
        )
    before = _TRAINERS[: _TRAINERS.index(kind)]
    rank = sum(counts[name] for name in before) + int(number)
    return Rank(rank=rank, world_size=sum(counts.values()))


class _Calls:
    """TensorFlow's calls into Python, which must have returned when the interpreter ends.

    A thread of TensorFlow that requests the interpreter's lock after its end is stopped, and the
    threads that wait for its result block the process forever. tf.data reads ahead, so a program
    may end during such a call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._last = 0.0
        self._is_over = False
        self.streams: weakref.WeakSet[_Running] = weakref.WeakSet()
        atexit.register(self._end)

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it, unless the program ends."""
        with self._lock:
            self._running += 1
        try:
            if not self._is_over:
                return function(*arguments)
        except Exception:
            if not self._is_over:
                raise
        finally:
            with self._lock:
                self._running -= 1
                self._last = time.monotonic()
        raise StopIteration  # the only error that TensorFlow does not print

    def _end(self) -> None:
        """End all calls with an error, until the buffers of TensorFlow are full of errors."""
        self._is_over = True
        for stream in list(self.streams):
            stream.close()
        give_up = time.monotonic() + _PATIENCE
        while time.monotonic() < give_up:
            if not self._running and time.monotonic() > self._last + _QUIET:
                return
            time.sleep(_QUIET / 10)


class _Running:
    """The iterations of a loader that TensorFlow has begun, by number.

    count: how many batches each has, or INFINITE_CARDINALITY; None if the first one has fewer
        than the others.
    """

    def __init__(self, loader: Loader, entries: Mapping[str, EntryParts]) -> None:
        self._loader = loader
        self._entries = entries
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._iterations: dict[int, tuple[Iteration, Iterator[dict[str, Any]]]] = {}
        self.count = None if loader.session.is_resuming else _length(loader)
        _calls.streams.add(self)

    def close(self) -> None:
        """End all iterations; those that wait for a batch raise."""
        for iteration, _ in list(self._iterations.values()):
            iteration.close()

    def begin(self) -> tuple[Any, int]:
        """Begin an iteration; return its token, whose release ends it, and its length."""
        with self._lock:  # only one of several that begin at once resumes from a loaded state
            length = _length(self._loader)
            if self.count not in (None, length):
                raise OptionError(
                    f"the next iteration of the loader has {length} batches, but had {self.count} "
                    "when batches(loader) was called",
                    remedy="Call batches(loader) after load_state_dict.",
                )
            iteration = iter(self._loader)
            first = list(itertools.islice(iteration, 1))
        number = next(self._numbers)
        self._iterations[number] = iteration, itertools.chain(first, iteration)
        token = _aligned(number)
        weakref.finalize(token, self._end, number).atexit = False
        if not first:
            length = 0
        elif length == tf.data.INFINITE_CARDINALITY:
            length = _FOREVER
        # DLPack releases the memory at once, and from any thread
        return tf.experimental.dlpack.from_dlpack(token.__dlpack__()), length

    def next(self, token: Any) -> list[Any]:
        batch = next(self._iterations[int(token[0])][1], None)
        if batch is None:
            raise OptionError("the loader was closed while its batches were read")
        if batch.keys() != self._entries.keys():
            reason, remedy = "", "Return the same entries for all batches."
            if not len(next(iter(batch.values()))):
                reason = ": all of its records were filtered or skipped, so no map was called"
                remedy = (
                    f"Pass a larger {option('batch_size')}, or make the entries in .map of tf.data."
                )
            raise FunctionError(
                f"a batch has the entries {', '.join(batch)}; expected "
                f"{', '.join(self._entries)}{reason}",
                function="map_batches",
                remedy=remedy,
            )
        return [part for name, parts in self._entries.items() for part in parts.split(batch[name])]

    def _end(self, number: int) -> None:
        iteration, _ = self._iterations.pop(number)
        iteration.close()


_calls = _Calls()


def _aligned(number: int) -> Any:
    """Return a number as int64, (1,), in memory that TensorFlow can share."""
    memory = np.empty(ALIGNMENT // 8 * 2, np.int64)
    start = -memory.ctypes.data % ALIGNMENT // 8
    token = memory[start : start + 1]
    token[0] = number
    return token


def _length(loader: Loader) -> int:
    try:
        return len(loader)
    except TypeError:
        return int(tf.data.INFINITE_CARDINALITY)
