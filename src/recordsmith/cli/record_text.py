"""Describes records for `recordsmith head`, as lines of text and for JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from recordsmith.cli import console
from recordsmith.dataset.examples import begin_of, bytes_text, probe
from recordsmith.errors import DataError, OptionError
from recordsmith.example import (
    Features,
    FeatureValue,
    RawField,
    SequenceExample,
    classify,
    decode_fields,
    decode_payload,
    decode_ranking_list,
)
from recordsmith.example.raw_fields import as_text

_MAX_VALUES = 8
_MAX_STEPS = 3
_MAX_LINES = 40
_FIRST_PRINTED = " "
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
    """Describe a record that is not an Example: its fields, or its first bytes."""
    name = _NAMES[classify(record)]
    fields = _raw_fields(record)
    if fields is None:
        return [f"{name}: {bytes_text(record)}"]
    return [f"{name}; as a message of unknown type:", *_first_lines(_raw_lines(fields, "  "))]


def _raw_lines(fields: Sequence[RawField], indent: str) -> list[str]:
    lines = []
    for field in fields:
        kind = field.wire_type if field.content in ("number", "message") else field.content
        if isinstance(field.value, tuple) and field.content == "message":
            kind = "group" if field.wire_type == "group" else "message"
            inner: Any = field.value
            lines += [f"{indent}{field.number}  {kind}", *_raw_lines(inner, indent + "  ")]
        else:
            lines.append(f"{indent}{field.number}  {kind}  {_raw_text(field)}")
    return lines


def _raw_text(field: RawField) -> str:
    value = field.value
    if isinstance(value, int):
        if field.as_float is None:
            return str(field.signed)
        return f"{field.as_float:.7g}, or {field.signed} as an integer"
    if isinstance(value, (bytes, str)):
        return _value_text(value)
    return _list_text(list(map(_value_text, value)))


def describe_message(fields: dict[str, Any]) -> list[str]:
    """Describe the named fields of a message, one per line."""
    return _first_lines(_message_lines(fields, "")) or ["no field is set"]


def _message_lines(fields: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in fields.items():
        key = console.printable(name)
        if isinstance(value, dict):
            lines += [f"{indent}{key}", *_message_lines(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for index, item in enumerate(value):
                lines += [f"{indent}{key}[{index}]", *_message_lines(item, indent + "  ")]
        elif isinstance(value, list):
            lines.append(f"{indent}{key}  {_list_text(list(map(_value_text, value)))}")
        else:
            lines.append(f"{indent}{key}  {_value_text(value)}")
    return lines


def _value_text(value: Any) -> str:
    if isinstance(value, bytes):
        return bytes_text(value) if value else "0 bytes"
    if isinstance(value, str):
        return bytes_text(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.7g}" if type(value) is float else str(value)


def _list_text(items: Sequence[str], count: int | None = None) -> str:
    """List the first of some values; `count` if `items` has only the first ones."""
    number = len(items) if count is None else count
    shown = ", ".join(items[:_MAX_VALUES])
    return f"[{shown}]" if number <= _MAX_VALUES else f"[{shown}, …]  {number:,} values"


def _first_lines(lines: list[str]) -> list[str]:
    if len(lines) <= _MAX_LINES:
        return lines
    return [*lines[:_MAX_LINES], f"… and {len(lines) - _MAX_LINES:,} more fields"]


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
        fields = _raw_fields(record)
        return document | ({} if fields is None else {"fields": list(map(_raw_document, fields))})
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


def _raw_document(field: RawField) -> dict[str, Any]:
    value: Any = field.value
    document: dict[str, Any] = {
        "number": field.number,
        "wire_type": field.wire_type,
        "content": field.content,
    }
    if field.content == "message":
        return document | {"fields": list(map(_raw_document, value))}
    if not isinstance(value, int):
        items = list(value) if isinstance(value, tuple) else value
        return document | {"value": json_value(value) if isinstance(value, bytes) else items}
    document["value"] = field.signed
    if field.as_float is not None:
        document["float"] = json_value(field.as_float)
    return document


def json_value(value: Any) -> Any:
    """Return a value, or the fields of a message, for JSON.

    JSON lacks bytes that are not text, which are summarized, and NaN and infinity.
    """
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(json_value, value))
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


def _raw_fields(record: bytes) -> tuple[RawField, ...] | None:
    """Decode the fields; None also for text, which may look like a message by chance."""
    text = as_text(record)
    if not record or (text is not None and text[0] >= _FIRST_PRINTED):
        return None
    try:
        return decode_fields(record)
    except (DataError, OptionError):  # not a message, or too many fields
        return None
