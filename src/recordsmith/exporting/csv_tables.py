"""CSV: a table for each split, a row for each example, pictures as files.

    <split>.csv, and <split>/<name> for pictures, which the column file_name tells

A feature with at most one value fills a cell; any other is a JSON list. An absent feature leaves
its cell empty. Further pictures of an example (masks) lie in `<split>-<feature>/`, and their column
is `<feature>/file_name`. Bytes that are neither text nor a picture are written in base64, in a
column called `<feature>/base64`.
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
from recordsmith.exporting.numbers import shortest_float
from recordsmith.exporting.outbox import Outbox
from recordsmith.exporting.pictures import PICTURE, read_picture
from recordsmith.exporting.safe_names import safe_part
from recordsmith.exporting.values import as_text, bytes_of

FILE_NAME = "file_name"


class CsvTables:
    """Writes a table for each split, and the pictures beside it."""

    def begin(self, dataset: Dataset, out: Outbox) -> None:
        self._out = out
        self._files: dict[str, tuple[str, BinaryIO]] = {}
        features = dataset.schema.features
        self._pictures = [
            key
            for key, feature in features.items()
            if feature.content == "image" and feature.max_length <= 1
        ]
        if PICTURE in features and PICTURE not in self._pictures and _is_raw(features[PICTURE]):
            self._pictures.append(PICTURE)
        self._pictures.sort(key=lambda key: key != PICTURE)
        self._columns = {self._heading(key, feature): key for key, feature in features.items()}
        if len(self._columns) < len(features):
            raise OptionError("the features' names collide as columns of a table")
        self._cells = {key: _cell_writer(feature) for key, feature in features.items()}
        ordered = sorted(self._columns, key=lambda heading: (heading != FILE_NAME, heading))
        self._columns = {heading: self._columns[heading] for heading in ordered}

    def add(self, example: Features, split: str, position: int) -> None:
        row = []
        pictures: list[tuple[str, bytes]] = []
        for key in self._columns.values():
            value = example.get(key)
            if value is None:
                row.append("")
            elif key in self._pictures:
                row.append(self._name_picture(example, key, split, pictures))
            else:
                row.append(self._cells[key](value))
        for name, data in pictures:
            self._out.write(name, data)
        self._write(split, row)

    def finish(self) -> None:
        for name, _ in self._files.values():
            self._out.close(name)

    def _heading(self, key: str, feature: FeatureSchema) -> str:
        key = key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        if self._pictures and key == self._pictures[0]:
            return FILE_NAME
        if key in self._pictures:
            return f"{key}/{FILE_NAME}"
        if feature.kind in ("bytes", "mixed") and feature.content in ("raw", "image"):
            return f"{key}/base64"
        return key

    def _name_picture(
        self, example: Features, key: str, split: str, pictures: list[tuple[str, bytes]]
    ) -> str:
        data = bytes_of(example, key)
        if data is None:
            return ""
        out = self._out
        picture = read_picture(example if key == PICTURE else {PICTURE: [data]}, out.tell)
        folder = out.split_name(split)
        if key != self._pictures[0]:
            folder = f"{folder}-{safe_part(key.replace('/', '-'))}"
        name, suffix = out.name_picture(example, picture, folder)
        pictures.append((f"{folder}/{name}{suffix}", picture.data))
        return pictures[-1][0]

    def _write(self, split: str, row: list[str]) -> None:
        if split not in self._files:
            name = f"{self._out.split_name(split)}.csv"
            self._files[split] = name, self._out.open(name)
            self._write(split, list(self._columns))
        _, file = self._files[split]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(row)
        file.write(text.getvalue().encode())


def _is_raw(feature: FeatureSchema) -> bool:
    return feature.kind == "bytes" and feature.max_length <= 1


def _cell_writer(feature: FeatureSchema) -> Callable[[FeatureValue], str]:
    in_base64 = feature.content in ("raw", "image")
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
    """As JSON and CSV readers take it; a float has a dot, so that it is read as one."""
    if isinstance(number, float) and not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return repr(number)
