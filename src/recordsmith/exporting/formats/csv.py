"""CSV: a row for each example and images as files, in the layout of Hugging Face's ImageFolder.

    metadata.csv, <name>                     with images, named in the column file_name;
    <split>/metadata.csv, <split>/<name>     if there are several splits
    <split>.csv                              without images

A feature with at most one value fills a cell; others are JSON lists. Where the manifest has the
types of the table that was packed, times are ISO 8601 and booleans true or false. An absent feature
leaves its cell empty. The column label is the class; label_id is its number, unless it follows from
the order of the names. Format, height and width of the image have no column. Other images of an
example are in folders of their own, named in columns that end in file_name. Bytes that are neither
text nor an image are base64, in a column that ends in /base64. A float has the fewest digits that
read back as the same number, and a dot or an exponent. Needs pyarrow.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordsmith.arrow import ArrowDecoder
from recordsmith.arrow.columns import is_list, plain
from recordsmith.arrow.library import import_pyarrow
from recordsmith.arrow.schema import columns_of
from recordsmith.buffers import offsets_from_lengths
from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.example import Features, FeatureSchema
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, IMAGE, MASK
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.exporter import TableFiles
from recordsmith.exporting.image_columns import (
    check_names,
    convert_images,
    description_keys,
    image_keys,
)
from recordsmith.exporting.images import read_image
from recordsmith.exporting.safe_names import safe_part

FILE_NAME = "file_name"
_NEEDS_QUOTES = '[",\r\n]'
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'
_EXPONENT_FROM = 1e10  # in the text that pyarrow makes of a float


class CsvTables(TableFiles, format="csv"):
    """Writes tables and image files."""

    suffix = ".csv"
    has_types = True
    decoder: ArrowDecoder

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self.decoder = ArrowDecoder(dataset.schema, types=dataset.view.arrow_types())
        self._out = out
        self._folders = _image_folders(image_keys(dataset.schema.features))
        self._features = {key: found[-1] for key, found in columns_of(dataset.schema).items()}
        hidden = description_keys(self._folders)
        names = dataset.class_names or ()
        if CLASS_TEXT in self._features and list(names) == sorted(name or "" for name in names):
            hidden |= {CLASS_LABEL}  # follows from the order of the names
        headings = {
            key: self._heading(key, feature)
            for key, feature in self._features.items()
            if key not in hidden
        }
        check_names(headings.values())
        self._columns = dict(
            sorted(headings.items(), key=lambda item: (item[1] != FILE_NAME, item[1]))
        )

    def file_name(self, split: str) -> str:
        if not self._folders:
            return super().file_name(split)
        return f"{split}/metadata.csv" if len(self._out.splits) > 1 else "metadata.csv"

    def file_names(self, split: str, count: int) -> Sequence[str]:
        if self._folders:
            raise OptionError(
                "with images, csv has one table for all records, so tasks cannot write it",
                option="engine",
                remedy="Choose webdataset or huggingface, or export without an engine.",
            )
        return super().file_names(split, count)

    def open(self, name: str, split: str) -> None:
        self._name, self._place = name, name.rpartition("/")[0]
        self._file = self._out.open(name)
        headings = [cells(import_pyarrow().array([heading])) for heading in self._columns.values()]
        self._file.write(lines(headings, 1))

    def add(self, row_count: int, position: Callable[[int], int]) -> int:
        batch = self.decoder.finish()
        names: dict[str, list[str | None]] = {}
        if self._folders:
            batch, names = convert_images(
                batch, list(self._folders), self._out, position, self._write_image
            )
        columns = [
            cells(import_pyarrow().array(names[key], "string"))
            if key in names
            else cells(batch.column(key), is_single=self._features[key].max_length <= 1)
            for key in self._columns
        ]
        if len(batch):
            self._file.write(lines(columns, len(batch)))
        return len(batch)

    def close(self) -> None:
        self._out.close(self._name)

    def _heading(self, key: str, feature: FeatureSchema) -> str:
        if key in self._folders:
            return "_".join(part for part in (self._folders[key], FILE_NAME) if part)
        if key == CLASS_TEXT:
            return "label"
        if key == CLASS_LABEL:
            return "label_id"
        is_text = feature.kind != "bytes" or feature.content == "text"
        return key if is_text else f"{key}/base64"

    def _write_image(self, example: Features, key: str) -> str:
        """Write an image. Returns its path relative to the table."""
        out = self._out
        image = read_image(example if key == IMAGE else {IMAGE: example[key]}, out.warn)
        inner = self._folders[key]
        folder = "/".join(part for part in (self._place, inner) if part)
        name, suffix = out.name_image(example, image, folder)
        out.write(f"{folder}/{name}{suffix}".lstrip("/"), image.data)
        return f"{inner}/{name}{suffix}".lstrip("/")


def _image_folders(images: list[str]) -> dict[str, str]:
    """The folders of images by feature; the first has none."""
    return {
        key: "" if not number else "mask" if key == MASK else safe_part(key.replace("/", "-"))
        for number, key in enumerate(images)
    }


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
