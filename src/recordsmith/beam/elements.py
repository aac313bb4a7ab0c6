"""What passes between the steps of a pipeline: record batches, and errors with all their fields."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apache_beam as beam
import pyarrow as pa

from recordsmith.support.errors import RecordsmithError


class BatchCoder(beam.coders.Coder):
    """Encodes record batches as Arrow IPC streams, which have only the rows of a slice."""

    def encode(self, value: pa.RecordBatch) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_batch(value)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def decode(self, encoded: bytes) -> pa.RecordBatch:
        with pa.ipc.open_stream(encoded) as reader:
            return reader.read_next_batch()

    def is_deterministic(self) -> bool:
        return False

    def to_type_hint(self) -> Any:
        return pa.RecordBatch


beam.coders.registry.register_coder(pa.RecordBatch, BatchCoder)


@contextmanager
def with_all_fields() -> Iterator[None]:
    """Mark errors as complete: Beam replaces others by copies that lack path, record and advice."""
    try:
        yield
    except RecordsmithError as error:
        error._tagged_with_step = True  # type: ignore[attr-defined] # noqa: SLF001
        raise
