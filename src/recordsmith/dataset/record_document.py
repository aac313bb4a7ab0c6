"""The contents of a record as a JSON-able document."""

from __future__ import annotations

import json
import math
from typing import Any

from recordsmith.dataset.examples import begin_of, probe
from recordsmith.format.example import (
    Features,
    FeatureValue,
    SequenceExample,
    classify,
    decode_payload,
    decode_ranking_list,
)
from recordsmith.format.example.payload import as_text
from recordsmith.format.example.serialized_tensor import describe_tensor
from recordsmith.support.errors import DataError


def contents_of(record: bytes) -> dict[str, Any]:
    """Return the sections of a record: features, steps by name, or the features of Examples."""
    if classify(record) == "ELWC":
        context, examples = decode_ranking_list(record)
        return {"context": context, "examples": examples}
    example = decode_payload(record)
    if isinstance(example, SequenceExample):
        return {"context": example.context, "feature_lists": example.feature_lists}
    return {"features": example}


def to_document(record: bytes, max_values: int | None = None) -> dict[str, Any]:
    """Return the contents of a record for JSON.

    `max_values` is how many values of a feature, steps of a list, and Examples of a ranking list
    it has; those with more also have their number as `count`. Text is cut to a hundred times as
    many characters. None for all.
    """
    document: dict[str, Any] = {"size_bytes": len(record), "payload": classify(record)}
    try:
        sections = contents_of(record)
    except DataError as error:
        return document | {"error": str(error), "begins": begin_of(record)}
    return document | section_documents(sections, max_values)


def section_documents(
    sections: dict[str, Any], max_values: int | None = None, start: int = 0
) -> dict[str, Any]:
    """Return the sections of `contents_of` for JSON; steps and Examples of a list from `start`."""
    stop = None if max_values is None else start + max_values
    document: dict[str, Any] = {}
    for section, features in sections.items():
        if section == "feature_lists":
            document[section] = {
                key_text(name): [feature_document(step, max_values) for step in steps[start:stop]]
                for name, steps in sorted(features.items())
            }
        elif section == "examples":
            document[section] = [
                _feature_documents(example, max_values) for example in features[start:stop]
            ]
        else:
            document[section] = _feature_documents(features, max_values)
    return document


def _feature_documents(features: Features, max_values: int | None) -> dict[str, Any]:
    return {key_text(key): feature_document(features[key], max_values) for key in sorted(features)}


def feature_document(
    value: FeatureValue, max_values: int | None = None, start: int = 0
) -> dict[str, Any]:
    """Return the kind of a feature and its values from `start`; `max_values` as `to_document`."""
    count = len(value)
    stop = None if max_values is None else start + max_values
    document: dict[str, Any] = {"kind": kind_of(value)}
    if isinstance(value, list):
        most = None if max_values is None else 100 * max_values
        document["values"] = [json_value(item, most) for item in value[start:stop]]
    elif value.dtype == "float32":  # the shortest equal decimal
        document["values"] = [
            float(str(number)) if math.isfinite(number) else json_value(float(number))
            for number in value[start:stop]
        ]
    else:
        document["values"] = value[start:stop].tolist()
    if len(document["values"]) < count:
        document["count"] = count
    return document


def key_text(key: str) -> str:
    """Return the name of a feature as text; bytes that are not UTF-8 as escapes."""
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def json_value(value: Any, max_text: int | None = None) -> Any:
    """Return a value for JSON, which lacks NaN, infinity, and bytes that are not text."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if not isinstance(value, bytes):
        return value
    info = probe(value)
    if info is not None:
        return {"size_bytes": len(value), "image": info._asdict()}
    text = as_text(value)
    if text is None:
        tensor = describe_tensor(value)
        document = {"size_bytes": len(value), "begins": begin_of(value)}
        return document if tensor is None else document | {"tensor": tensor}
    if max_text is not None and len(text) > max_text:
        return {"size_bytes": len(value), "text": text[:max_text]}
    return text


def kind_of(value: FeatureValue) -> str:
    """Return the kind of a feature: bytes, int64, float, or empty."""
    if isinstance(value, list):
        return "bytes" if value else "empty"
    return "int64" if value.dtype == "int64" else "float"
