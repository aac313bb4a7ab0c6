"""Polars: lazy queries of datasets that decode only the columns they need. Needs polars.

    import recordsmith as rs
    from recordsmith.polars import scan

    frame = scan(rs.open("out")).filter(pl.col("image/class/label") == 3).collect()

`pl` is polars.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recordsmith.dataset import Dataset
from recordsmith.support.errors import OptionError, needs_extra

with needs_extra("polars"):
    import polars as pl
    from polars.io.plugins import register_io_source

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame

__all__ = ["scan"]


def scan(dataset: Dataset) -> LazyFrame:
    """Return a LazyFrame over the examples of a dataset.

    The query's columns, row limit and filter are passed on: only the features that it needs are
    decoded, in bounded memory.

    Args:
        dataset: a Dataset; its schema is read if it is not known.

    Raises:
        OptionError: the argument is not a Dataset, or its features have no columns.

    Example:
        counts = scan(rs.open("out")).group_by("image/class/label").len().collect()
    """
    if not isinstance(dataset, Dataset):
        raise OptionError(
            option="dataset", value=dataset, expected="a Dataset, as recordsmith.open() returns it"
        )
    empty = dataset.to_arrow().schema.empty_table()
    schema = pl.DataFrame(empty).schema

    def read(
        with_columns: list[str] | None,
        predicate: Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[DataFrame]:
        left = n_rows
        for batch in dataset.to_arrow(with_columns, batch_size=batch_size):
            frame = pl.DataFrame(batch if left is None else batch.slice(0, left))
            if left is not None:
                left -= len(frame)
            yield frame if predicate is None else frame.filter(predicate)
            if left == 0:
                return

    return register_io_source(read, schema=schema)
