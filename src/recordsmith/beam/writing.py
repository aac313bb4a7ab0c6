"""A transform that writes a dataset, whole shards in each worker."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Full, Queue
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.windowed_value import WindowedValue

from recordsmith.beam.elements import with_all_fields
from recordsmith.buffers import offsets_from_lengths
from recordsmith.building import existing_dataset, table_writing
from recordsmith.errors import OptionError
from recordsmith.example import (
    BytesArray,
    Kind,
    SequenceExample,
    encode_example,
    encode_sequence_example,
)
from recordsmith.stores import Location, PlaceLike, as_folder, is_url
from recordsmith.stores.location import remote
from recordsmith.wire import FRAME_BYTES

_ELEMENTS_AT_ONCE = 256  # that are passed to the thread that writes
_PIECE_BYTES = 4 << 20  # of payloads that are written together
_MAX_BYTES = 1 << 62
_TABLES = (pa.RecordBatch, pa.Table)


class WriteDataset(beam.PTransform):
    """Writes examples as a dataset with a manifest.

    Elements are dicts, as `encode_example` takes them, SequenceExamples, serialized messages as
    bytes, or Arrow record batches and tables, in which null means that a record lacks the feature.
    The PCollection must be bounded.

    Workers write whole shards under temporary names, and one of them publishes those of the bundles
    that succeeded, so bundles may be repeated. If the pipeline fails, there is no dataset.

    Its result has one element, the path or URL of the dataset.

    Example:
        with beam.Pipeline() as pipeline:
            numbers = pipeline | beam.Create(range(10))
            numbers | beam.Map(lambda n: {"label": n, "name": f"{n}"}) | WriteDataset("numbers")
    """

    def __init__(
        self,
        out: PlaceLike,
        *,
        split: str = "train",
        shards: int | None = None,
        shard_size_bytes: int | None = None,
        compression: str | None = None,
        kinds: Mapping[str, Kind] | None = None,
        overwrite: bool = False,
        store_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Check the options and that there is no dataset.

        Args:
            out: the folder of the dataset: a path that all workers share, or a URL.
            split: the name of the split that all records belong to.
            shards: the number of shards, to which elements are assigned at random; None to write
                what each bundle has, without a shuffle.
            shard_size_bytes: without `shards`, begin another shard at this size; None: 256 MB.
            compression: none, gzip or zlib.
            kinds: the kinds of features in dicts, as in `encode_example`.
            overwrite: replace an existing dataset.
            store_options: as in `recordsmith.remote`. They become part of the pipeline, so leave
                credentials out: workers take them from their own environment.

        Raises:
            OptionError: `out` contains a dataset, or an option is invalid.
        """
        super().__init__()
        if shards is not None and (type(shards) is not int or shards < 1):
            raise OptionError(option="shards", value=shards, expected="a positive integer")
        if shards is not None and shard_size_bytes is not None:
            raise OptionError(
                option="shard_size_bytes", value=shard_size_bytes, expected="None with shards"
            )
        if store_options is not None and isinstance(out, str):
            out = remote(out, store_options=store_options)
        folder = as_folder(out)
        if folder.store.is_folder(folder.key):
            existing_dataset(folder, "", [], has_label_map=False, overwrite=overwrite)
        self._shards = shards
        self._job = _Job(
            out
            if isinstance(out, Location) or (isinstance(out, str) and is_url(out))
            else os.path.abspath(out),
            {
                "overwrite": overwrite,
                "split": split,
                "compression": compression,
                "shard_size_bytes": shard_size_bytes if shards is None else _MAX_BYTES,
                "source": "Beam",
            },
            kinds,
        )

    def expand(self, pcoll: Any) -> Any:
        """Add the transform to a pipeline."""
        job, start = self._job, pcoll.pipeline | "Start" >> beam.Create([None])
        # the result has one window, so the elements need the same
        pcoll = pcoll | "Window" >> beam.WindowInto(beam.window.GlobalWindows())
        # a shuffle keeps its result: all bundles have the same job, also if it begins twice
        token = start | "Token" >> beam.Map(_token) | "Same token" >> beam.Reshuffle()
        begun = beam.pvalue.AsSingleton(token | "Begin" >> beam.Map(job.begin) | beam.Reshuffle())
        if self._shards is None:
            results = pcoll | "Write" >> beam.ParDo(_WriteBundle(job), begun)
        else:
            results = (
                pcoll
                | "Assign" >> beam.Map(_assign, self._shards)
                | "Group" >> beam.GroupByKey()
                | "Write" >> beam.Map(job.write_group, begun)
            )
        # these results are stable, and those of failed attempts are not among them
        results = results | "Results" >> beam.Reshuffle()
        return start | "Finish" >> beam.Map(
            job.finish, begun, beam.pvalue.AsIter(results)
        ).with_output_types(str)


