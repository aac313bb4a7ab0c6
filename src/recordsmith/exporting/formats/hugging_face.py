"""Parquet for Hugging Face `datasets`: a table for each split, with images and class names.

    <split>.parquet     or <split>-00000-of-00001.parquet, … of tasks
    README.md           the names of the splits, which `datasets` otherwise guesses from file names

`load_dataset(folder)` finds the splits and decodes the images. The columns `image` and `mask` have
the type Image; classes with names are ClassLabels, and that of the image is the column `label`.
Raw pixels become PNG. Name, format and size of the image have no column. Needs pyarrow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recordsmith.dataset import Dataset, import_pyarrow
from recordsmith.exporting.dataset_card import citation_lines, stated_terms, to_yaml
from recordsmith.exporting.export_writer import ChangedName, ExportWriter, original_name
from recordsmith.exporting.exporter import TableFiles, WrittenFile
from recordsmith.exporting.formats.parquet import ParquetTables
from recordsmith.exporting.images import IMAGE_KEYS, MASK_KEYS, read_image
from recordsmith.exporting.standard_names import find_standard_names
from recordsmith.format.example import Features, FeatureSchema, FeatureValue
from recordsmith.format.example.keys import CLASS_LABEL, CLASS_TEXT, IMAGE, MASK, SOURCE_ID
from recordsmith.format.example.usual_names import has_image_size
from recordsmith.support.errors import CorruptDataError, Defect, OptionError, SourceError

_CARD = "README.md"
_NO_SPLIT_NAME = re.compile(r"[^\w.]|^\.|\.$|\.(?=\.)")
_NAMES = {IMAGE: "image", MASK: "mask", CLASS_LABEL: "label"}
_DESCRIPTION = IMAGE_KEYS | {SOURCE_ID}


class HuggingFaceTables(ParquetTables):
    """Writes Parquet with the types of `datasets` in its metadata."""

    options = TableFiles.options

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        self._dataset = dataset
        import pyarrow as pa

        features = dataset.schema.features
        self._standard = find_standard_names(features, is_only=False)
        self._images = _image_keys(features, self._standard.image_key)
        names = _unique_names(dataset.class_names)
        image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        hidden = set(IMAGE_KEYS - {IMAGE}) if IMAGE in self._images else set()
        if MASK in self._images:
            hidden |= MASK_KEYS - {MASK}
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
                types[name] = _list_type(field.type, {"names": names, "_type": "ClassLabel"})
        columns = {field.name for field in self._fields.values()}
        if len(columns) < len(self._fields):
            raise OptionError(
                "two features would become columns with the same name",
                remedy="Rename one of them, or choose another format.",
            )
        metadata = {"huggingface": json.dumps({"info": {"features": types}})}
        self._schema = pa.schema(self._fields.values(), metadata)

    def describe(self, files: Sequence[WrittenFile], results: Iterable[Any]) -> None:
        names: dict[str, list[str]] = {}
        for file in files:
            names.setdefault(file.split, []).append(file.name)
        if names:
            self._out.write(_CARD, self._card(names).encode())

    def _card(self, files: Mapping[str, Sequence[str]]) -> str:
        """The metadata of the dataset: which files are which split."""
        names: dict[str, str] = {}
        for split, of_split in files.items():
            name = _NO_SPLIT_NAME.sub("_", split)
            while name in names or name == "all":  # which means all splits
                name += "_"
            if name != split:
                self._out.tally.changed_names.append(ChangedName(None, split, name))
            names[name] = of_split[0]
            if len(of_split) > 1:
                last = f"-of-{len(of_split):05d}.parquet"
                head = self._out.split_name(split)
                names[name] = f"{head}-{'?' * (len(of_split[0]) - len(head) - len(last) - 1)}{last}"
        terms = stated_terms(self._dataset)
        lines = ["---"]
        if "license" in terms:
            lines.append(f"license: {to_yaml(terms['license'])}")
        lines += ["configs:", "- config_name: default", "  data_files:"]
        for name, file in names.items():
            lines += [f"  - split: {json.dumps(name)}", f"    path: {json.dumps(file)}"]
        return "\n".join([*lines, "---", "", *citation_lines(terms.get("citation"))])

    def _batch(self, position: Callable[[int], int]) -> Any:
        import pyarrow as pa

        batch = super()._batch(position)
        for key, count in self._class_counts.items():
            _check_classes(key, batch.column(key), count)
        batch, images = self._convert_images(batch, position)
        columns = [
            pa.array(images[key], field.type) if key in images else batch.column(key)
            for key, field in self._fields.items()
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _convert_images(
        self, batch: Any, position: Callable[[int], int]
    ) -> tuple[Any, dict[str, list[Any]]]:
        """Return the rows that are not skipped, and their images by key; None for missing ones."""
        used = {*_DESCRIPTION, *self._images, *self._standard.standard}
        keys = [key for key in batch.schema.names if key in used]
        converted: dict[str, list[Any]] = {key: [] for key in self._images}
        kept = []
        for row, values in enumerate(batch.select(keys).to_pylist()):
            example = {key: _feature(value) for key, value in values.items() if value is not None}
            self._out.position = position(row)
            try:
                results = [
                    self._image(example, key) if len(example.get(key, ())) else None
                    for key in self._images
                ]
            except SourceError as error:
                self._out.skip(error)
                continue
            kept.append(row)
            for key, result in zip(self._images, results, strict=True):
                converted[key].append(result)
        if len(kept) < len(batch):
            batch = batch.take(import_pyarrow().array(kept, "int64"))
        return batch, converted

    def _image(self, example: Features, key: str) -> dict[str, Any]:
        is_main = key == self._standard.image_key
        standard = self._standard.apply(example) if is_main else {IMAGE: example[key]}
        image = read_image(standard, self._out.warn)
        return {"bytes": image.data, "path": original_name(example)}


def _unique_names(class_names: Sequence[str | None] | None) -> list[str] | None:
    """Return a name for each class, as ClassLabel needs it; None if that is not possible."""
    names = [str(n) if name is None else name for n, name in enumerate(class_names or ())]
    return names if names and len(set(names)) == len(names) else None


def _image_keys(features: Mapping[str, FeatureSchema], main: str) -> list[str]:
    """Return the features with one image in each record; the main image is first."""
    keys = [
        key
        for key, feature in features.items()
        if feature.kind == "bytes"
        and feature.max_length == 1
        and (feature.content == "image" or (key == main and has_image_size(features)))
    ]
    return sorted(keys, key=lambda key: key != main)


def _feature(value: Any) -> FeatureValue:
    """Return the value of a cell as it is in a decoded example."""
    values = value if isinstance(value, list) else [value]
    if not values or isinstance(values[0], (bytes, str)):
        return [item.encode() if isinstance(item, str) else item for item in values]
    if isinstance(values[0], int):
        return np.array(values, np.int64)
    return np.array(values, np.float32)


def _list_type(arrow_type: Any, value: dict[str, Any]) -> dict[str, Any]:
    """Return the type of a column of such values, or lists of them, as `datasets` writes it."""
    from pyarrow import types

    if types.is_large_list(arrow_type):
        return {"feature": _list_type(arrow_type.value_type, value), "_type": "LargeList"}
    if types.is_fixed_size_list(arrow_type):
        inner = _list_type(arrow_type.value_type, value)
        return {"feature": inner, "length": arrow_type.list_size, "_type": "List"}
    return value


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
