"""Reads records as a stream of Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from recordsmith.dataset.arrow.arrays import ArrowDecoder
from recordsmith.dataset.arrow.library import import_pyarrow
from recordsmith.dataset.selected_records import LocatedBlock, SelectedRecords
from recordsmith.format.example import Schema
from recordsmith.support.work import WorkerPool

if TYPE_CHECKING:
    from recordsmith.dataset.where.expression import Where

DEFAULT_ROWS = 16_384
_BATCH_BYTES = 16 << 20  # of the payloads in a batch, if no number of rows is requested
_ROWS_AT_ONCE = 4096  # measured: one batch of 1,024 costs 1.3 times as much per row
_BYTES_AT_ONCE = 4 << 20


def record_batches(
    blocks: Iterable[LocatedBlock], decoder: ArrowDecoder, batch_size: int | None
) -> Iterator[Any]:
    """Yield record batches; without a batch size, of up to 16,384 rows or 16 MiB."""
    rows = batch_size or DEFAULT_ROWS
    missing_rows = rows  # rows to decode at once: one batch first, as a query may stop after it
    filled = filled_bytes = 0
    for located in blocks:
        row, count = 0, len(located.block)
        while row < count:
            stop = min(count, row + missing_rows - filled)
            located.append_to(decoder, row, stop)
            filled += stop - row
            filled_bytes += int(located.block.lengths[row:stop].sum())
            row = stop
            is_full = batch_size is None and filled_bytes >= _BATCH_BYTES
            if filled == missing_rows or is_full:
                yield from _slices(decoder.finish(), rows)
                if filled_bytes * 2 <= _BYTES_AT_ONCE and missing_rows * 2 <= _ROWS_AT_ONCE:
                    missing_rows *= 2
                filled = filled_bytes = 0
    if filled:
        yield from _slices(decoder.finish(), rows)


def _slices(batch: Any, rows: int) -> Iterator[Any]:
    if len(batch) <= rows:
        yield batch
        return
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


def open_stream(
    records: SelectedRecords,
    schema: Schema,
    columns: Iterable[str] | None,
    class_names: Sequence[str | None] | None,
    batch_size: int | None,
    threads: int,
    types: Any = None,
    where: Where | None = None,
) -> Any:
    """Return a pyarrow.RecordBatchReader; nothing is read and no thread begins before its first
    batch.
    """
    pa = import_pyarrow()
    columns = None if columns is None else tuple(columns)

    def make_decoder() -> ArrowDecoder:
        return ArrowDecoder(schema, columns, class_names, types)

    def blocks(part: SelectedRecords) -> Iterable[LocatedBlock]:
        if where is None:
            return part.blocks()
        return (located.select(located.matching(where)) for located in part.blocks())

    def batches() -> Iterator[Any]:
        if threads == 1 or records.compressed_shard() is not None:
            yield from record_batches(blocks(records), first, batch_size)
            return
        rows = batch_size or DEFAULT_ROWS
        rows *= max(1, DEFAULT_ROWS // rows)
        parts = (records.cut(slice(start, start + rows)) for start in range(0, len(records), rows))
        decoded = WorkerPool(threads, None).in_order(
            lambda part: list(record_batches(blocks(part), make_decoder(), batch_size)),
            parts,
            ahead=threads + 1,
        )
        with closing(decoded):
            for some in decoded:
                yield from some

    first = make_decoder()
    if columns is not None:
        records = records.reading({*columns, *(() if where is None else where.keys)})
    return pa.RecordBatchReader.from_batches(first.schema, batches())
