"""Descriptions of payloads that are not Examples: raw fields, or fields named by a descriptor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recordsmith.cli import console
from recordsmith.cli.values import bytes_document, number_document
from recordsmith.dataset.examples import bytes_text
from recordsmith.errors import DataError, OptionError
from recordsmith.example import RawField, classify, decode_fields
from recordsmith.example.raw_fields import as_text

_LINES_SHOWN = 40
_VALUES_SHOWN = 8
_FIRST_PRINTED = " "
_NAMES = {
    "ELWC": "a ranking list (ExampleListWithContext)",
    "Event": "a TensorBoard event",
    "other": "not an Example",
    "Example": "a malformed Example",
}

# -- raw fields ----------------------------------------------------------------------------------


def describe_other(record: bytes) -> list[str]:
    """Describe a record that is not an Example: its fields, or its first bytes."""
    name = _NAMES[classify(record)]
    fields = _fields(record)
    if fields is None:
        return [f"{name}: {bytes_text(record)}"]
    return [f"{name}; as a message of unknown type:", *_cut(_field_lines(fields, "  "))]


def to_fields(record: bytes) -> dict[str, Any]:
    """Return the fields for JSON; an empty dict if the record is not a message."""
    fields = _fields(record)
    return {} if fields is None else {"fields": [_field_document(field) for field in fields]}


def _fields(record: bytes) -> tuple[RawField, ...] | None:
    """Decode the fields; None also for text, which may look like a message by chance."""
    text = as_text(record)
    if not record or (text is not None and text[0] >= _FIRST_PRINTED):
        return None
    try:
        return decode_fields(record)
    except (DataError, OptionError):  # not a message, or too many fields
        return None


def _field_lines(fields: Sequence[RawField], indent: str) -> list[str]:
    lines = []
    for field in fields:
        kind = field.wire_type if field.content in ("number", "message") else field.content
        if isinstance(field.value, tuple) and field.content == "message":
            kind = "group" if field.wire_type == "group" else "message"
            lines.append(f"{indent}{field.number}  {kind}")
            inner: Any = field.value
            lines += _field_lines(inner, indent + "  ")
        else:
            lines.append(f"{indent}{field.number}  {kind}  {_value_text(field)}")
    return lines


def _value_text(field: RawField) -> str:
    value = field.value
    if isinstance(value, int):
        if field.as_float is None:
            return str(field.signed)
        return f"{field.as_float:.7g}, or {field.signed} as an integer"
    if isinstance(value, bytes):
        return bytes_text(value) if value else "0 bytes"
    if isinstance(value, str):
        return bytes_text(value.encode())
    return _list_text([f"{item:.7g}" if isinstance(item, float) else str(item) for item in value])


def _field_document(field: RawField) -> dict[str, Any]:
    value: Any = field.value
    document: dict[str, Any] = {
        "number": field.number,
        "wire_type": field.wire_type,
        "content": field.content,
    }
    if field.content == "message":
        return document | {"fields": [_field_document(inner) for inner in value]}
    if isinstance(value, int):
        document["value"] = field.signed
        if field.as_float is not None:
            document["float"] = number_document(field.as_float)
    elif isinstance(value, bytes):
        document["value"] = bytes_document(value)
    else:
        document["value"] = list(value) if isinstance(value, tuple) else value
    return document


# -- with descriptors ----------------------------------------------------------------------------


def describe_message(fields: dict[str, Any]) -> list[str]:
    """Describe the named fields of a message, one per line."""
    return _cut(_message_lines(fields, "")) or ["no field is set"]


def message_document(value: Any) -> Any:
    """Return the named fields for JSON."""
    if isinstance(value, dict):
        return {key: message_document(item) for key, item in value.items()}
    if isinstance(value, list):
        return [message_document(item) for item in value]
    if isinstance(value, bytes):
        return bytes_document(value)
    return number_document(value) if isinstance(value, float) else value


def _message_lines(fields: dict[str, Any], indent: str) -> list[str]:
    lines = []
    for name, value in fields.items():
        key = console.printable(name)
        if isinstance(value, dict):
            lines += [f"{indent}{key}", *_message_lines(value, indent + "  ")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for place, item in enumerate(value):
                lines += [f"{indent}{key}[{place}]", *_message_lines(item, indent + "  ")]
        elif isinstance(value, list):
            lines.append(f"{indent}{key}  {_list_text([_plain_text(item) for item in value])}")
        else:
            lines.append(f"{indent}{key}  {_plain_text(value)}")
    return lines


def _plain_text(value: Any) -> str:
    if isinstance(value, bytes):
        return bytes_text(value) if value else "0 bytes"
    if isinstance(value, str):
        return bytes_text(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.7g}" if isinstance(value, float) else str(value)


# -- for both ------------------------------------------------------------------------------------


def _list_text(items: Sequence[str]) -> str:
    if len(items) <= _VALUES_SHOWN:
        return f"[{', '.join(items)}]"
    return f"[{', '.join(items[:_VALUES_SHOWN])}, …]  {len(items):,} values"


def _cut(lines: list[str]) -> list[str]:
    if len(lines) <= _LINES_SHOWN:
        return lines
    return [*lines[:_LINES_SHOWN], f"… and {len(lines) - _LINES_SHOWN:,} more fields"]
