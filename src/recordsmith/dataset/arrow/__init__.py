"""Columns and schemas of records as Arrow arrays and schemas, and back. Needs pyarrow.

Memory is shared where the layouts agree: numbers, the bytes and offsets of a `BytesArray`, the
values and row splits of a `RaggedArray`.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "arrays": "ArrowDecoder",
        "columns": "ArrowColumns feature_kinds read_stream",
        "library": "ArrowStream",
        "restoring": "schema_as_text schema_from_text",
        "schema": "arrow_schema",
    },
)
