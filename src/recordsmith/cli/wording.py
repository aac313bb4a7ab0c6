"""How an error reads at the command line: options instead of Python's arguments, and a way out.

The library names arguments (`overwrite=True`), which nobody can type in a shell; here each becomes
the option that stands for it. What is damaged is not mended by the command that met it; here it is
said, for all commands alike, which ones help.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from recordsmith.errors import DAMAGED_RECORDS, CorruptDataError, Defect, MissingFileError

_MOST_COMPARED = 1000

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
    "or a dict of new names": "or new names such as image/encoded=image",
    "say what to drop, rename, add or recode": "say what to --drop, --rename, --add or --recode",
    "(for `where` alone, use reshard)": "(for --where alone, use `recordsmith reshard`)",
}
_ARGUMENT = re.compile(r"(?<![\w/.-])(?:" + "|".join(map(re.escape, _OPTIONS)) + r")(?!\w)")
_NAMED_OTHERWISE = {
    "format": "--store",
    "masks": "--object-masks",
    "orientation": "--upright",
    "shard_size_bytes": "--shard-size",
}
_NAMED_ALIKE = (
    *("background", "baseline", "boxes", "by", "colours", "drop_alpha", "fit", "keys"),
    *("longer_side", "max_pixels", "quality", "reader", "recompress", "sample", "seed"),
    *("shard_names", "shorter_side", "shrink", "take", "where"),
)
_SUBJECT = re.compile(
    rf"(?:^|(?<=, but ))({'|'.join((*_NAMED_OTHERWISE, *_NAMED_ALIKE))})"
    r"(?= (?:is|are|needs|asks|calls|cannot|compares)\b)"
)
"""What a message is about, if that is an argument: its option has the same name, or another."""

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
    text = _ARGUMENT.sub(lambda match: _OPTIONS[match[0]], text)
    return _SUBJECT.sub(lambda match: _option(match[1]), text)


def _option(argument: str) -> str:
    return _NAMED_OTHERWISE.get(argument, f"--{argument.replace('_', '-')}")


def way_out(error: Exception, command: str, given: Mapping[str, Any]) -> str:
    """What helps, to end a message with: a name that may be meant, or the commands that help with
    damage; often nothing.

    Args:
        command: the name of the one that met it.
        given: its arguments.
    """
    if isinstance(error, MissingFileError):
        return _meant(given)
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


def _meant(given: Mapping[str, Any]) -> str:
    """The file or folder beside it whose name is like that of a path that is not there."""
    import difflib

    for typed in map(Path, _paths(given)):
        if os.path.lexists(typed):
            continue
        with suppress(OSError), os.scandir(typed.parent) as entries:
            names = [entry.name for entry in islice(entries, _MOST_COMPARED)]
            close = difflib.get_close_matches(typed.name, names, 1)
            if close:
                return f"; did you mean {typed.parent / close[0]}?"
    return ""


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
