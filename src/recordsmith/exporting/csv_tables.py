"""CSV: a row for each example and images as files, in the layout of Hugging Face's ImageFolder.

    metadata.csv, <name>                     with images, named in the column file_name;
    <split>/metadata.csv, <split>/<name>     if there are several splits
    <split>.csv                              without images

A feature with at most one value fills a cell; others are JSON lists. An absent feature leaves its
cell empty. The column label is the class; label_id is its number, unless it follows from the order
of the names. Format, height and width of the image have no column. Other images of an example are
in folders of their own, named in columns that end in file_name. Bytes that are neither text nor an
image are base64, in a column that ends in /base64.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.example import Features, FeatureSchema, FeatureValue
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, HEIGHT, IMAGE, MASK
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.images import IMAGE_KEYS, MASK_KEYS, read_image
from recordsmith.exporting.numbers import shortest_float
from recordsmith.exporting.safe_names import safe_part
from recordsmith.exporting.values import as_text, get_bytes

FILE_NAME = "file_name"


class CsvTables:
    """Writes tables and image files."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        self._out = out
        self._files: dict[str, tuple[str, BinaryIO]] = {}
        dataset.schema.check_complete("a table has a column for each feature")
        features = dict(dataset.schema.features)
        self._folders = _image_folders(features)
        if IMAGE in self._folders:
            for key in IMAGE_KEYS - {IMAGE}:
                features.pop(key, None)
        if MASK in self._folders:
            for key in MASK_KEYS - {MASK}:
                features.pop(key, None)
        names = dataset.class_names or ()
        if CLASS_TEXT in features and list(names) == sorted(name or "" for name in names):
            features.pop(CLASS_LABEL, None)  # follows from the order of the names
        headings = {key: self._heading(key, feature) for key, feature in features.items()}
        if len(set(headings.values())) < len(headings):
            raise OptionError(
                "two features would become columns with the same name",
                remedy="Rename one of them, or choose another format.",
            )
        self._cells = {key: _cell_writer(feature) for key, feature in features.items()}
        self._columns = dict(
            sorted(headings.items(), key=lambda item: (item[1] != FILE_NAME, item[1]))
        )

    def add(self, example: Features, split: str, position: int) -> None:
        row = []
        images: list[tuple[str, bytes]] = []
        for key in self._columns:
            value = example.get(key)
            if value is None:
                row.append("")
            elif key in self._folders:
                row.append(self._name_image(example, key, split, images))
            else:
                row.append(self._cells[key](value))
        for name, data in images:
            self._out.write(name, data)
        self._write(split, row)

    def finish(self) -> None:
        for name, _ in self._files.values():
            self._out.close(name)

    def _heading(self, key: str, feature: FeatureSchema) -> str:
        if self._folders.get(key) == "":
            return FILE_NAME
        if key in self._folders:
            return f"{self._folders[key]}_{FILE_NAME}"
        if key == CLASS_TEXT:
            return "label"
        if key == CLASS_LABEL:
            return "label_id"
        key = key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        is_text = feature.kind != "bytes" or feature.content == "text"
        return key if is_text else f"{key}/base64"

    def _name_image(
        self, example: Features, key: str, split: str, images: list[tuple[str, bytes]]
    ) -> str:
        """Reserve a name for an image. Returns its path relative to the table."""
        data = get_bytes(example, key)
        if data is None:
            return ""
        out = self._out
        image = read_image(example if key == IMAGE else {IMAGE: [data]}, out.warn)
        inner = self._folders[key]
        folder = "/".join(part for part in (self._place(split), inner) if part)
        name, suffix = out.name_image(example, image, folder)
        images.append((f"{folder}/{name}{suffix}".lstrip("/"), image.data))
        return f"{inner}/{name}{suffix}".lstrip("/")

    def _place(self, split: str) -> str:
        """The folder with the table of a split."""
        return self._out.split_name(split) if len(self._out.splits) > 1 else ""

    def _write(self, split: str, row: list[str]) -> None:
        if split not in self._files:
            if self._folders:
                name = f"{self._place(split)}/metadata.csv".lstrip("/")
            else:
                name = f"{self._out.split_name(split)}.csv"
            self._files[split] = name, self._out.open(name)
            self._write(split, list(self._columns.values()))
        _, file = self._files[split]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(row)
        file.write(text.getvalue().encode("utf-8", "surrogateescape"))


def _image_folders(features: dict[str, FeatureSchema]) -> dict[str, str]:
    """The features that become files, with their folders; the first has none."""
    found = [
        key
        for key, feature in features.items()
        if feature.kind == "bytes"
        and feature.max_length == 1
        and (feature.content == "image" or (key == IMAGE and HEIGHT in features))
    ]
    found.sort(key=lambda key: key != IMAGE)
    names = {MASK: "mask"}
    return {
        key: names.get(key, safe_part(key.replace("/", "-"))) if number else ""
        for number, key in enumerate(found)
    }


def _cell_writer(feature: FeatureSchema) -> Callable[[FeatureValue], str]:
    in_base64 = feature.kind == "bytes" and feature.content != "text"
    is_single = feature.max_length <= 1

    def write(value: FeatureValue) -> str:
        values = [_item(item, in_base64) for item in value]
        if is_single and len(values) == 1:
            item = values[0]
            return item if isinstance(item, str) else _number(item)
        return f"[{', '.join(json.dumps(v) if isinstance(v, str) else _number(v) for v in values)}]"

    return write


def _item(item: Any, in_base64: bool) -> str | int | float:
    if isinstance(item, bytes):
        return base64.b64encode(item).decode() if in_base64 else as_text(item)
    return int(item) if isinstance(item, np.integer) else shortest_float(item)


def _number(number: float) -> str:
    """A number as JSON and CSV readers parse it; floats always have a dot."""
    if isinstance(number, float) and not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return repr(number)
