"""Parquet for Hugging Face `datasets`: a table for each split, with images and class names.

    <split>.parquet

`load_dataset(folder)` finds the splits and decodes the images. The columns `image` and `mask` have
the type Image; classes with names are ClassLabels, and that of the image is the column `label`.
Raw pixels become PNG. Name, format and size of the image have no column. Needs pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import Features
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, IMAGE, MASK
from recordsmith.exporting.arrow_tables import ArrowTables
from recordsmith.exporting.export_writer import ExportWriter, original_name
from recordsmith.exporting.image_columns import (
    check_names,
    convert_images,
    description_keys,
    image_keys,
)
from recordsmith.exporting.images import read_image

_NAMES = {IMAGE: "image", MASK: "mask", CLASS_LABEL: "label"}


class HuggingFaceTables(ArrowTables):
    """Writes Parquet with the types of `datasets` in its metadata."""

    def __init__(self) -> None:
        super().__init__("parquet")

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        import pyarrow as pa

        self._images = image_keys(dataset.schema.features)
        names = _unique_names(dataset.class_names)
        image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        hidden = description_keys(self._images)
        if CLASS_LABEL in self.decoder.schema.names and names:
            hidden |= {CLASS_TEXT}
        self._fields: dict[str, Any] = {}
        self._class_counts: dict[str, int] = {}
        types = {}
        others = (key for key in self.decoder.schema.names if key not in self._images)
        for key in (*self._images, *others):
            if key in hidden:
                continue
            name, field = _NAMES.get(key, key), self.decoder.schema.field(key)
            self._fields[key] = field.with_name(name)
            if key in self._images:
                self._fields[key] = pa.field(name, image)
                types[name] = {"_type": "Image"}
            elif names and b"tfrecord.class_names" in field.metadata:
                self._class_counts[key] = len(names)
                types[name] = _class_type(field.type, names)
        check_names(field.name for field in self._fields.values())
        metadata = {"huggingface": json.dumps({"info": {"features": types}})}
        self._schema = pa.schema(self._fields.values(), metadata)

    def _batch(self, position: Callable[[int], int]) -> Any:
        import pyarrow as pa

        batch = super()._batch(position)
        for key, count in self._class_counts.items():
            _check_classes(key, batch.column(key), count)
        batch, images = convert_images(batch, self._images, self._out, position, self._image)
        columns = [
            pa.array(images[key], field.type) if key in images else batch.column(key)
            for key, field in self._fields.items()
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _image(self, example: Features, key: str) -> dict[str, Any]:
        image = read_image(example if key == IMAGE else {IMAGE: example[key]}, self._out.warn)
        return {"bytes": image.data, "path": original_name(example)}


def _unique_names(class_names: Sequence[str | None] | None) -> list[str] | None:
    """Return a name for each class, as ClassLabel needs it; None if that is not possible."""
    names = [str(n) if name is None else name for n, name in enumerate(class_names or ())]
    return names if names and len(set(names)) == len(names) else None


def _class_type(arrow_type: Any, names: list[str]) -> dict[str, Any]:
    """Return the type of a column of classes as `datasets` writes it."""
    from pyarrow import types

    if types.is_large_list(arrow_type):
        return {"feature": _class_type(arrow_type.value_type, names), "_type": "LargeList"}
    if types.is_fixed_size_list(arrow_type):
        inner = _class_type(arrow_type.value_type, names)
        return {"feature": inner, "length": arrow_type.list_size, "_type": "List"}
    return {"names": names, "_type": "ClassLabel"}


def _check_classes(key: str, column: Any, class_count: int) -> None:
    """Raise CorruptDataError if a class has no name, as `datasets` would refuse the table."""
    import pyarrow.compute as pc

    rows = np.arange(len(column))
    while hasattr(column, "flatten"):
        rows = rows[pc.list_parent_indices(column)]
        column = column.flatten()
    wrong = np.flatnonzero(column.fill_null(0).to_numpy() >= class_count)
    if len(wrong):
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {key!r} is a class without a name",
            found=str(column[wrong[0]]),
            expected=f"a class below {class_count}, the number of class names",
            feature=key,
            record=int(rows[wrong[0]]),
        )
