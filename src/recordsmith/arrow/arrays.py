"""Decodes payloads to Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.arrow.columns import kind_of_type
from recordsmith.arrow.library import import_pyarrow
from recordsmith.arrow.restoring import restore, with_types
from recordsmith.arrow.schema import NESTED_SECTIONS, arrow_schema, columns_of
from recordsmith.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    RaggedArray,
    Schema,
    decode_payload,
)
from recordsmith.example.ranking_list import RankingList, decode_ranking_list
from recordsmith.example.spans import payload_views

_DTYPES = {"int64": np.int64, "float": np.float32}
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
        decoded = arrow_schema(schema, columns, class_names)
        found = columns_of(schema)
        self._is_flat = schema.payload in ("Example", "none")
        self.schema = decoded
        if types is not None and self._is_flat:
            decoded, self.schema = with_types(decoded, types, are_chosen=columns is not None)
            for field in types:
                if field.name in found:
                    section, key, feature = found[field.name]
                    kind = kind_of_type(field.type)
                    found[field.name] = (section, key, replace(feature, kind=kind))
        self._columns = [(field, *found[field.name]) for field in decoded]
        self._decode_record: Callable[[BytesLike], Any] = (
            decode_ranking_list if schema.payload == "ELWC" else decode_payload
        )
        specs = {
            key: FeatureSpec(feature.kind, _shape(self._pa, field.type))  # type: ignore[arg-type]
            for field, _, key, feature in self._columns
            if feature.kind != "none"
        }
        self._decoder = ColumnDecoder(specs if self._is_flat else {}, with_validity=True)
        self._rows: list[list[Any]] = [[] for _ in self._columns]
        self._row_count = 0

    def append(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the payloads buffer[starts[i]:starts[i] + lengths[i]]; the buffer is not kept.

        Raises:
            CorruptDataError: a payload is malformed, or its features do not match the schema;
                `record` counts the payloads of this call. The decoder cannot be used again.
        """
        if self._is_flat:
            self._decoder.append(buffer, starts, lengths)
            self._row_count += len(starts)
            return
        for number, payload in enumerate(payload_views(buffer, starts, lengths)):
            try:
                record = self._decode_record(payload)
                for (_, section, key, feature), rows in zip(self._columns, self._rows, strict=True):
                    values = _value(record, section, key)
                    _check_kind(key, feature.kind, values, is_nested=section in NESTED_SECTIONS)
                    rows.append(values)
            except CorruptDataError as error:
                error.record = number
                raise
            self._row_count += 1

    def finish(self) -> Any:
        """Return a pyarrow.RecordBatch of the payloads, which owns its memory; empty the decoder.

        Raises:
            CorruptDataError: a feature does not match the schema.
        """
        row_count, self._row_count = self._row_count, 0
        if self._is_flat:
            columns, validity = self._decoder.finish_with_validity()
            arrays = [
                self._array(field.type, columns[key], validity.get(key), key)
                if key in columns
                else self._pa.nulls(row_count)
                for field, _, key, _ in self._columns
            ]
        else:
            arrays = [
                self._nested_array(field, feature.kind, section, values)
                for (field, section, _, feature), values in zip(
                    self._columns, self._rows, strict=True
                )
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
                remedy="Read it without restoring types.",
                feature=field.name,
            ) from None

    def _nested_array(self, field: Any, kind: str, section: str, rows: list[Any]) -> Any:
        """Return the array of one column from the lists of its rows; None is a null."""
        pa = self._pa
        if kind == "none":
            return pa.nulls(len(rows))
        present = np.array([row is not None for row in rows])
        if section not in NESTED_SECTIONS:
            values, offsets = _joined(kind, [[] if row is None else row for row in rows])
            column: Any = RaggedArray(values, offsets)
            if not pa.types.is_large_list(field.type):
                return self._fixed_array(field, column, present)
            return self._array(field.type, column, _bits(present), field.name)
        steps = [step for row in rows for step in row or ()]
        values, offsets = _joined(kind, steps)
        inner = self._array(field.type.value_type, RaggedArray(values, offsets), None, field.name)
        splits = offsets_from_lengths([len(row or ()) for row in rows])
        buffers = [_buffer(pa, _bits(present)), pa.py_buffer(splits)]
        return pa.Array.from_buffers(field.type, len(rows), buffers, children=[inner])

    def _fixed_array(self, field: Any, column: RaggedArray, present: npt.NDArray[np.bool_]) -> Any:
        """Return an array of a scalar or a fixed-size list."""
        pa = self._pa
        size = field.type.list_size if pa.types.is_fixed_size_list(field.type) else 1
        wrong = np.flatnonzero(present & (column.lengths != size))
        if len(wrong):
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {field.name!r} has the wrong number of values",
                found=str(column.lengths[wrong[0]]),
                expected=str(size),
                feature=field.name,
                record=int(wrong[0]),
            )
        filled = column.values.tolist()
        rows = iter(filled[start : start + size] for start in range(0, len(filled), size))
        values = [next(rows) if there else None for there in present]
        if size == 1 and not pa.types.is_fixed_size_list(field.type):
            values = [None if row is None else row[0] for row in values]
        return pa.array(values, field.type)

    def _array(
        self, arrow_type: Any, column: Any, validity: npt.NDArray[np.uint8] | None, key: str
    ) -> Any:
        """Return a column as an array that shares its memory."""
        pa = self._pa
        valid = _buffer(pa, validity)
        if isinstance(column, RaggedArray):
            child = self._values(arrow_type.value_type, column.values, None, key)
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


def _bits(present: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8] | None:
    return None if present.all() else np.packbits(present, bitorder="little")


def _buffer(pa: Any, bits: npt.NDArray[np.uint8] | None) -> Any:
    return None if bits is None else pa.py_buffer(bits)


def _value(record: Any, section: str, key: str) -> Any:
    """Return the values of a feature of one record; None if it lacks the feature."""
    if isinstance(record, dict):  # an Example: the context of a record without lists
        return record.get(key) if section == "context" else None
    if section == "context":
        return record.context.get(key)
    if isinstance(record, RankingList):
        lists = [example.get(key) for example in record.examples]
        return None if all(values is None for values in lists) else [
            () if values is None else values for values in lists
        ]  # fmt: skip
    return record.feature_lists.get(key)


def _joined(kind: str, lists: Sequence[Any]) -> tuple[Any, Int64Array]:
    """Return the values of all lists end to end, and their offsets."""
    offsets = offsets_from_lengths([len(values) for values in lists])
    if kind == "bytes":
        return BytesArray.from_values([value for values in lists for value in values]), offsets
    pieces = [values for values in lists if len(values)]
    return (np.concatenate(pieces) if pieces else np.empty(0, _DTYPES[kind])), offsets


def _check_kind(key: str, kind: str, values: Any, *, is_nested: bool) -> None:
    """Check the kind of the values of one record.

    Raises:
        CorruptDataError: it is not `kind`.
    """
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
