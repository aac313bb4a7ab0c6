"""Columns and schemas of records as Arrow arrays and schemas, and back. Needs pyarrow.

Memory is shared where the layouts agree: numbers, the bytes and offsets of a `BytesArray`, the
values and row splits of a `RaggedArray`.
"""
