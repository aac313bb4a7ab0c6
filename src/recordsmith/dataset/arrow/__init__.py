"""Columns and schemas of records as Arrow arrays and schemas, and back. Needs pyarrow.

Memory is shared where the layouts agree: numbers, the bytes and offsets of a `BytesArray`, the
values and row splits of a `RaggedArray`.
"""

from recordsmith.dataset.arrow.arrays import ArrowDecoder
from recordsmith.dataset.arrow.columns import ArrowColumns, ArrowStream, feature_kinds, read_stream
from recordsmith.dataset.arrow.restoring import schema_as_text, schema_from_text
from recordsmith.dataset.arrow.schema import arrow_schema

__all__ = [
    "ArrowColumns",
    "ArrowDecoder",
    "ArrowStream",
    "arrow_schema",
    "feature_kinds",
    "read_stream",
    "schema_as_text",
    "schema_from_text",
]
