"""How an error reads at the command line: options instead of Python's arguments, and a way out.

The library names arguments (`overwrite=True`), which nobody can type in a shell; here each becomes
the option that stands for it. What is damaged is not mended by the command that met it; here it is
said, for all commands alike, which ones help.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recordsmith.errors import DAMAGED_RECORDS, CorruptDataError, Defect

_OPTIONS = {
    "overwrite=True": "--overwrite",
    "on_error='skip'": "--skip-errors",
    "skip_errors=": "--skip-errors",
    "orientation='apply'": "--upright",
    "baseline=True": "--baseline",
    "drop_alpha=True": "--drop-alpha",
    "background=(255, 255, 255)": "--background white",
    "boxes='drop'": "--boxes drop",
    "boxes='clip'": "--boxes clip",
    "pictures='file_name'": "--picture-column file_name",
    "colours='grey'": "--colours grey",
    "colours='voc'": "--colours voc",
    "pictures= and masks=": "--pictures and --masks",
    "pairs=": "--pairs",
    "format='dali'": "--format dali",
    "format='jpeg'": "--store jpeg",
    "format='png'": "--store png",
    "format='raw'": "--store raw",
    "as recordsmith.ImageFiles": "with --as files",
    "label_map=": "--label-map",
    "max_pixels=": "--max-pixels",
    "seconds=": "--seconds",
    "all of them in the error's problems": "all of them with --json",
}
_ARGUMENT = re.compile(r"(?<![\w/.-])(?:" + "|".join(map(re.escape, _OPTIONS)) + r")(?!\w)")

_RESCUED = DAMAGED_RECORDS | {
    Defect.TRUNCATED_COMPRESSION,
    Defect.SHARD_SIZE,
    Defect.SHARD_CHECKSUM,
    Defect.RECORD_COUNT,
}
"""Here records may be intact that the command could not reach, or would not."""
_LISTED = frozenset(
    {
        Defect.MALFORMED_EXAMPLE,
        Defect.NOT_AN_EXAMPLE,
        Defect.MISSING_SHARD,
        Defect.SWAPPED_SHARD,
        Defect.LABELS,
        Defect.BROKEN_MANIFEST,
    }
)
"""Here it helps to know all of it, which the first error does not tell."""
_PICTURES = frozenset({Defect.UNREADABLE_IMAGE, Defect.IMAGE_SIZE, Defect.IMAGE_FORMAT})


def in_options(text: str) -> str:
    """What the library says, with options in the place of Python's arguments."""
    return _ARGUMENT.sub(lambda match: _OPTIONS[match[0]], text)


def way_out(error: Exception, command: str, given: Mapping[str, Any]) -> str:
    """A sentence with the commands that help with damage, to end a message with; often none.

    Args:
        command: the name of the one that met it.
        given: its arguments.
    """
    if not isinstance(error, CorruptDataError) or "recordsmith salvage" in str(error):
        return ""
    path = shlex.quote(_typed(error, given))
    ways = []
    if error.defect in _RESCUED | _LISTED:
        ways.append(f"`recordsmith verify {path}` says all that is wrong")
    if error.defect in _PICTURES:
        ways.append(f"`recordsmith verify {path} --deep` says which pictures are wrong")
    if error.defect in _RESCUED and command != "salvage":
        ways.append(f"`recordsmith salvage {path} OUT` rescues every intact record")
    end = "" if str(error).endswith(".") else "."
    return f"{end} {', '.join(ways)}." if ways else ""


def _typed(error: CorruptDataError, given: Mapping[str, Any]) -> str:
    """The path as the user typed it in which the damage is; of several, the right one."""
    found = "PATH" if error.path is None else error.path
    for typed in _paths(given):
        if error.path is None or Path(typed) in (Path(found), *Path(found).parents):
            return typed
    return found


def _paths(given: Mapping[str, Any]) -> Iterable[str]:
    for name in ("path", "paths", "a", "b", "source", "dataset"):
        value = given.get(name)
        if value is not None:
            yield from [str(value)] if isinstance(value, (str, Path)) else map(str, value)
