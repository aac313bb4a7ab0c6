"""Flattens the nested columns of Hugging Face datasets, so that each can be a feature.

| column | features |
| --- | --- |
| a dict, a translation | `column/key` for each key |
| a list of dicts, a dict of lists | `column/key` for each key: a list |
| lists of lists of one length, `Array2D` to `Array5D` | one list, row by row |
| a list of images | a list of encoded bytes |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from recordsmith.dataset import import_pyarrow
from recordsmith.sources.problems import join_names
from recordsmith.stores import as_location
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import SourceError
from recordsmith.support.problems import Problems

_REFUSED = ("Audio", "Video", "Pdf", "Nifti", "Mesh", "BioSequence", "BioStructure")
_UNKNOWN = -1
_NESTED_LISTS = ("List", "LargeList", "Sequence")


class FlatColumn(NamedTuple):
    """A column that can be a feature.

    feature: its type as `datasets` writes it to JSON, such as {"_type": "ClassLabel", ...}; that of
        the values for a list.
    is_list: whether it has lists of values.
    """

    name: str
    array: Any
    feature: Mapping[str, Any]
    is_list: bool


class NestedColumns:
    """Flattens the batches of one dataset.

    shapes: of the inner lists of columns that were flattened, by column; -1 is unknown.
    """

    def __init__(self, features: Mapping[str, Any], *, reads_files: bool = False) -> None:
        """
        Args:
            features: by column, as `datasets` writes them to JSON.
            reads_files: whether to read images that have a path and no bytes: only for a dataset
                of the user, as the paths in a file may name anything.
        """
        self._pa = import_pyarrow()
        self._reads_files = reads_files
        self._features = features
        self.shapes: dict[str, tuple[int, ...]] = {}

    def check(self, where: str) -> None:
        """Refuse columns whose types have no feature."""
        refused = {
            name: kind
            for name, feature in self._features.items()
            if (kind := _find_refused(feature)) is not None
        }
        if refused:
            problems = Problems(f"column {name!r} is {kind}" for name, kind in refused.items())
            raise SourceError(
                f"{'; '.join(problems)}: no feature can hold that",
                problems,
                sample=where,
                remedy=f"Remove them first: dataset.remove_columns({[*refused]!r}).",
            )

    def flat_batch(self, batch: Any) -> Any:
        """A pyarrow.RecordBatch with flat columns, and their types in its metadata."""
        pa = self._pa
        columns = [
            column
            for name in batch.schema.names
            for column in self._flat(name, batch.column(name), self._features.get(name))
        ]
        described = {
            column.name: {"_type": "List", "feature": column.feature}
            if column.is_list
            else column.feature
            for column in columns
            if column.feature
        }
        fields = [pa.field(column.name, column.array.type) for column in columns]
        metadata = {"huggingface": json.dumps({"info": {"features": described}})}
        return pa.RecordBatch.from_arrays(
            [column.array for column in columns], schema=pa.schema(fields, metadata)
        )

    def notices(self) -> list[str]:
        shapes = [
            f"{name} (…, {', '.join('?' if n < 0 else str(n) for n in shape)})"
            for name, shape in self.shapes.items()
        ]
        return [f"arrays stored flat, row by row: {join_names(shapes)}"] if shapes else []

    def _flat(self, name: str, array: Any, feature: Any) -> Iterator[FlatColumn]:
        pa = self._pa
        array = self._plain(array)
        if _is_image(pa, array.type, feature):
            if self._reads_files:
                paths = array.field(array.type.get_field_index("path")).cast(pa.string())
                data = self._image_bytes(array, name)
                array = pa.StructArray.from_arrays([data, paths], ["bytes", "path"])
            yield FlatColumn(name, array, {"_type": "Image"}, False)
        elif pa.types.is_struct(array.type):
            for number, child in enumerate(array.flatten()):
                key = array.type.field(number).name
                yield from self._flat(f"{name}/{key}", child, _child_feature(feature, key))
        elif pa.types.is_nested(array.type) and hasattr(array, "value_lengths"):
            yield from self._flat_list(name, array, feature)
        else:
            yield FlatColumn(name, array, _described(feature), False)

    def _flat_list(self, name: str, array: Any, feature: Any) -> Iterator[FlatColumn]:
        pa = self._pa
        feature = _value_feature(feature)
        values, lengths = self._parts(array)
        shape: list[int] = []
        while hasattr(values, "value_lengths"):
            if values.null_count:
                raise SourceError(f"column {name!r}: a list contains null")
            feature = _value_feature(feature)
            values, inner = self._parts(values)
            length = self._inner_length(name, len(shape), inner)
            shape.append(length)
            lengths = lengths * max(0, length)
        nulls = array.is_null() if array.null_count else None

        def lists(values: Any) -> Any:
            offsets = pa.array(offsets_from_lengths(lengths))
            return pa.LargeListArray.from_arrays(offsets, values, mask=nulls)

        if shape:
            self.shapes[name] = tuple(shape)
        if _is_image(pa, values.type, feature):
            values = self._image_bytes(values, name)
        if pa.types.is_struct(values.type):
            for number, child in enumerate(values.flatten()):
                key = values.type.field(number).name
                listed = {"feature": _child_feature(feature, key), "_type": "List"}
                yield from self._flat(f"{name}/{key}", lists(child), listed)
            return
        is_plain = pa.types.is_fixed_size_list(array.type) and not shape
        yield FlatColumn(name, array if is_plain else lists(values), _described(feature), True)

    def _parts(self, array: Any) -> tuple[Any, Int64Array]:
        """The values of lists, and how many each has; 0 for null."""
        lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        return self._plain(array.flatten()), lengths.astype(np.int64)

    def _inner_length(self, name: str, depth: int, lengths: Int64Array) -> int:
        """The length of all inner lists of a column at one depth."""
        distinct = {*np.unique(lengths).tolist()} | {*self.shapes.get(name, ())[depth : depth + 1]}
        distinct.discard(_UNKNOWN)
        if len(distinct) > 1:
            raise SourceError(
                f"column {name!r} has inner lists of {' and '.join(map(str, sorted(distinct)))} "
                "values; expected one length, as a feature is a flat list",
                remedy="Flatten or pad them with dataset.map.",
            )
        return int(distinct.pop()) if distinct else _UNKNOWN

    def _image_bytes(self, images: Any, column: str) -> Any:
        from pyarrow import compute

        data = compute.struct_field(images, "bytes")
        if not data.null_count or not self._reads_files:
            return data.cast(self._pa.large_binary())
        paths = compute.struct_field(images, "path").to_pylist()
        return self._pa.array(
            [
                _read(path, column) if encoded is None and path else encoded
                for encoded, path in zip(data.to_pylist(), paths, strict=True)
            ],
            self._pa.large_binary(),
        )

    def _plain(self, array: Any) -> Any:
        return array.storage if isinstance(array, self._pa.ExtensionArray) else array


def flat_table(
    schema: Any, batches: Callable[[], Iterable[Any]], where: str
) -> tuple[Any, Callable[[], Iterable[Any]]]:
    """The schema and the batches of a file that `datasets` wrote, with flat columns.

    A file without a description of its features stays as it is.
    """
    features = described_features(schema)
    if not any(map(_is_nested, features.values())):
        return schema, batches
    pa = import_pyarrow()
    nested = NestedColumns(features)
    nested.check(where)
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
    return nested.flat_batch(empty).schema, lambda: map(nested.flat_batch, batches())


def described_features(schema: Any) -> Mapping[str, Any]:
    """The types of the columns from the metadata of a schema, as `datasets` writes them to JSON."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        if isinstance(features, dict):
            return features
    return {}


