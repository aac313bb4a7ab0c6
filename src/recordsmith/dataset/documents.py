"""Small documents that people hand over, text or JSON: what do they say, or what are they instead?

A picture given for a table is told to be a picture, and a comma that is missing by its line. What a
parser says of bytes reaches nobody. Nothing here knows paths: whoever reads a file names it.
"""

from __future__ import annotations

import codecs
import io
import json
from collections import Counter
from typing import Any

from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.wire import describe_foreign, read_records

NOT_AS_EXPECTED = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What Python raises where a document is taken apart that is another than was thought."""

_HEAD_BYTES = 4096
_SHOWN = 30
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TEXTS = ("a text file", "a JSON document")  # in another encoding


def text_of(data: bytes) -> str:
    """The text of a document: UTF-8, or UTF-16 that begins with its mark.

    Raises:
        ValueError: it is none; in words.
    """
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {error.start:,} is no UTF-8"
    else:
        if "\0" not in text:
            return text
        why = "some of its bytes are zero"
    found = other_than_text(data)
    raise ValueError(f"{f'it is {found}' if found else why}; expected text in UTF-8")


def json_of(data: bytes, *, with_keys_once: bool = False) -> Any:
    """What a document of JSON holds.

    Args:
        with_keys_once: refuse an object that has a key twice, of which the first would be lost.

    Raises:
        ValueError: it is none; in words, with the line.
    """
    text = text_of(data)
    if not text or text.isspace():
        raise ValueError("it is empty; expected JSON")
    try:
        return json.loads(text, object_pairs_hook=_once if with_keys_once else None)
    except json.JSONDecodeError as error:
        other = other_than_text(data)
        if other is not None:
            raise ValueError(f"it is {other}; expected JSON") from None
        where = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(text.rstrip()):
            raise ValueError(f"it is no whole JSON: it was cut off at {where}") from None
        found = text[error.pos : error.pos + _SHOWN]
        raise ValueError(f"it is no JSON: {where}: {error.msg}, found {found!r}") from None
    except OptionError as error:
        raise ValueError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(json_fault(error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        raise OptionError(f"{keys.most_common(1)[0][0]!r:.60} is there twice in one object")
    return found


def json_fault(error: ValueError | RecursionError) -> str:
    """Why Python cannot parse a text as JSON, in words."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (line {error.lineno}, column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start:,} is no UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number in it has too many digits"


def fault_of(error: Exception) -> str:
    """Why a document of JSON is not what it should be: words for what taking it apart raised."""
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    if isinstance(error, (TypeError, AttributeError)):  # Python's words speak of its own types
        return "a part of it is not of the kind that it should be"
    if isinstance(error, OverflowError):
        return "a number in it is too large"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def integer_in_json(value: Any) -> int:
    """A value of JSON that has to be an integer.

    Raises:
        TypeError: it is none.
    """
    if type(value) is not int:
        raise TypeError(f"{value!r:.60} is no integer")
    return value


def kind_in_json(value: Any) -> str:
    """What a value of JSON is, in words: a number or text itself, of the rest only its kind."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return f"{value!r:.50}"


def other_than_text(data: bytes) -> str | None:
    """What bytes are that are no text, if it can be told."""
    try:
        next(read_records(io.BytesIO(data)))
    except (CorruptDataError, StopIteration):
        foreign = describe_foreign(data[:_HEAD_BYTES])
        return None if foreign is None or foreign.name in _TEXTS else foreign.name
    return "a TFRecord file"
