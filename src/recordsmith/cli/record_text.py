"""Describes records for `recordsmith head`, as lines of text and for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from recordsmith.cli import console
from recordsmith.dataset.examples import begin_of, bytes_text, probe
from recordsmith.errors import DataError
from recordsmith.example import (
    Features,
    FeatureValue,
    SequenceExample,
    classify,
    decode_payload,
    decode_ranking_list,
)
from recordsmith.example.payload import as_text

_MAX_VALUES = 8
_MAX_STEPS = 3
_NAMES = {
    "ELWC": "a ranking list (ExampleListWithContext)",
    "Event": "a TensorBoard event",
    "other": "not an Example",
    "Example": "a malformed Example",
}


def _contents(record: bytes) -> dict[str, Any]:
    """Return the sections of a record: features, steps by name, or the features of Examples.

    Raises:
        DataError: the record is another message.
    """
    if classify(record) == "ELWC":
        context, examples = decode_ranking_list(record)
        return {"context": context, "examples": examples}
    example = decode_payload(record)
    if isinstance(example, SequenceExample):
        return {"context": example.context, "feature_lists": example.feature_lists}
    return {"features": example}


def describe(record: bytes) -> Iterator[str]:
    """Describe a record, one short line per feature."""
    try:
        sections = _contents(record)
    except DataError:
        yield f"{_NAMES[classify(record)]}: {bytes_text(record)}"
        return
    for section, features in sections.items():
        if section == "feature_lists":
            for name, steps in features.items():
                yield f"{console.printable(name)}  {console.count(len(steps), 'step')}"
                yield from (
                    f"  {_kind(step)}  {_feature_text(step)}" for step in steps[:_MAX_STEPS]
                )
                yield from ("  …",) * (len(steps) > _MAX_STEPS)
        elif section == "examples":
            yield f"{console.count(len(features), 'Example')} of a ranking list"
            for number, example in enumerate(features[:_MAX_STEPS]):
                yield f"Example {number}"
                yield from (f"  {line}" for line in _feature_lines(example))
            yield from ("…",) * (len(features) > _MAX_STEPS)
        else:
            yield from _feature_lines(features)


def _feature_lines(features: Features) -> list[str]:
    names = {key: console.printable(key) for key in sorted(features)}
    widest = max(map(len, names.values()), default=0)
    return [
        f"{name:{widest}}  {_kind(features[key]):5}  {_feature_text(features[key])}"
        for key, name in names.items()
    ] or ["no features"]


def _feature_text(value: FeatureValue) -> str:
    """Describe the values of a feature in about a line."""
    as_line = bytes_text if isinstance(value, list) else str
    shown = ", ".join(map(as_line, value[:_MAX_VALUES]))
    if len(value) == 1:
        return shown
    return f"[{shown}]" if len(value) <= _MAX_VALUES else f"[{shown}, …]  {len(value):,} values"


def to_document(record: bytes) -> dict[str, Any]:
    """Return the contents of a record for JSON."""
    document: dict[str, Any] = {"size_bytes": len(record), "payload": classify(record)}
    try:
        sections = _contents(record)
    except DataError as error:
        return document | {"error": str(error), "begins": begin_of(record)}
    for section, features in sections.items():
        if section == "feature_lists":
            document[section] = {
                _json_text(name): list(map(_feature_document, steps))
                for name, steps in sorted(features.items())
            }
        elif section == "examples":
            document[section] = list(map(_feature_documents, features))
        else:
            document[section] = _feature_documents(features)
    return document


def _feature_documents(features: Features) -> dict[str, Any]:
    return {_json_text(key): _feature_document(features[key]) for key in sorted(features)}


def _feature_document(value: FeatureValue) -> dict[str, Any]:
    if isinstance(value, list):
        return {"kind": _kind(value), "values": list(map(json_value, value))}
    numbers = value.tolist()
    if value.dtype == "float32":  # the shortest equal decimal
        numbers = [
            float(str(number)) if math.isfinite(number) else json_value(float(number))
            for number in value
        ]
    return {"kind": _kind(value), "values": numbers}


def _json_text(key: str) -> str:
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def json_value(value: Any) -> Any:
    """Return a value for JSON, which lacks NaN, infinity, and bytes that are not text."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if not isinstance(value, bytes):
        return value
    info = probe(value)
    if info is not None:
        return {"size_bytes": len(value), "image": info._asdict()}
    text = as_text(value)
    return {"size_bytes": len(value), "begins": begin_of(value)} if text is None else text


def _kind(value: FeatureValue) -> str:
    if isinstance(value, list):
        return "bytes" if value else "empty"
    return "int64" if value.dtype == "int64" else "float"
