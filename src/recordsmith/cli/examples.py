"""A record's payload in words, for people and for programs: what `recordsmith head` shows."""

from __future__ import annotations

import json
import math
from typing import Any

from recordsmith.cli import console
from recordsmith.errors import CorruptDataError
from recordsmith.example import (
    Features,
    FeatureValue,
    SequenceExample,
    classify,
    decode_payload,
)
from recordsmith.image import ImageInfo, probe_image

_VALUES_SHOWN = 8
_STEPS_SHOWN = 3
_TEXT_SHOWN = 60
_BYTES_SHOWN = 16
_OTHER_PAYLOADS = {
    "ELWC": "a ranking list (ExampleListWithContext)",
    "Event": "a TensorBoard event",
    "other": "no Example",
}

# -- for people ----------------------------------------------------------------------------------


def describe(record: bytes) -> list[str]:
    """What a record says, for people: one feature a line, each cut to about a line."""
    payload = classify(record)
    if payload not in ("Example", "SequenceExample"):
        return [f"{_OTHER_PAYLOADS[payload]}: {_bytes_text(record)}"]
    example = decode_payload(record)
    if not isinstance(example, SequenceExample):
        return _table(example) or ["an Example without features"]
    lines = _table(example.context)
    for name, steps in example.feature_lists.items():
        lines.append(f"{console.printable(name)}  {console.count(len(steps), 'step')}")
        lines += [f"  {_kind(step)}  {_text(step)}" for step in steps[:_STEPS_SHOWN]]
        if len(steps) > _STEPS_SHOWN:
            lines.append("  …")
    return lines


def _table(features: Features) -> list[str]:
    names = {key: console.printable(key) for key in sorted(features)}
    widest = max(map(len, names.values()), default=0)
    return [
        f"{name:{widest}}  {_kind(features[key]):5}  {_text(features[key])}"
        for key, name in names.items()
    ]


def _text(value: FeatureValue) -> str:
    """The values of a feature, cut to about a line."""
    if isinstance(value, list):
        shown = ", ".join(_bytes_text(item) for item in value[:_VALUES_SHOWN])
    else:
        shown = ", ".join(map(str, value[:_VALUES_SHOWN]))
    if len(value) == 1:
        return shown
    more = ", …" if len(value) > _VALUES_SHOWN else ""
    return f"[{shown}{more}]" + (f"  {len(value):,} values" if more else "")


def _bytes_text(value: bytes) -> str:
    info = _probe(value)
    if info is not None:
        return f"{info.format} picture, {info.width}x{info.height}, {console.size(len(value))}"
    text = _as_text(value)
    if text is None:
        return f"{console.size(len(value))}: {_hex(value)}"
    quoted = console.printable(json.dumps(text[:_TEXT_SHOWN], ensure_ascii=False))
    return quoted + (f" … {console.size(len(value))}" if len(text) > _TEXT_SHOWN else "")


# -- for programs --------------------------------------------------------------------------------


def to_document(record: bytes) -> dict[str, Any]:
    """What a record says, for programs."""
    document: dict[str, Any] = {"size_bytes": len(record), "payload": classify(record)}
    try:
        example = decode_payload(record)
    except CorruptDataError as error:
        return document | {"error": str(error), "begins": _hex(record)}
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
        return {"kind": _kind(value), "values": [_bytes_document(item) for item in value]}
    numbers = value.tolist()
    if value.dtype == "float32":  # as short as says the same; JSON has no NaN and no infinity
        numbers = [
            float(str(number)) if math.isfinite(number) else json.dumps(float(number))
            for number in value
        ]
    return {"kind": _kind(value), "values": numbers}


def _bytes_document(value: bytes) -> str | dict[str, Any]:
    """Text as a string; other bytes by what they are, as they would fill the screen."""
    info = _probe(value)
    if info is not None:
        return {"size_bytes": len(value), "image": info._asdict()}
    text = _as_text(value)
    return {"size_bytes": len(value), "begins": _hex(value)} if text is None else text


# -- for both ------------------------------------------------------------------------------------


def _kind(value: FeatureValue) -> str:
    if isinstance(value, list):
        return "bytes" if value else "empty"
    return "int64" if value.dtype == "int64" else "float"


def _probe(value: bytes) -> ImageInfo | None:
    if len(value) < _BYTES_SHOWN or _as_text(value) is not None:
        return None
    try:
        return probe_image(value)
    except CorruptDataError:
        return None


def _as_text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in "\t\r\n" for char in text) else None


def _json_text(key: str) -> str:
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _hex(value: bytes) -> str:
    return value[:_BYTES_SHOWN].hex(" ") + (" …" if len(value) > _BYTES_SHOWN else "")
