"""The Arrow schema of a dataset.

| feature | field |
| --- | --- |
| int64, float | int64, float |
| bytes: text (UTF-8), other | large_string, large_binary |
| one value in every record that has it | the type itself |
| n values in every record that has it | fixed_size_list[n] of it |
| any number of values, or none in all records | large_list of it |
| a feature list of SequenceExamples, a feature of the examples of ELWC | large_list of large_list |
| no record has a value | null |

Fields are nullable: a record that lacks the feature has null. The metadata of a field has
`tfrecord.kind`, for bytes `tfrecord.content` (image, text or raw), and for class indices
`tfrecord.class_names`, a JSON object of names by index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from recordsmith.dataset.arrow.library import import_pyarrow
from recordsmith.format.example import FeatureSchema, Schema
from recordsmith.format.example.keys import is_class_key
from recordsmith.support.errors import NotAnExampleError, OptionError, option
from recordsmith.support.explaining import unknown_word

_SECTIONS = {
    "Example": ("features",),
    "none": ("features",),
    "SequenceExample": ("context", "feature_lists"),
    "ELWC": ("context", "examples"),
}
_FIXED_LENGTH_AT_MOST = 2**31 - 1  # of a fixed_size_list
NESTED_SECTIONS = ("feature_lists", "examples")
"""Sections whose features have a list of lists in each record."""


def arrow_schema(
    schema: Schema,
    columns: Iterable[str] | None = None,
    class_names: Sequence[str | None] | None = None,
) -> Any:
    """Return the pyarrow.Schema of records with this schema.

    Args:
        columns: the features to include, in this order; None for all.
        class_names: the names of the classes by index.

    Raises:
        MissingExtraError: pyarrow is not installed.
        NotAnExampleError: the records are not Examples, SequenceExamples or ELWC.
        OptionError: no record has one of the columns; a feature has several kinds or a name that
            is not UTF-8.

    Example:
        >>> arrow_schema(Schema("Example", 1, {"features": {"a": FeatureSchema("int64", 1, 1, 1)}}))
        a: int64
          -- field metadata --
          tfrecord.kind: 'int64'
    """
    if schema.payload not in _SECTIONS:
        raise NotAnExampleError(schema.payload, "Examples, SequenceExamples or ELWC")
    found = columns_of(schema)
    if columns is None:
        schema.check_complete("select the columns that you need")
        columns = found
    names = None
    if class_names:
        known = {label: name for label, name in enumerate(class_names) if name is not None}
        names = json.dumps(known)
    fields = []
    for name in columns:
        if name not in found:
            raise unknown_word("columns", name, found, f"no record has a feature {name!r}")
        section, _, feature = found[name]
        fields.append(_field(name, section, feature, names))
    return import_pyarrow().schema(fields)


def columns_of(schema: Schema) -> dict[str, tuple[str, str, FeatureSchema]]:
    """Return (section, key, feature) by column name.

    The name is the key; where two sections have the same key, that of the second section is
    `section/key`.
    """
    columns: dict[str, tuple[str, str, FeatureSchema]] = {}
    for section in _SECTIONS.get(schema.payload, ()):
        for key, feature in schema.sections.get(section, {}).items():
            columns[f"{section}/{key}" if key in columns else key] = (section, key, feature)
    return columns


def _field(name: str, section: str, feature: FeatureSchema, class_names: str | None) -> Any:
    pa = import_pyarrow()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise OptionError(
            f"the feature name {name!r} is not UTF-8, as Arrow requires",
            option="columns",
            value=name,
        ) from None
    if feature.kind == "mixed":
        raise OptionError(
            f"feature {name!r} has different kinds in different records",
            option="columns",
            value=name,
            remedy=f"Leave it out of {option('columns')}.",
        )
    metadata: dict[str, str] = {"tfrecord.kind": feature.kind}
    if feature.content is not None:
        metadata["tfrecord.content"] = feature.content
    if class_names is not None and feature.kind == "int64" and is_class_key(name):
        metadata["tfrecord.class_names"] = class_names
    return pa.field(name, _type(section, feature), metadata=metadata)


def _type(section: str, feature: FeatureSchema) -> Any:
    pa = import_pyarrow()
    if feature.kind == "none":
        return pa.null()
    if feature.kind == "bytes":
        value = pa.large_string() if feature.content == "text" else pa.large_binary()
    else:
        value = pa.int64() if feature.kind == "int64" else pa.float32()
    if section in NESTED_SECTIONS:
        return pa.large_list(pa.large_list(value))
    shape = feature.shape_if_present
    if shape is None or (shape and not 0 < shape[0] <= _FIXED_LENGTH_AT_MOST):
        return pa.large_list(value)  # also if all are empty: few libraries read lists of size 0
    return pa.list_(value, shape[0]) if shape else value
