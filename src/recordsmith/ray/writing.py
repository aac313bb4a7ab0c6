"""Writes a `ray.data.Dataset` as a dataset of TFRecord files with a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import ray.data
from ray.data.block import BlockAccessor
from ray.data.datasource import Datasink

from recordsmith.dataset import Dataset, open  # noqa: A004
from recordsmith.stores import PlaceLike
from recordsmith.support.errors import OptionError
from recordsmith.writing import (
    PartResult,
    TableJob,
    abandon_table,
    begin_table,
    finish_table,
    job_folder,
    write_table_part,
)

_OBJECTS = "ray.data.arrow_pickled_object"
_TENSORS = ("ray.data.arrow_tensor", "ray.data.arrow_tensor_v2")
_TENSORS_OF_ARROW = "arrow.fixed_shape_tensor"
_RAGGED_TENSORS = "ray.data.arrow_variable_shaped_tensor"


def write(
    data: ray.data.Dataset,
    out: PlaceLike,
    *,
    overwrite: bool = False,
    split: str = "train",
    compression: str | None = None,
    shard_size_bytes: int | None = None,
    store_options: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
) -> Dataset:
    """Write a Ray Dataset as a dataset with manifest and indexes.

    Each task writes shards of its own. They become a dataset when all tasks have ended; a failed
    job leaves none. Columns become features as in `ShardWriter.write_columns`; NumPy arrays of one
    axis become lists. The records have the order of Ray's tasks, which is that of the rows if
    `DataContext.get_current().execution_options.preserve_order` is true.

    Args:
        data: what to write.
        out: the folder of the dataset: a path that all nodes share, or a URL.
        overwrite: replace an existing dataset; in a bucket, it is gone as soon as the job begins.
        split: the name of the split that all records belong to.
        compression: none, gzip or zlib.
        shard_size_bytes: about how large shards are; None: a shard for each block of Ray, or
            several of 256 MB.
        store_options: of `out`, if it is a URL; see `recordsmith.remote`. They are sent to the
            workers; credentials that each worker finds itself need no option.
        concurrency, ray_remote_args: as in `ray.data.Dataset.write_datasink`.

    Returns:
        The dataset.

    Raises:
        OptionError: `out` contains a dataset, a column cannot be stored, or an option is invalid.
        SourceError: the data has no rows, or `out` is a folder that the nodes do not share.
        FileAccessError: the folder cannot be written, or another job writes to it.

    Example:
        recordsmith.ray.write(ray.data.range(100), "numbers")
    """
    sink = RecordsmithDatasink(
        out,
        overwrite=overwrite,
        split=split,
        compression=compression,
        shard_size_bytes=shard_size_bytes,
        store_options=store_options,
    )
    sink.on_write_start()
    try:
        data.write_datasink(
            sink,
            concurrency=concurrency,
            ray_remote_args=None if ray_remote_args is None else dict(ray_remote_args),
        )
    except BaseException as error:
        sink.on_write_failed(error)
        raise
    return open(sink.out)


class RecordsmithDatasink(Datasink[PartResult]):  # type: ignore[misc]
    """A dataset for `ray.data.Dataset.write_datasink`; `write` makes one."""

    def __init__(
        self,
        out: PlaceLike,
        *,
        overwrite: bool = False,
        split: str = "train",
        compression: str | None = None,
        shard_size_bytes: int | None = None,
        store_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Arguments as in `write`."""
        self.out = job_folder(out, store_options)
        self._options: dict[str, Any] = {
            "split": split,
            "compression": compression,
            "shard_size_bytes": shard_size_bytes,
        }
        self._overwrite = overwrite
        self._job: TableJob | None = None

    @property
    def min_bytes_per_write(self) -> int | None:
        """The size of the blocks that Ray passes together, if a size of shards was chosen."""
        size = self._options["shard_size_bytes"]
        return size if type(size) is int else None

    def on_write_start(self, schema: Any = None) -> None:  # noqa: ARG002 - as Ray passes it
        """Check the folder and note that the job has begun."""
        if self._job is None:
            self._job = begin_table(self.out, self._overwrite, source="Ray", **self._options)

    def write(self, blocks: Iterable[Any], ctx: Any) -> PartResult:
        """Write the blocks of a task; return what `on_write_complete` needs."""
        assert self._job is not None, "Ray calls on_write_start first"
        return write_table_part(self._job, ctx.task_idx, _tables(blocks))

    def on_write_complete(self, write_result: Any) -> None:
        self.on_write_start()
        assert self._job is not None
        results = [result for result in write_result.write_returns if result is not None]
        finish_table(self._job, results)

    def on_write_failed(self, error: BaseException) -> None:  # noqa: ARG002 - as Ray passes it
        if self._job is not None:
            abandon_table(self._job)


def _tables(blocks: Iterable[Any]) -> Iterator[pa.Table]:
    """Yield the blocks as tables of types that Arrow has itself."""
    for block in blocks:
        table = BlockAccessor.for_block(block).to_arrow()
        if not len(table):  # such tensors have no chunks
            continue
        for number, field in enumerate(table.schema):
            if isinstance(field.type, pa.BaseExtensionType):
                column = _without_extension(field, table.column(number))
                table = table.set_column(number, field.name, column)
        yield table


def _without_extension(field: Any, column: Any) -> Any:
    name = field.type.extension_name
    if name == _OBJECTS:  # such as lists of text, after map_batches
        try:
            return pa.array(column.to_pylist())
        except (pa.ArrowException, TypeError, ValueError):
            raise OptionError(
                f"column {field.name!r} has Python objects",
                option="columns",
                value=field.name,
                expected="numbers, text, bytes, or lists of them",
                remedy="Convert them with map_batches.",
            ) from None
    if name not in (*_TENSORS, _TENSORS_OF_ARROW, _RAGGED_TENSORS):
        return column
    axes = field.type.ndim if name == _RAGGED_TENSORS else len(field.type.shape)
    if axes > 1:
        raise OptionError(
            f"column {field.name!r} has arrays of {axes} axes",
            option="columns",
            value=field.name,
            expected="arrays of one axis",
            remedy="Encode images as JPEG or PNG, and store other arrays as bytes and their shape.",
        )
    if name == _TENSORS_OF_ARROW:
        return column
    storage = [chunk.storage for chunk in column.chunks]
    if name == _RAGGED_TENSORS:
        storage = [pc.struct_field(chunk, "data") for chunk in storage]
    return pa.chunked_array(storage)
