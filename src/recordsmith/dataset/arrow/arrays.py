"""Decodes payloads to Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.arrow.columns import kind_of_type
from recordsmith.dataset.arrow.library import import_pyarrow
from recordsmith.dataset.arrow.restoring import restore, with_types
from recordsmith.dataset.arrow.schema import NESTED_SECTIONS, arrow_schema, columns_of
from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    RaggedArray,
    RankingList,
    Schema,
    decode_ranking_list,
)
from recordsmith.format.example.spans import payload_views
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import CorruptDataError, DataError, Defect, option

_KINDS = {"i8": "int64", "f4": "float"}


class ArrowDecoder:
    """Decodes payloads to record batches with the columns of a schema.

    schema: pyarrow.Schema of the batches; see `arrow_schema`.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Iterable[str] | None = None,
        class_names: Sequence[str | None] | None = None,
        types: Any = None,
    ) -> None:
        """
        Arguments and errors as in `arrow_schema`.

        Args:
            types: pyarrow.Schema with the types of some or all columns before they were stored as
                features of Examples; they come first, unless `columns` are chosen.
        """
        self._pa = import_pyarrow()
        found = columns_of(schema)
        if types is None or schema.payload not in ("Example", "none"):
            types = self._pa.schema([])
        columns = None if columns is None else list(columns)
        stored = columns
        if columns is not None:
            stored = [name for name in columns if name in found or name not in types.names]
        decoded = arrow_schema(schema, stored, class_names)
        decoded, self.schema = with_types(decoded, types, columns)
        for field in types:
            if field.name in found:
                section, key, feature = found[field.name]
                kind = kind_of_type(field.type)
                found[field.name] = (section, key, replace(feature, kind=kind))
        self._columns = [(field, *found[field.name]) for field in decoded]
        self._has_columns = schema.payload != "ELWC"
        specs: dict[str, dict[str, FeatureSpec]] = {}  # by section
        for field, section, key, feature in self._columns if self._has_columns else ():
            if feature.kind != "none":
                in_steps = section == "feature_lists"
                shape: Any = "ragged" if in_steps else _shape(self._pa, field.type)
                spec = FeatureSpec(feature.kind, shape, in_steps=in_steps)  # type: ignore[arg-type]
                specs.setdefault(section, {})[key] = spec
        self._decoders = {
            section: ColumnDecoder(chosen, with_validity=True)
            for section, chosen in (
                specs or {"": {}}
            ).items()  # without columns, records are checked
        }
        self._rows: list[list[Any]] = [[] for _ in self._columns]
        self._row_count = 0

    def append(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the payloads buffer[starts[i]:starts[i] + lengths[i]]; the buffer is not kept.

        Raises:
            CorruptDataError: a payload is malformed, or its features do not match the schema;
                `record` counts the payloads of this call. The decoder cannot be used again.
        """
        if self._has_columns:
            for decoder in self._decoders.values():
                decoder.append(buffer, starts, lengths)
            self._row_count += len(starts)
            return
        for number, payload in enumerate(payload_views(buffer, starts, lengths)):
            try:
                record = decode_ranking_list(payload)
                for (_, section, key, feature), rows in zip(self._columns, self._rows, strict=True):
                    values = _value(record, section, key)
                    _check_kind(key, feature.kind, values, is_nested=section in NESTED_SECTIONS)
                    rows.append(values)
            except DataError as error:
                error.record = number
                raise
            self._row_count += 1

    def finish(self) -> Any:
        """Return the payloads as a pyarrow.RecordBatch of its own memory; empty the decoder."""
        row_count, self._row_count = self._row_count, 0
        if self._has_columns:
            decoded = {
                section: decoder.finish_with_validity()
                for section, decoder in self._decoders.items()
            }
            arrays = []
            for field, section, key, _ in self._columns:
                columns, validity = decoded.get(section, ({}, {}))
                array = (
                    self._array(field.type, columns[key], validity.get(key), key)
                    if key in columns
                    else self._pa.nulls(row_count)
                )
                arrays.append(array)
        else:
            arrays = [
                self._from_rows(field, rows)
                for (field, *_), rows in zip(self._columns, self._rows, strict=True)
            ]
            self._rows = [[] for _ in self._columns]
        if not self.schema.names:
            return self._pa.RecordBatch.from_struct_array(self._pa.array([{}] * row_count))
        by_name = {
            field.name: array for (field, *_), array in zip(self._columns, arrays, strict=True)
        }
        arrays = [
            self._restored(by_name.get(field.name), field, row_count) for field in self.schema
        ]
        return self._pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _restored(self, array: Any, field: Any, row_count: int) -> Any:
        """Return a column in its type in the schema; without an array, a column of nulls."""
        if array is None:
            return self._pa.nulls(row_count, field.type)
        try:
            return restore(array, field.type)
        except self._pa.ArrowException as error:
            raise CorruptDataError(
                Defect.FEATURE_VALUE,
                f"feature {field.name!r} does not fit its Arrow type: {error}",
                expected=str(field.type),
                remedy=f"Read it with {option('restore_types', False)}.",
                feature=field.name,
            ) from None

    def _from_rows(self, field: Any, rows: list[Any]) -> Any:
        """Return the array of one column from the lists of its rows; None is a null."""
        pa = self._pa
        if pa.types.is_null(field.type):
            return pa.nulls(len(rows))
        if not pa.types.is_nested(field.type):
            _check_lengths(field.name, rows, 1)
            rows = [None if row is None else row[0] for row in rows]
        elif pa.types.is_fixed_size_list(field.type):
            _check_lengths(field.name, rows, field.type.list_size)
        try:
            return pa.array(rows, field.type)
        except pa.ArrowInvalid:
            raise _not_text(field.name) from None

    def _array(
        self, arrow_type: Any, column: Any, validity: npt.NDArray[np.uint8] | None, key: str
    ) -> Any:
        """Return a column as an array that shares its memory."""
        pa = self._pa
        valid = _buffer(pa, validity)
        if isinstance(column, RaggedArray):
            child = self._array(arrow_type.value_type, column.values, None, key)
            buffers = [valid, pa.py_buffer(column.row_splits)]
            return pa.Array.from_buffers(arrow_type, len(column), buffers, children=[child])
        if len(column.shape) > 1:
            child = self._values(arrow_type.value_type, column.reshape(-1), None, key)
            return pa.Array.from_buffers(arrow_type, len(column), [valid], children=[child])
        return self._values(arrow_type, column, valid, key)

    def _values(self, arrow_type: Any, values: Any, valid: Any, key: str) -> Any:
        pa = self._pa
        if not isinstance(values, BytesArray):
            buffers = [valid, pa.py_buffer(values)]
            return pa.Array.from_buffers(arrow_type, len(values), buffers)
        packed = values.packed()
        buffers = [valid, pa.py_buffer(packed.offsets), pa.py_buffer(packed.buffer)]
        array = pa.Array.from_buffers(arrow_type, len(values), buffers)
        if pa.types.is_large_string(arrow_type):
            try:
                array.validate(full=True)
            except pa.ArrowInvalid:
                raise _not_text(key) from None
        return array


def _not_text(key: str) -> CorruptDataError:
    return CorruptDataError(
        Defect.FEATURE_VALUE,
        f"feature {key!r} is not text",
        found="bytes that are not UTF-8",
        expected="UTF-8, as in the schema",
        feature=key,
    )


def _shape(pa: Any, arrow_type: Any) -> Any:
    if pa.types.is_large_list(arrow_type):
        return "ragged"
    return (arrow_type.list_size,) if pa.types.is_fixed_size_list(arrow_type) else ()


def _buffer(pa: Any, bits: npt.NDArray[np.uint8] | None) -> Any:
    return None if bits is None else pa.py_buffer(bits)


def _value(record: RankingList, section: str, key: str) -> Any:
    """Return the values of a feature of a ranking list; None if it lacks the feature."""
    if section == "context":
        return record.context.get(key)
    lists = [example.get(key) for example in record.examples]
    return None if all(values is None for values in lists) else [
        () if values is None else values for values in lists
    ]  # fmt: skip


def _check_lengths(key: str, rows: Sequence[Any], size: int) -> None:
    for number, row in enumerate(rows):
        if row is not None and len(row) != size:
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {key!r} has the wrong number of values",
                found=str(len(row)),
                expected=str(size),
                feature=key,
                record=number,
            )


def _check_kind(key: str, kind: str, values: Any, *, is_nested: bool) -> None:
    for each in (values or ()) if is_nested else (() if values is None else (values,)):
        if len(each):
            found = "bytes" if isinstance(each, list) else _KINDS[each.dtype.str[1:]]
            if found != kind:
                raise CorruptDataError(
                    Defect.FEATURE_KIND,
                    f"feature {key!r} has the wrong kind",
                    found=found,
                    expected=kind,
                    feature=key,
                )
