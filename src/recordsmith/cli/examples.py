"""Descriptions of records for `recordsmith head`, as text and for JSON."""

from __future__ import annotations

import json
import math
from typing import Any

from recordsmith.cli import console
from recordsmith.cli.other_payloads import describe_other, to_fields
from recordsmith.cli.values import bytes_document
from recordsmith.dataset.examples import begin_of, bytes_text
from recordsmith.errors import DataError
from recordsmith.example import (
    Features,
    FeatureValue,
    SequenceExample,
    classify,
    decode_payload,
    decode_ranking_list,
)

_VALUES_SHOWN = 8
_STEPS_SHOWN = 3

# -- text ---------------------------------------------------------------------------------------


def describe(record: bytes) -> list[str]:
    """Describe a record, one short line per feature."""
    kind = classify(record)
    if kind == "ELWC":
        return _describe_ranking_list(record)
    if kind not in ("Example", "SequenceExample"):
        return describe_other(record)
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


def _describe_ranking_list(record: bytes) -> list[str]:
    try:
        context, examples = decode_ranking_list(record)
    except DataError:
        return describe_other(record)
    lines = [f"a ranking list of {console.count(len(examples), 'Example')}; their context:"]
    lines += _indented(context)
    for number, features in enumerate(examples[:_STEPS_SHOWN]):
        lines += [f"Example {number}", *_indented(features)]
    if len(examples) > _STEPS_SHOWN:
        lines.append(f"… and {console.count(len(examples) - _STEPS_SHOWN, 'more Example')}")
    return lines


def _indented(features: Features) -> list[str]:
    return [f"  {line}" for line in _table(features) or ["no features"]]


def _table(features: Features) -> list[str]:
    names = {key: console.printable(key) for key in sorted(features)}
    widest = max(map(len, names.values()), default=0)
    return [
        f"{name:{widest}}  {_kind(features[key]):5}  {_text(features[key])}"
        for key, name in names.items()
    ]


def _text(value: FeatureValue) -> str:
    """Describe the values of a feature in about a line."""
    if isinstance(value, list):
        shown = ", ".join(bytes_text(item) for item in value[:_VALUES_SHOWN])
    else:
        shown = ", ".join(map(str, value[:_VALUES_SHOWN]))
    if len(value) == 1:
        return shown
    more = ", …" if len(value) > _VALUES_SHOWN else ""
    return f"[{shown}{more}]" + (f"  {len(value):,} values" if more else "")


# -- JSON ----------------------------------------------------------------------------------------


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
        return document | {"error": str(error), "begins": begin_of(record)} | to_fields(record)
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
        return {"kind": _kind(value), "values": [bytes_document(item) for item in value]}
    numbers = value.tolist()
    if value.dtype == "float32":  # the shortest equal decimal; JSON lacks NaN and infinity
        numbers = [
            float(str(number)) if math.isfinite(number) else json.dumps(float(number))
            for number in value
        ]
    return {"kind": _kind(value), "values": numbers}


# -- for both ------------------------------------------------------------------------------------


def _kind(value: FeatureValue) -> str:
    if isinstance(value, list):
        return "bytes" if value else "empty"
    return "int64" if value.dtype == "int64" else "float"


def _json_text(key: str) -> str:
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
