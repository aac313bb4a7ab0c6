"""Dask: datasets as DataFrames, which many machines read and write. Needs dask[dataframe].

from recordsmith.dask import read

frame = read("out", columns=["image/class/label", "image/width"])
print(frame.groupby("image/class/label").count().compute())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from recordsmith.dataset import DEFAULT_PART_BYTES, Dataset, dataset_of, parts_of
from recordsmith.dataset.arrow import ArrowColumns
from recordsmith.stores import PlaceLike
from recordsmith.support.errors import FileAccessError, MissingExtraError, OptionError
from recordsmith.writing.building import table_writing

try:
    import dask
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa
except ImportError as _error:
    raise MissingExtraError("dask", _error.name or "dask") from None

if TYPE_CHECKING:
    from recordsmith.dataset.locate import Paths

__all__ = ["read", "write"]


def read(
    paths: Paths | Dataset,
    split: str | None = None,
    *,
    columns: Iterable[str] | None = None,
    filter: str | None = None,
    part_bytes: int | str = DEFAULT_PART_BYTES,
    restore_types: bool = False,
    store_options: Mapping[str, Any] | None = None,
) -> dd.DataFrame:
    """Return a Dask DataFrame of the examples of a dataset.

    Each partition is a shard, or a part of a large one. Only the columns that a computation needs
    are decoded, and every checksum is verified. The columns have pandas' Arrow types: see
    docs/arrow.md; a record that lacks a feature has `<NA>`. The index of each partition counts
    from 0.

    Args:
        paths: as in `recordsmith.open`, on a disk or store that the workers share; or a Dataset,
            such as a slice of one.
        split: as in `recordsmith.open`.
        columns: feature names, in order; None for all.
        filter: only the examples that match a condition, as in `Dataset.filter`.
        part_bytes: the size from which an uncompressed shard is cut into several partitions.
        restore_types: whether columns have the types of the table that was packed; needs a
            manifest that has them.
        store_options: of all URLs in `paths`; see `recordsmith.remote`. They are sent to the
            workers; credentials that each worker finds itself need no option.

    Raises:
        OptionError: a column, the split or the condition is unknown or invalid.
        FileAccessError, CorruptDataError: as in `recordsmith.open`. Damaged records raise in
            `compute`.

    Example:
        frame = read("out", "train", filter="image/class/label > 0")
        print(frame["image/class/label"].value_counts().compute())
    """
    dataset = dataset_of(paths, split, store_options=store_options)
    schema = dataset.to_arrow(columns, where=filter, restore_types=restore_types).schema
    parts = parts_of(dataset, part_bytes) or [dataset[:0]]
    return dd.from_map(
        _read_part,
        parts,
        [_version(part) for part in parts],
        meta=_as_pandas(schema.empty_table()),
        label="recordsmith",
        where=filter,
        restore_types=restore_types,
    )


def write(
    frame: dd.DataFrame,
    out: PlaceLike,
    *,
    split: str = "train",
    compression: str | None = None,
    shard_size_bytes: int | None = None,
    overwrite: bool = False,
    store_options: Mapping[str, Any] | None = None,
) -> None:
    """Compute a Dask DataFrame and write a dataset with one Example for each row.

    The workers write the shards, one or more for each partition with rows. Labels and manifest are
    written last, so a failed job leaves no dataset. The order is that of the partitions. The index
    is not written: keep it with `frame.reset_index()`. Columns become features as in docs/arrow.md.

    Args:
        out: the folder of the dataset: a path that all workers share, or a URL.
        split: the name of the split.
        compression: none, gzip or zlib.
        shard_size_bytes: a partition becomes several shards of about this size; default 256 MB.
        overwrite: replace an existing dataset.
        store_options: of `out`, as in `recordsmith.remote`. They are sent to the workers;
            credentials that each worker finds itself need no option.

    Raises:
        OptionError: a column cannot be stored, an option is invalid, or `out` has a dataset.
        SourceError: the frame has no rows.
        FileAccessError: the folder cannot be written.

    Example:
        frame = read("out", columns=["image/width", "image/class/label"])
        write(frame[frame["image/class/label"] > 0], "sizes")
    """
    if not isinstance(frame, dd.DataFrame):
        raise OptionError(option="frame", value=frame, expected="a dask.dataframe.DataFrame")
    ArrowColumns(_as_arrow(frame._meta).schema)  # noqa: SLF001 - names columns before any is computed
    job = table_writing.begin(
        out,
        overwrite,
        split=split,
        compression=compression,
        shard_size_bytes=shard_size_bytes,
        source="Dask",
        store_options=store_options,
    )
    try:
        write_part = dask.delayed(_write_part, pure=False)
        parts = frame.to_delayed()
        results = dask.compute(
            *(write_part(job, number, part) for number, part in enumerate(parts))
        )
        table_writing.finish(job, results)
    except BaseException:
        with suppress(FileAccessError):  # the first error says more
            table_writing.abandon(job)
        raise


def _write_part(
    job: table_writing.TableJob, number: int, part: pd.DataFrame
) -> table_writing.PartResult:
    return table_writing.write_part(job, number, [_as_arrow(part)])


def _as_arrow(frame: pd.DataFrame) -> Any:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError) as error:
        raise OptionError(
            f"the DataFrame has no Arrow table: {error}",
            option="frame",
            remedy="Convert the column to numbers, text, bytes or lists of one of them.",
        ) from None


def _read_part(
    part: Dataset,
    _version: str | None,
    *,
    columns: Sequence[str],
    where: str | None,
    restore_types: bool,
) -> pd.DataFrame:
    """Read a partition; Dask passes the columns that are needed."""
    return _as_pandas(part.to_arrow(columns, where=where, restore_types=restore_types).read_all())


def _version(part: Dataset) -> str | None:
    """The version of a local file: Dask takes partitions of a changed file for other ones."""
    shard = part.shards[0]
    return None if shard.is_remote else shard.info().version


def _as_pandas(table: Any) -> pd.DataFrame:
    if not table.schema.names:
        return pd.DataFrame(index=pd.RangeIndex(len(table)))
    frame: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame
