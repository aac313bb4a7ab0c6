"""Describes records for `recordsmith head`, as lines of text and for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
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

# -- text ------------------------------------------------------------------------------------------


def describe(record: bytes) -> list[str]:
    """Describe a record, one short line per feature."""
    kind = classify(record)
    if kind == "ELWC":
        return _describe_ranking_list(record)
    if kind not in ("Example", "SequenceExample"):
        return _describe_other(record)
    example = decode_payload(record)
    if not isinstance(example, SequenceExample):
        return _feature_lines(example) or ["an Example without features"]
    lines = _feature_lines(example.context)
    for name, steps in example.feature_lists.items():
        lines.append(f"{console.printable(name)}  {console.count(len(steps), 'step')}")
        lines += [f"  {_kind(step)}  {_feature_text(step)}" for step in steps[:_MAX_STEPS]]
        if len(steps) > _MAX_STEPS:
            lines.append("  …")
    return lines


def _describe_ranking_list(record: bytes) -> list[str]:
    try:
        context, examples = decode_ranking_list(record)
    except DataError:
        return _describe_other(record)
    lines = [f"a ranking list of {console.count(len(examples), 'Example')}; their context:"]
    lines += _indented(context)
    for number, features in enumerate(examples[:_MAX_STEPS]):
        lines += [f"Example {number}", *_indented(features)]
    if len(examples) > _MAX_STEPS:
        lines.append(f"… and {console.count(len(examples) - _MAX_STEPS, 'more Example')}")
    return lines


def _indented(features: Features) -> list[str]:
    return [f"  {line}" for line in _feature_lines(features) or ["no features"]]


def _feature_lines(features: Features) -> list[str]:
    names = {key: console.printable(key) for key in sorted(features)}
    widest = max(map(len, names.values()), default=0)
    return [
        f"{name:{widest}}  {_kind(features[key]):5}  {_feature_text(features[key])}"
        for key, name in names.items()
    ]


def _feature_text(value: FeatureValue) -> str:
    """Describe the values of a feature in about a line."""
    as_line = bytes_text if isinstance(value, list) else str
    shown = list(map(as_line, value[:_MAX_VALUES]))
    return shown[0] if len(shown) == 1 else _list_text(shown, len(value))


def _describe_other(record: bytes) -> list[str]:
    """Describe a record that is not an Example by its first bytes."""
    return [f"{_NAMES[classify(record)]}: {bytes_text(record)}"]


def _list_text(items: Sequence[str], count: int) -> str:
    """List the first of `count` values."""
    shown = ", ".join(items)
    return f"[{shown}]" if count <= _MAX_VALUES else f"[{shown}, …]  {count:,} values"


# -- JSON ------------------------------------------------------------------------------------------


def to_document(record: bytes) -> dict[str, Any]:
    """Return the contents of a record for JSON."""
    kind = classify(record)
    document: dict[str, Any] = {"size_bytes": len(record), "payload": kind}
    try:
        if kind == "ELWC":
            context, examples = decode_ranking_list(record)
            return document | {
                "context": _feature_documents(context),
                "examples": list(map(_feature_documents, examples)),
            }
        example = decode_payload(record)
    except DataError as error:
        document |= {"error": str(error), "begins": begin_of(record)}
        return document
    if isinstance(example, SequenceExample):
        return document | {
            "context": _feature_documents(example.context),
            "feature_lists": {
                _json_text(name): [_feature_document(step) for step in steps]
                for name, steps in sorted(example.feature_lists.items())
            },
        }
    return document | {"features": _feature_documents(example)}


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


# -- for both --------------------------------------------------------------------------------------


def _kind(value: FeatureValue) -> str:
    if isinstance(value, list):
        return "bytes" if value else "empty"
    return "int64" if value.dtype == "int64" else "float"
