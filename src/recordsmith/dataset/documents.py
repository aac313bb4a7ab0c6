"""Parses small documents from users, text or JSON, with clear errors, and writes JSON.

If a document is an image or another known format, the error says so. Errors have no paths; callers
add them.
"""

from __future__ import annotations

import codecs
import io
import json
from collections import Counter
from contextlib import suppress
from typing import Any

from recordsmith.format.wire import detect_other_format, read_records
from recordsmith.stores import PlaceLike, write_document
from recordsmith.support.errors import DataError, OptionError

NOT_AS_EXPECTED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What Python raises when a document does not have the expected structure."""

_HEAD_BYTES = 4096
_SHOWN = 30
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(data: bytes) -> str:
    """Decode a document: UTF-8, or UTF-16 with a byte order mark."""
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {error.start:,} is not UTF-8"
    else:
        if "\0" not in text:
            return text
        why = "it contains zero bytes"
    other = other_than_text(data)
    raise ValueError(f"{f'it is {other}' if other else why}; expected text in UTF-8")


def write_json(path: PlaceLike, document: Any, *, overwrite: bool = False) -> None:
    """Write a JSON document atomically. Bytes of names that are not UTF-8 are escaped."""
    data = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    # a byte of a name is \\udcff then, as JSON escapes it
    write_document(path, data.encode("utf-8", "backslashreplace"), overwrite=overwrite)


def json_of(data: bytes, *, with_keys_once: bool = False) -> Any:
    """Parse a JSON document; `with_keys_once` refuses objects with duplicate keys."""
    text = text_of(data)
    if not text or text.isspace():
        raise ValueError("it is empty; expected JSON")
    try:
        return json.loads(text, object_pairs_hook=_with_unique_keys if with_keys_once else None)
    except json.JSONDecodeError as error:
        other = other_than_text(data)
        if other is not None:
            raise ValueError(f"it is {other}; expected JSON") from None
        where = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(text.rstrip()):
            raise ValueError(f"it is truncated JSON, which ends at {where}") from None
        shown = text[error.pos : error.pos + _SHOWN]
        if not text[: error.pos].strip():
            raise ValueError(f"it is not JSON: it begins with {shown!r}") from None
        raise ValueError(f"it is not JSON: {where}: {error.msg}, found {shown!r}") from None
    except OptionError as error:
        raise ValueError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(json_fault(error)) from None


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        raise OptionError(f"duplicate key {keys.most_common(1)[0][0]!r:.60} in an object")
    return members


def json_fault(error: ValueError | RecursionError) -> str:
    """Describe why Python cannot parse a text as JSON."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (line {error.lineno}, column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start:,} is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number in it has too many digits"


def describe_fault(error: Exception) -> str:
    """Describe an error that was raised by a JSON document of unexpected structure."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, (TypeError, AttributeError)):  # their messages name Python types
        return "a part of it has the wrong type"
    if isinstance(error, OverflowError):
        return "a number in it is too large"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def integer_in_json(value: Any) -> int:
    """Validate that a value of JSON is an integer."""
    if type(value) is not int:
        raise TypeError(f"{value!r:.60} is not an integer")
    return value


def count_in_json(value: Any) -> int:
    """Validate that a value of JSON is a number of things."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{value!r:.60} is not a count")
    return value


def is_line(text: str) -> bool:
    """Whether a text can be a line of another file, as the name of a class or split is."""
    with suppress(ValueError):
        line_in_json(text)
        return True
    return False


def line_in_json(value: Any) -> str:
    """Validate that a value of JSON is the name of a class or split: a line of other files."""
    try:
        if set(value) & set("\n\r"):
            raise ValueError(f"the name {value!r:.60} contains a line break")
        value.encode("utf-8", "surrogateescape")
    except (TypeError, AttributeError, UnicodeEncodeError):
        raise ValueError(f"{value!r:.60} is not a name") from None
    return str(value)


def other_than_text(data: bytes) -> str | None:
    """The name of the format of bytes that are not text, if it is known."""
    try:
        next(read_records(io.BytesIO(data)))
    except (DataError, StopIteration):
        foreign = detect_other_format(data[:_HEAD_BYTES])
        return None if foreign is None or foreign.is_text else foreign.name
    return "a TFRecord file"