def _is_nested(feature: Any) -> bool:
    """Whether a column is more than values, images, or a list of values."""
    if _type_of(feature) in _NESTED_LISTS:
        return _type_of(_value_feature(feature)) not in ("Value", "ClassLabel")
    return _type_of(feature) not in ("Value", "ClassLabel", "Image")


def _read(path: str, column: str) -> bytes:
    if "::" in path or "://" in path:
        raise SourceError(
            f"column {column!r} has the address {path!r:.200} instead of an image",
            remedy="Download the images first: load the dataset without streaming, or read the "
            "bytes with dataset.map.",
        )
    return as_location(path).read()


def _is_image(pa: Any, arrow_type: Any, feature: Any) -> bool:
    """Whether a column is the struct of `bytes` and `path` of an image."""
    if not pa.types.is_struct(arrow_type) or not (feature is None or _type_of(feature) == "Image"):
        return False
    return {field.name for field in arrow_type} == {"bytes", "path"}


def _type_of(feature: Any) -> str:
    return str(feature.get("_type", "")) if isinstance(feature, Mapping) else ""


def _described(feature: Any) -> Mapping[str, Any]:
    return feature if isinstance(feature, Mapping) else {}


def _value_feature(feature: Any) -> Any:
    """The type of the values of a list; older versions of `datasets` write `[feature]`."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    return feature.get("feature") if _type_of(feature) in _NESTED_LISTS else None


def _child_feature(feature: Any, key: str) -> Any:
    """The type of a key of a dict, of which older versions make a dict of lists."""
    if _type_of(feature) in _NESTED_LISTS:
        inner = _value_feature(feature)
        return {"feature": _child_feature(inner, key), "_type": "List"}
    return feature.get(key) if isinstance(feature, Mapping) and "_type" not in feature else None


def _find_refused(feature: Any) -> str | None:
    """The type within a feature that cannot be stored."""
    if _type_of(feature) in _REFUSED:
        return _type_of(feature)
    if isinstance(feature, Mapping):
        feature = list(feature.values())
    if isinstance(feature, list):
        return next(filter(None, map(_find_refused, feature)), None)
    return None
