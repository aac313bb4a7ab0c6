"""A transform that writes a dataset, whole shards in each worker."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.utils.windowed_value import WindowedValue

from recordsmith.beam.elements import with_all_fields
from recordsmith.format.example import (
    BytesArray,
    Kind,
    SequenceExample,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.wire import FRAME_BYTES
from recordsmith.stores import Location, PlaceLike
from recordsmith.support.errors import OptionError
from recordsmith.writing import PartWriter, begin_table, existing_dataset, finish_table, job_folder

_PIECE_BYTES = 4 << 20  # of payloads that are written together
_MAX_BYTES = 1 << 62


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
        folder = job_folder(out, store_options)
        if not overwrite and folder.store.is_folder(folder.key):
            existing_dataset(folder, "", [], has_label_map=False, overwrite=False)
        self._shards = shards
        self._job = _Job(
            folder,
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
    def __init__(
        self, folder: Location, options: Mapping[str, Any], kinds: Mapping[str, Kind] | None
    ) -> None:
        self._folder = folder
        self._options = options
        self.kinds = kinds

    @with_all_fields()
    def begin(self, token: str) -> Any:
        return begin_table(self._folder, token=token, **self._options)

    @with_all_fields()
    def write_group(self, group: tuple[int, Iterable[Any]], begun: Any) -> Any:
        number, elements = group
        part = _BufferedWriter(begun, number, self.kinds)
        try:
            for element in elements:
                part.add(element)
            return part.finish()
        except BaseException:
            part.stop()
            raise

    @with_all_fields()
    def finish(self, _: None, begun: Any, results: Iterable[Any]) -> str:
        finish_table(begun, results)
        return str(self._folder)


class _BufferedWriter:
    """Writes the elements of a part, many payloads together."""

    def __init__(self, begun: Any, number: int, kinds: Mapping[str, Kind] | None) -> None:
        self._writer = PartWriter(begun, number)
        self._kinds = kinds
        self._payloads: list[bytes] = []
        self._size_bytes = 0

    def add(self, element: Any) -> None:
        if isinstance(element, (pa.RecordBatch, pa.Table)):
            self._pass_on()
            self._writer.add(element)
            return
        payload = self._payload(element)
        self._payloads.append(payload)
        self._size_bytes += len(payload) + FRAME_BYTES
        if self._size_bytes >= _PIECE_BYTES:
            self._pass_on()

    def finish(self) -> Any:
        self._pass_on()
        return self._writer.finish()

    def stop(self) -> None:
        self._writer.stop()

    def _pass_on(self) -> None:
        payloads, self._payloads, self._size_bytes = self._payloads, [], 0
        if payloads:
            self._writer.add(BytesArray.from_values(payloads))

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


class _WriteBundle(beam.DoFn):
    """Writes the elements of each bundle as a part."""

    def __init__(self, job: _Job) -> None:
        self._job = job
        self._part: _BufferedWriter | None = None

    def start_bundle(self) -> None:
        self.teardown()

    @with_all_fields()
    def process(self, element: Any, begun: Any) -> None:
        if self._part is None:
            number = random.getrandbits(53)  # parts have no order, and their number is unknown
            self._part = _BufferedWriter(begun, number, self._job.kinds)
        self._part.add(element)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._part is not None:
            with with_all_fields():
                result = self._part.finish()
            self._part = None
            window = beam.transforms.window.GlobalWindow()
            yield WindowedValue(result, window.max_timestamp(), [window])

    def teardown(self) -> None:
        """Remove what a bundle that failed has written."""
        part, self._part = self._part, None
        if part is not None:
            part.stop()
