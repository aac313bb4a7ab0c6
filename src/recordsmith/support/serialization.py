"""Convert reports, options and other plain values to JSON-able values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from os import PathLike
from typing import Any

_COUNTS = {
    "appended_count": "appended",
    "removed_count": "removed",
    "replaced_count": "replaced",
    "rewritten_count": "rewritten",
    "class_count": "classes",
    "expected_count": "expected",
    "file_count": "files",
    "index_count": "indexes",
    "message_count": "messages",
    "object_count": "objects",
    "record_count": "records",
    "renamed_count": "renamed",
    "reused_count": "reused",
    "sample_count": "samples",
    "shard_count": "shards",
}
"""Keys of counts in documents, which list none of what they count."""


def fields_to_json(value: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the fields of a dataclass or named tuple as a JSON-able dict.

    Args:
        names: the attributes to include, in order; None for all fields.
    """
    if names is None:
        names = [field.name for field in fields(value)] if is_dataclass(value) else value._fields
    return {_COUNTS.get(name, name): to_json(getattr(value, name)) for name in names}


def to_json(value: Any) -> Any:
    """Return a JSON-able value; paths and members of enumerations become strings."""
    if isinstance(value, (PathLike, Enum)):
        return str(value)
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if is_dataclass(value) or hasattr(value, "_fields"):
        return fields_to_json(value)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value
