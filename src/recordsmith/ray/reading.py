"""Reads datasets as a `ray.data.Dataset`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask
from ray.data.expressions import ColumnExpr, Expr

from recordsmith.dataset import Dataset, dataset_of, parts_of
from recordsmith.support.errors import OptionError

if TYPE_CHECKING:
    from recordsmith.dataset import Paths

_WHOLE_BYTES = 1 << 62
_TASK_BYTES = 32 << 20  # Ray would make tasks of 1 MB; each costs as much as decoding 10 MB
_MIN_TASK_BYTES = 1 << 20
_TASKS_PER_PROCESSOR = 4
_MAX_TASKS = 4000  # Ray warns of more
_BLOCK_BYTES = 32 << 20
_INFLATED = 4  # records that are compressed with gzip are about this much larger
_NO_COLUMNS = "__bsp_stub"  # Ray's own name for the column of blocks of which only rows count


def read(
    paths: Paths | Dataset,
    split: str | None = None,
    *,
    columns: Iterable[str] | None = None,
    filter: str | None = None,
    restore_types: bool = False,
    store_options: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    override_num_blocks: int | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
) -> ray.data.Dataset:
    """Return a Ray Dataset of the examples of a dataset.

    A task reads one or several shards, or a part of a large one. Only the columns that Ray needs
    are decoded, filters of Ray are applied while reading, and every checksum is verified. Types are
    as in docs/arrow.md; a record that lacks a feature has null. With a manifest, no record is read
    before the tasks run. Ray keeps the order of the records if
    `DataContext.get_current().execution_options.preserve_order` is true.

    Args:
        paths: as in `recordsmith.open`, on a disk or store that all nodes share; or a Dataset, such
            as a slice of one.
        split: as in `recordsmith.open`.
        columns: feature names, in order; None for all.
        filter: only the examples that match a condition, as in `Dataset.filter`.
        restore_types: whether columns have the types of the table that was packed; needs a
            manifest that has them.
        store_options: of all URLs in `paths`; see `recordsmith.remote`. They are sent to the
            workers; credentials that each worker finds itself need no option.
        concurrency, override_num_blocks, ray_remote_args: as in `ray.data.read_datasource`; without
            a number of blocks, tasks read about 32 MiB.

    Raises:
        OptionError: a column, the split or the condition is unknown or invalid.
        FileAccessError, CorruptDataError: as in `recordsmith.open`. Damaged records raise when the
            tasks run.

    Example:
        data = recordsmith.ray.read("out", "train", filter="image/class/label > 0")
        print(data.groupby("image/class/label").count().take_all())
    """
    source = RecordsmithDatasource(
        paths,
        split,
        columns=columns,
        filter=filter,
        restore_types=restore_types,
        store_options=store_options,
    )
    return ray.data.read_datasource(
        source,
        concurrency=concurrency,
        override_num_blocks=override_num_blocks or source.task_count(),
        ray_remote_args=None if ray_remote_args is None else dict(ray_remote_args),
    )


class RecordsmithDatasource(Datasource):  # type: ignore[misc]
    """A dataset for `ray.data.read_datasource`; `read` makes one.

    read_schema: the pyarrow.Schema of the columns.
    """

    def __init__(
        self,
        paths: Paths | Dataset,
        split: str | None = None,
        *,
        columns: Iterable[str] | None = None,
        filter: str | None = None,
        restore_types: bool = False,
        store_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Open the dataset; arguments and errors as in `read`."""
        super().__init__()
        dataset = dataset_of(paths, split, store_options=store_options)
        reader = dataset.to_arrow(columns, where=filter, restore_types=restore_types)
        self.read_schema = reader.schema
        self._where = filter
        self._restore_types = restore_types
        self._projection_map: dict[str, str] | None = None
        self._shards = parts_of(dataset, _WHOLE_BYTES)

    def get_name(self) -> str:
        return "Recordsmith"

    def supports_projection_pushdown(self) -> bool:
        return True

    def supports_predicate_pushdown(self) -> bool:
        return True

    def apply_predicate(self, predicate_expr: Expr) -> RecordsmithDatasource:
        """Return a source of the rows that match a filter of Ray.

        Raises:
            OptionError: it has columns that are not read.
        """
        for name in _columns_in(predicate_expr):
            if name not in self.read_schema.names:
                raise OptionError(
                    f"the filter has the column {name!r}, which is not read",
                    option="columns",
                    value=name,
                    expected=f"one of {', '.join(self.read_schema.names)}",
                )
        return super().apply_predicate(predicate_expr)  # type: ignore[no-any-return]

    def task_count(self) -> int:
        """Return a good number of tasks: of 32 MiB each, and four for each processor."""
        if not ray.is_initialized():  # as Ray Data does itself a moment later
            ray.init()
        total = sum(map(_file_bytes, self._shards))
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        by_size = min(total // _TASK_BYTES, _MAX_TASKS)
        return max(
            1, min(max(by_size, _TASKS_PER_PROCESSOR * processors), total // _MIN_TASK_BYTES)
        )

    def estimate_inmemory_data_size(self) -> int | None:
        """Return about how many bytes the columns have."""
        return sum(map(_part_bytes, self._shards))

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: Any = None,  # noqa: ARG002 - as Ray passes it
    ) -> list[ReadTask]:
        """Return as many tasks as Ray asks for, if shards can be cut, in the order of records."""
        columns = self._get_data_columns()
        columns = self.read_schema.names if columns is None else columns
        read_part = partial(
            _read_parts,
            columns=columns,
            where=self._where,
            predicate=self._predicate_expr,
            restore_types=self._restore_types,
        )
        schema = pa.schema([self.read_schema.field(name) for name in columns])
        return [
            ReadTask(
                partial(read_part, parts),
                BlockMetadata(
                    num_rows=self._row_count(parts),
                    size_bytes=sum(map(_part_bytes, parts)),
                    input_files=tuple(
                        dict.fromkeys(str(part.shards[0].location) for part in parts)
                    ),
                    exec_stats=None,
                ),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for parts in self._tasks(max(1, parallelism))
        ]

    def _tasks(self, count: int) -> Iterator[list[Dataset]]:
        """Yield the parts that each task reads: so many tasks, if shards can be cut."""
        total = max(1, sum(map(_part_bytes, self._shards)))
        most = max(1, total // count)
        parts = [part for shard in self._shards for part in parts_of(shard, most)]
        sizes = [_part_bytes(part) for part in parts]
        middles = (stop - size / 2 for stop, size in zip(accumulate(sizes), sizes, strict=True))
        numbers = [int(middle * count / total) for middle in middles]
        for _, group in groupby(zip(numbers, parts, strict=True), lambda pair: pair[0]):
            yield [part for _, part in group]

    def _row_count(self, parts: Sequence[Dataset]) -> int | None:
        """Return the number of rows of a task, if it is known without reading records."""
        if self._where is not None or self._predicate_expr is not None:
            return None
        is_known = all(part.shards[0].entry is not None for part in parts)
        return sum(map(len, parts)) if is_known else None


def _file_bytes(part: Dataset) -> int:
    shard = part.shards[0]
    return shard.size_bytes * (1 if shard.compression == "none" else _INFLATED)


def _part_bytes(part: Dataset) -> int:
    """Return about how many bytes the records of a part have."""
    shard = part.shards[0]
    size = _file_bytes(part)
    return size if shard.entry is None else size * len(part) // max(1, shard.entry.record_count)


def _read_parts(
    parts: Sequence[Dataset],
    *,
    columns: Sequence[str],
    where: str | None,
    predicate: Expr | None,
    restore_types: bool,
) -> Iterator[pa.Table]:
    needed = list(columns)
    matches = None
    if predicate is not None:
        matches = predicate.to_pyarrow()
        needed += [name for name in _columns_in(predicate) if name not in columns]
    for part in parts:
        reader = part.to_arrow(needed, where=where, restore_types=restore_types)
        for table in _joined(reader):
            rows = table if matches is None else table.filter(matches)
            if columns:
                yield rows.select(columns)
            else:
                yield pa.table({_NO_COLUMNS: pa.nulls(len(rows))})


def _joined(reader: Any) -> Iterator[pa.Table]:
    """Yield tables of several batches, so that Ray handles fewer of them."""
    batches: list[Any] = []
    size = 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size >= _BLOCK_BYTES:
            yield pa.Table.from_batches(batches)
            batches, size = [], 0
    if batches:
        yield pa.Table.from_batches(batches)


def _columns_in(value: Any) -> list[str]:
    """Return the columns that an expression of Ray uses."""
    if isinstance(value, ColumnExpr):
        return [value.name]
    if isinstance(value, Expr) and dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return []
    return list(dict.fromkeys(name for inner in value for name in _columns_in(inner)))
