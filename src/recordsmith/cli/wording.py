"""Errors at the command line: names of its options, and commands that help."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from recordsmith.support.errors import (
    DAMAGED_RECORDS,
    DataError,
    Defect,
    MissingFileError,
    OptionError,
)

QUOTE_CONDITION = "Put the condition in quotes: --where '…'"
_QUERY_FIRST = ". The query comes before the paths: `recordsmith query SQL PATH`"
_OPERATORS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "and", "or", "not"})

_FLAGS = {
    "orientation": "--upright",
    "out": "OUT",
    "path": "PATH",
    "paths": "PATH",
    "sample_count": "--sample",
    "shard_size_bytes": "--shard-size",
    "source": "SOURCE",
    "sql": "SQL",
}
"""Options whose name differs from that in Python; all others differ only in dashes."""
_FLAGS_OF_VALUES: Mapping[tuple[str, str | None], str] = {
    ("lock", "False"): "--no-lock",
    ("lock", None): "--no-lock",
    ("restore_types", "False"): "--stored-types",
    ("orientation", "'apply'"): "--upright",
    ("background", "(255, 255, 255)"): "--background white",
}

AFTER_INTERRUPTION = {
    **dict.fromkeys(("pack", "reshard", "edit"), "rerun the command to resume"),
    **dict.fromkeys(("append", "index"), "rerun the command to finish"),
    **dict.fromkeys(("export", "salvage"), "no output was left; rerun the command to start again"),
}
"""What to do after a command was stopped before its end."""

_RECOVERABLE = DAMAGED_RECORDS | {
    Defect.TRUNCATED_COMPRESSION,
    Defect.SHARD_SIZE,
    Defect.SHARD_CHECKSUM,
    Defect.RECORD_COUNT,
}
"""`salvage` may recover records from files with these defects."""
_LIKELY_REPEATED = frozenset(
    {
        Defect.MALFORMED_EXAMPLE,
        Defect.NOT_AN_EXAMPLE,
        Defect.MISSING_SHARD,
        Defect.SWAPPED_SHARD,
        Defect.LABELS,
        Defect.BROKEN_MANIFEST,
    }
)
"""Several of these are likely, so `verify` helps to find them all."""
_IMAGES = frozenset(
    {Defect.UNREADABLE_IMAGE, Defect.DAMAGED_IMAGE, Defect.IMAGE_SIZE, Defect.IMAGE_FORMAT}
)


def option_in_shell(name: str, value: str | None) -> str:
    """Return an option as it is typed: `--overwrite`, `--boxes drop`."""
    known = _FLAGS_OF_VALUES.get((name, value))
    if known is not None:
        return known
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value in (None, "True"):
        return flag
    return f"{flag} {_typed_value(value)}"


def _typed_value(literal: str | None) -> str:
    try:
        value = ast.literal_eval(literal or "")
    except (ValueError, SyntaxError):
        return literal or ""
    if isinstance(value, dict):
        value = ",".join(f"{key}={item}" for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return shlex.quote(str(value))


def advice_for(error: Exception, command: str, given: Mapping[str, Any]) -> str:
    """Return what to append to a message: a similar file name or commands to run, often nothing."""
    if isinstance(error, MissingFileError):
        if given.get("where") and is_part_of_condition(_paths(given)):
            return f". {QUOTE_CONDITION}"
        if command == "query" and not _is_missing(given["sql"]):
            return _QUERY_FIRST
        return "" if error.remedy else _similar_name(given)
    if isinstance(error, OptionError) and error.option == "paths":  # count(*) is a pattern
        is_swapped = command == "query" and not _is_missing(given["sql"])
        return _QUERY_FIRST if is_swapped else ""
    if not isinstance(error, DataError):
        return ""
    path = shlex.quote(_typed_path(error, given))
    commands = []
    if error.defect in _RECOVERABLE | _LIKELY_REPEATED:
        commands.append(f"`recordsmith verify {path}` lists all defects")
    if error.defect in _IMAGES:
        commands.append(f"`recordsmith verify {path} --deep` lists the damaged images")
    if error.defect in _RECOVERABLE and command != "salvage":
        commands.append(f"`recordsmith salvage {path} OUT` recovers all intact records")
    end = "" if str(error).endswith(".") else "."
    return f"{end} {'; '.join(commands)}." if commands else ""


def is_part_of_condition(arguments: Iterable[str]) -> bool:
    """Whether arguments are likely the rest of a condition that was not put in quotes."""
    return not _OPERATORS.isdisjoint(arguments)


def _similar_name(given: Mapping[str, Any]) -> str:
    """Suggest the file or folder with the most similar name for a path that does not exist."""
    from recordsmith.stores import as_location  # loads more than `--help` needs

    for path in filter(_is_missing, _paths(given)):
        similar = as_location(path).similar()
        if similar is not None and similar != as_location(path):
            return f". Did you mean {similar}?"
    return ""


def _is_missing(path: str) -> bool:
    from recordsmith.stores import as_place  # loads more than `--help` needs

    with suppress(OSError, ValueError):
        place = as_place(path)
        return not (place.is_folder() or place.exists())
    return False


def _typed_path(error: DataError, given: Mapping[str, Any]) -> str:
    """Return the typed path that contains the damaged file."""
    damaged = "PATH" if error.path is None else error.path
    for typed in _paths(given):
        if error.path is None or PurePath(typed) in (PurePath(damaged), *PurePath(damaged).parents):
            return typed
    return damaged


def _paths(given: Mapping[str, Any]) -> Iterable[str]:
    for name in ("path", "paths", "a", "b", "source", "dataset"):
        value = given.get(name)
        if value is not None:
            yield from [str(value)] if isinstance(value, str) else map(str, value)