def _token(_: None) -> str:
    return os.urandom(16).hex()


def _assign(element: Any, shards: int) -> tuple[int, Any]:
    return random.randrange(shards), element  # noqa: S311 - not secret


class _Job:
    """A dataset that is written, in workers.

    out: an absolute path or URL; or a location, which has the options that the user passed.
    """

    def __init__(
        self, out: str | Location, options: Mapping[str, Any], kinds: Mapping[str, Kind] | None
    ) -> None:
        self._out = out
        self._options = options
        self._kinds = kinds

    @with_all_fields()
    def begin(self, token: str) -> Any:
        return table_writing.begin(self._out, token=token, **self._options)

    @with_all_fields()
    def write_group(self, group: tuple[int, Iterable[Any]], begun: Any) -> Any:
        number, elements = group
        return table_writing.write_part(begun, number, self._pieces(elements), out=self._out)

    @with_all_fields()
    def finish(self, _: None, begun: Any, results: Iterable[Any]) -> str:
        table_writing.finish(begun, results, out=self._out)
        return str(self._out)

    def _pieces(self, elements: Iterable[Any]) -> Iterator[Any]:
        """Yield tables, and many payloads together."""
        payloads: list[bytes] = []
        size_bytes = 0
        for element in elements:
            is_table = isinstance(element, _TABLES)
            if payloads and (is_table or size_bytes >= _PIECE_BYTES):
                yield _joined(payloads)
                payloads, size_bytes = [], 0
            if is_table:
                yield element
            else:
                payloads.append(self._payload(element))
                size_bytes += len(payloads[-1]) + FRAME_BYTES
        if payloads:
            yield _joined(payloads)

    def _payload(self, element: Any) -> bytes:
        if isinstance(element, bytes):
            return element
        if isinstance(element, SequenceExample):
            return encode_sequence_example(*element)
        if isinstance(element, Mapping):
            return encode_example(element, self._kinds)
        raise OptionError(
            option="element", value=element,
            expected="a dict, a SequenceExample, bytes, a pyarrow.RecordBatch or a pyarrow.Table",
        )  # fmt: skip


def _joined(payloads: Sequence[bytes]) -> BytesArray:
    lengths = np.fromiter(map(len, payloads), np.int64, len(payloads))
    return BytesArray(np.frombuffer(b"".join(payloads), np.uint8), offsets_from_lengths(lengths))


class _WriteBundle(beam.DoFn):
    """Writes the elements of each bundle as a part, in a thread that takes them as they come."""

    def __init__(self, job: _Job) -> None:
        self._job = job
        self._part: _RunningPart | None = None

    def start_bundle(self) -> None:
        self.teardown()

    def process(self, element: Any, begun: Mapping[str, Any]) -> None:
        if self._part is None:
            number = random.getrandbits(53)  # parts have no order, and their number is unknown
            self._part = _RunningPart(
                lambda elements: self._job.write_group((number, elements), begun)
            )
        self._part.add(element)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        part, self._part = self._part, None
        if part is not None:
            window = beam.transforms.window.GlobalWindow()
            yield WindowedValue(part.finish(), window.max_timestamp(), [window])

    def teardown(self) -> None:
        """Stop writing if the bundle failed."""
        part, self._part = self._part, None
        if part is not None:
            part.stop()


class _StoppedError(Exception):
    """A bundle failed, so its part is not needed."""


class _RunningPart:
    """A part that a thread writes. Elements are passed many at a time; None is the end."""

    def __init__(self, write: Callable[[Iterable[Any]], Any]) -> None:
        self._write = write
        self._elements: list[Any] = []
        self._passed: Queue[list[Any] | None] = Queue(2)
        self._is_stopped = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="recordsmith-part", daemon=True)
        self._thread.start()

    def add(self, element: Any) -> None:
        self._elements.append(element)
        if isinstance(element, _TABLES) or len(self._elements) == _ELEMENTS_AT_ONCE:
            self._pass(self._elements)
            self._elements = []

    def finish(self) -> Any:
        """Return the result when all elements are written, or raise its error."""
        self._pass(self._elements)
        self._pass(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result

    def stop(self) -> None:
        """Remove what was written."""
        self._is_stopped = True
        with suppress(Full):
            self._passed.put_nowait(None)
        self._thread.join()

    def _pass(self, elements: list[Any] | None) -> None:
        while self._error is None:
            with suppress(Full):
                self._passed.put(elements, timeout=1)
                return
        raise self._error

    def _run(self) -> None:
        try:
            self._result = self._write(self._taken())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that adds elements
            self._error = error

    def _taken(self) -> Iterator[Any]:
        while (elements := self._passed.get()) is not None and not self._is_stopped:
            yield from elements
        if self._is_stopped:
            raise _StoppedError
