r"""Convert names from records to safe file names on every system.

Names in records are untrusted: `../../x`, `C:\x`, `NUL.txt`, 3,000 bytes, invalid UTF-8,
duplicates. The result is valid on Linux, macOS and Windows; names that differ from an earlier one
only in case get a number. This module does not access the disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import count

from recordsmith.image import IMAGE_SUFFIXES

LONGEST_PART_BYTES = 255
_LONGEST_FOLDERS_BYTES = 700
_LONGEST_SUFFIX_BYTES = 20
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)
_FORBIDDEN = frozenset('<>:"|?*/\\\ufffe\uffff')
_BIDI_CONTROLS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that change the writing direction, so that a name can look like another."""

_SEPARATORS = re.compile(r"[/\\]")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
_FILE_SUFFIXES = (*IMAGE_SUFFIXES, ".bin", ".txt", ".xml", ".json", ".csv", ".yaml", ".pbtxt")


def safe_part(text: str) -> str:
    """Convert a text to one part of a path that is valid on every file system.

    Invalid characters become `_`. A long name is cut before its suffix.
    """
    clean = "".join("_" if _is_forbidden(char) else char for char in text)
    clean = clean.rstrip(". ")
    if clean[:1] == "." or clean[:1].isspace():  # readers skip hidden files, and strip leading
        clean = "_" + clean[1:]  # spaces of names in lists
    if _RESERVED.fullmatch(clean.partition(".")[0].rstrip()):
        clean = f"_{clean}"
    return shortened(clean or "_")


def safe_parts(name: str) -> tuple[str, ...]:
    """The parts of a relative path; only the last part if it is absolute or too deep."""
    parts = [part for part in _SEPARATORS.split(name) if part not in ("", ".", "..")]
    if _ABSOLUTE.match(name):
        last = parts[-1] if parts else ""
        parts = [re.sub(r"^[A-Za-z]:", "", last)]
    *folders, last = [safe_part(part) for part in parts] or ["_"]
    if len("/".join(folders).encode()) > _LONGEST_FOLDERS_BYTES:
        folders = []
    return (*map(_not_like_a_file, folders), last)


def shortened(part: str, suffix: str = "") -> str:
    """`part` and `suffix`, cut to the limit of file systems, keeping the suffix of `part`."""
    if len(part.encode()) + len(suffix.encode()) <= LONGEST_PART_BYTES:
        return part + suffix
    if not suffix:
        stem, dot, ending = part.rpartition(".")
        if stem and len(ending.encode()) < _LONGEST_SUFFIX_BYTES:
            part, suffix = stem, dot + ending
    room = LONGEST_PART_BYTES - len(suffix.encode())
    return part.encode()[:room].decode("utf-8", "ignore").rstrip(". ") + suffix


def _is_forbidden(char: str) -> bool:
    if char in _FORBIDDEN or char in _BIDI_CONTROLS:
        return True
    # control characters, surrogates (for invalid UTF-8), line separators
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def _not_like_a_file(folder: str) -> str:
    """Rename a folder with the suffix of a file, so that it cannot conflict with a file."""
    return shortened(folder, "_") if folder.lower().endswith(_FILE_SUFFIXES) else folder


class TakenNames:
    """The names in use. Compares them without case and Unicode normalization.

    Stores a hash for each name, not the name.
    """

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._numbers = count(2)

    def take(self, parts: Sequence[str], files: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """Reserve a name for files that belong together, such as an image and its mask.

        Numbers are never tried twice, so that many equal names take linear time.

        Returns:
            `parts`, the last one with a number if a name is already in use.
        """
        *folders, last = parts
        longest = max(len(suffix.encode()) for _, suffix in files)
        mark = ""
        while True:
            room = longest + len(mark)
            name = shortened(last, "x" * room)[: -room or None] + mark
            stem = "/".join((*folders, name))
            keys = [hash(_folded(f"{folder}/{stem}{suffix}")) for folder, suffix in files]
            if self._taken.isdisjoint(keys):
                self._taken.update(keys)
                return (*folders, name)
            mark = f"-{next(self._numbers)}"


def _folded(text: str) -> str:
    """The same text for names that some file system treats as equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
