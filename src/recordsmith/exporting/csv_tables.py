"""CSV: a row for each example and images as files, in the layout of Hugging Face's ImageFolder.

    metadata.csv, <name>                     with images, named in the column file_name;
    <split>/metadata.csv, <split>/<name>     if there are several splits
    <split>.csv                              without images

A feature with at most one value fills a cell; others are JSON lists. Where the manifest has the
types of the table that was packed, times are ISO 8601 and booleans true or false. An absent feature
leaves its cell empty. The column label is the class; label_id is its number, unless it follows from
the order of the names. Format, height and width of the image have no column. Other images of an
example are in folders of their own, named in columns that end in file_name. Bytes that are neither
text nor an image are base64, in a column that ends in /base64. Needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO

from recordsmith.arrow import ArrowDecoder
from recordsmith.arrow.library import import_pyarrow
from recordsmith.arrow.schema import columns_of
from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.example import Features, FeatureSchema
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, IMAGE, MASK
from recordsmith.exporting.csv_cells import cells, lines
from recordsmith.exporting.export_writer import ExportWriter, TableExporter
from recordsmith.exporting.image_columns import (
    check_names,
    convert_images,
    description_keys,
    image_keys,
)
from recordsmith.exporting.images import read_image
from recordsmith.exporting.record_shards import numbered_names
from recordsmith.exporting.safe_names import safe_part

FILE_NAME = "file_name"


class CsvTables(TableExporter):
    """Writes tables and image files."""

    decoder: ArrowDecoder

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self.decoder = ArrowDecoder(dataset.schema, types=dataset.view.arrow_types())
        self._out = out
        self._files: dict[str, tuple[str, BinaryIO]] = {}
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

    def add(self, split: str, row_count: int, position: Callable[[int], int]) -> int:
        batch = self.decoder.finish()
        names: dict[str, list[str | None]] = {}
        if self._folders:
            write = partial(self._write_image, split)
            batch, names = convert_images(batch, list(self._folders), self._out, position, write)
        columns = [
            cells(import_pyarrow().array(names[key], "string"))
            if key in names
            else cells(batch.column(key), is_single=self._features[key].max_length <= 1)
            for key in self._columns
        ]
        if len(batch):
            self._file(split).write(lines(columns, len(batch)))
        return len(batch)

    def part_names(self, split: str, count: int) -> Sequence[str]:
        if self._folders:
            raise OptionError(
                "with images, csv has one table for all records, so tasks cannot write it",
                option="engine",
                remedy="Choose webdataset or huggingface, or export without an engine.",
            )
        return numbered_names(split, count, ".csv")

    def finish(self) -> None:
        for name, _ in self._files.values():
            self._out.close(name)

    def _heading(self, key: str, feature: FeatureSchema) -> str:
        if key in self._folders:
            return "_".join(part for part in (self._folders[key], FILE_NAME) if part)
        if key == CLASS_TEXT:
            return "label"
        if key == CLASS_LABEL:
            return "label_id"
        is_text = feature.kind != "bytes" or feature.content == "text"
        return key if is_text else f"{key}/base64"

    def _write_image(self, split: str, example: Features, key: str) -> str:
        """Write an image. Returns its path relative to the table."""
        out = self._out
        image = read_image(example if key == IMAGE else {IMAGE: example[key]}, out.warn)
        inner = self._folders[key]
        folder = "/".join(part for part in (self._place(split), inner) if part)
        name, suffix = out.name_image(example, image, folder)
        out.write(f"{folder}/{name}{suffix}".lstrip("/"), image.data)
        return f"{inner}/{name}{suffix}".lstrip("/")

    def _place(self, split: str) -> str:
        """The folder with the table of a split."""
        return self._out.split_name(split) if len(self._out.splits) > 1 else ""

    def _file(self, split: str) -> BinaryIO:
        if split not in self._files:
            if self._folders:
                name = f"{self._place(split)}/metadata.csv".lstrip("/")
            else:
                name = self._out.file_of(split, ".csv")
            self._files[split] = name, self._out.open(name)
            headings = [
                cells(import_pyarrow().array([heading])) for heading in self._columns.values()
            ]
            self._files[split][1].write(lines(headings, 1))
        return self._files[split][1]


def _image_folders(images: list[str]) -> dict[str, str]:
    """The folders of images by feature; the first has none."""
    return {
        key: "" if not number else "mask" if key == MASK else safe_part(key.replace("/", "-"))
        for number, key in enumerate(images)
    }
