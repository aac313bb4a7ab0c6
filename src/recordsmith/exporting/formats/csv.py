"""CSV: a row for each example and a column for each feature that is not an image.

    <split>.csv

A feature with at most one value fills a cell; others are JSON lists. Where the manifest has the
types of the table that was packed, times are ISO 8601 and booleans true or false. An absent feature
leaves its cell empty. Bytes that are not text are base64, in a column that ends in /base64. A float
has the fewest digits that read back as the same number, and a dot or an exponent. Needs pyarrow.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from recordsmith.dataset import ArrowDecoder, Dataset, columns_of, import_pyarrow, is_list, plain
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import TableFiles
from recordsmith.format.example.keys import IMAGE
from recordsmith.support.buffers import offsets_from_lengths
from recordsmith.support.errors import OptionError

_NEEDS_QUOTES = '[",\r\n]'
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'
_EXPONENT_FROM = 1e10  # in the text that pyarrow makes of a float


class CsvTables(TableFiles):
    suffix = ".csv"
    options = (*TableFiles.options, "restore_types")

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        features = {key: path[-1] for key, path in columns_of(dataset.schema).items()}
        self._images = [
            key for key, feature in features.items() if feature.content == "image" or key == IMAGE
        ]
        self._is_single = {
            key: feature.max_length <= 1
            for key, feature in sorted(features.items())
            if key not in self._images
        }
        if self._images and not self._is_single:
            raise OptionError(
                "a CSV cannot hold images, and the records have nothing else",
                option="format",
                value="csv",
                remedy="Choose folder, parquet or huggingface.",
            )
        self._headings = [
            f"{key}/base64"
            if features[key].kind == "bytes" and features[key].content != "text"
            else key
            for key in self._is_single
        ]
        columns = [*self._is_single, *self._images]
        self.decoder = ArrowDecoder(dataset.schema, columns, types=dataset.view.arrow_types())

    def open(self, file: BinaryIO, split: str) -> None:
        self._file = file
        headings = [cells(import_pyarrow().array([heading])) for heading in self._headings]
        self._file.write(lines(headings, 1))

    def add(self, row_count: int, position: Callable[[int], int]) -> int:
        batch = self.decoder.finish()
        for key in self._images:
            image_count = len(batch) - batch.column(key).null_count
            self._out.tally.dropped_features[key] += image_count
        columns = [
            cells(batch.column(key), is_single=is_single)
            for key, is_single in self._is_single.items()
        ]
        self._file.write(lines(columns, len(batch)))
        return len(batch)


def cells(column: Any, *, is_single: bool = False) -> Any:
    """Return the cells of a column as a pyarrow.StringArray; null where the column is null.

    Example:
        >>> cells(pa.array([[1, 2], None, [3]])).to_pylist()
        ['"[1, 2]"', None, '[3]']
    """
    import pyarrow.compute as pc

    column = plain(column)
    if not is_list(column.type):
        texts = _texts(column)
        return texts if _is_number(column.type) else _quoted(texts)
    lengths = pc.list_value_length(column)
    if is_single and not is_list(column.type.value_type):
        single = _joined(column, _texts(column.flatten()))
        return _quoted(pc.if_else(pc.equal(lengths, 0), "[]", single))
    if not _is_number(column.type.value_type):
        return _quoted(_json(column))
    quotes = pc.if_else(pc.greater(lengths, 1), '"', "")  # because of the comma
    numbers = _joined(column, _texts(column.flatten()))
    return pc.binary_join_element_wise(quotes, "[", numbers, "]", quotes, "")


def lines(columns: list[Any], row_count: int) -> memoryview:
    """Return the UTF-8 text of all rows of a table with these cells."""
    import pyarrow.compute as pc

    if not columns or not row_count:
        return memoryview(b"\n" * row_count)
    if len(columns) == 1:  # an empty line would not be a row
        cell = columns[0].fill_null("")
        columns = [pc.if_else(pc.equal(cell, ""), '""', cell)]
    parts = [part for column in columns for part in (column, ",")][:-1]
    rows = pc.binary_join_element_wise(*parts, "\n", "", null_handling="replace")
    _, offsets, text = rows.buffers()
    return memoryview(text)[: np.frombuffer(offsets, np.int32)[row_count]]


def _json(column: Any) -> Any:
    """Return lists, or lists of lists, as JSON."""
    import pyarrow.compute as pc

    values = column.flatten()
    if is_list(values.type):
        texts = _json(values)
    elif _is_number(values.type):
        texts = _texts(values)
    else:
        texts = _json_strings(_texts(values))
    return pc.binary_join_element_wise("[", _joined(column, texts), "]", "")


def _joined(column: Any, texts: Any) -> Any:
    """Join the texts of the values of each list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column)
    if column.null_count:
        lengths = pc.if_else(column.is_valid(), lengths, 0)
    offsets = offsets_from_lengths(lengths.to_numpy()).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ", ")
    return pc.if_else(column.is_valid(), joined, None) if column.null_count else joined


def _texts(values: Any) -> Any:
    """Return numbers, text or bytes as a pyarrow.StringArray, without quotes."""
    import pyarrow as pa

    is_type = pa.types
    if "binary" in str(values.type):
        encoded = [None if v is None else base64.b64encode(v) for v in values.to_pylist()]
        return pa.array(encoded, pa.binary()).cast(pa.string())
    if is_type.is_timestamp(values.type) and values.type.tz is not None:
        moments = values.cast(pa.timestamp(values.type.unit, "UTC"))
        texts = moments.view(pa.timestamp(values.type.unit)).cast(pa.string())
        return pa.compute.binary_join_element_wise(texts, "Z", "")
    if is_type.is_float16(values.type):
        values = values.cast(pa.float32())
    texts = values.cast(pa.string())
    return _with_dots(texts, values) if is_type.is_floating(values.type) else texts


def _with_dots(texts: Any, floats: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = floats.fill_null(0.5).to_numpy()
    is_whole = (numbers == np.trunc(numbers)) & (np.abs(numbers) < _EXPONENT_FROM)
    if is_whole.any():
        whole = pc.binary_join_element_wise(texts.filter(is_whole), ".0", "")
        texts = pc.replace_with_mask(texts, is_whole, whole)
    is_special = ~np.isfinite(numbers)
    if is_special.any():
        names = [json.dumps(number) for number in numbers[is_special].tolist()]
        texts = pc.replace_with_mask(texts, is_special, pa.array(names))
    return texts


def _json_strings(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(texts, _NEEDS_ESCAPE)).as_py():
        return pa.array([json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()])
    return pc.binary_join_element_wise('"', texts, '"', "")


def _quoted(texts: Any) -> Any:
    """Quote the cells that contain what CSV uses itself."""
    import pyarrow.compute as pc

    needs_quotes = pc.match_substring_regex(texts, _NEEDS_QUOTES)
    if not pc.any(needs_quotes).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(needs_quotes, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _is_number(arrow_type: Any) -> bool:
    """Whether texts of the type are neither quoted in JSON nor in CSV."""
    from pyarrow import types

    is_number = types.is_integer(arrow_type) or types.is_floating(arrow_type)
    return bool(is_number or types.is_boolean(arrow_type))
