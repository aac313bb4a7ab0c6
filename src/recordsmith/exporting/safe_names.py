r"""Which file name may a name from a record become? One that stays inside, on every system.

Names in records were written by anybody: `../../x`, `C:\x`, `NUL.txt`, names of 3,000 bytes, bytes
that are no text, the same name twice. What is kept is as much as Linux, macOS and Windows all take;
what is taken already, in whatever case, gets a number. Nothing here touches the disk.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from recordsmith.image import PICTURE_SUFFIXES

LONGEST_PART_BYTES = 255
_LONGEST_FOLDERS_BYTES = 700
_LONGEST_SUFFIX_BYTES = 20
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)
_FORBIDDEN = frozenset('<>:"|?*/\\\ufffe\uffff')
_TURNING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that turn the direction of writing, and so can make a name look like another."""

_SEPARATORS = re.compile(r"[/\\]")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
_FILE_SUFFIXES = (*PICTURE_SUFFIXES, ".bin", ".txt", ".xml", ".json", ".csv", ".yaml", ".pbtxt")


def safe_part(text: str) -> str:
    """One part of a path, as every file system takes it; never empty, `.` or `..`.

    What a name cannot hold becomes `_`; the end of a name that is too long is cut off, not its
    suffix.
    """
    clean = "".join("_" if _is_forbidden(char) else char for char in text)
    clean = clean.rstrip(". ")
    if clean[:1] == "." or clean[:1].isspace():  # hidden files, and spaces before the names in
        clean = "_" + clean[1:]  # lists, are passed over by whoever reads them
    if _RESERVED.fullmatch(clean.partition(".")[0].rstrip()):
        clean = f"_{clean}"
    return shortened(clean or "_")


def safe_parts(name: str) -> tuple[str, ...]:
    """The parts of a relative path; of an absolute one, or one too deep, only the last."""
    parts = [part for part in _SEPARATORS.split(name) if part not in ("", ".", "..")]
    if _ABSOLUTE.match(name):
        last = parts[-1] if parts else ""
        parts = [re.sub(r"^[A-Za-z]:", "", last)]
    *folders, last = [safe_part(part) for part in parts] or ["_"]
    if len("/".join(folders).encode()) > _LONGEST_FOLDERS_BYTES:
        folders = []
    return (*map(_not_like_a_file, folders), last)


def shortened(part: str, suffix: str = "") -> str:
    """`part` and `suffix`, cut to what a file system takes; its own suffix stays if it has one."""
    if len(part.encode()) + len(suffix.encode()) <= LONGEST_PART_BYTES:
        return part + suffix
    if not suffix:
        stem, dot, ending = part.rpartition(".")
        if stem and len(ending.encode()) < _LONGEST_SUFFIX_BYTES:
            part, suffix = stem, dot + ending
    room = LONGEST_PART_BYTES - len(suffix.encode())
    return part.encode()[:room].decode("utf-8", "ignore").rstrip(". ") + suffix


def _is_forbidden(char: str) -> bool:
    if char in _FORBIDDEN or char in _TURNING:
        return True
    # control characters, surrogates (which stand for bytes that are no UTF-8), line separators
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def _not_like_a_file(folder: str) -> str:
    """A folder is never called as a file could be, so that none is in the way of the other."""
    return shortened(folder, "_") if folder.lower().endswith(_FILE_SUFFIXES) else folder


class TakenNames:
    """The names that were given, so that none is given twice, in whatever case or spelling.

    Holds a number for each name, not the name.
    """

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._next: dict[int, int] = {}  # the number to try for a name that was wanted again

    def take(self, parts: Sequence[str], files: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """Take a name for some files that belong together, such as a picture and its mask.

        Args:
            parts: of the wanted name, without suffix; safe already.
            files: for each file its folder and its suffix.

        Returns:
            `parts`, the last with a number if one of the files would have a name that is taken.
        """
        *folders, last = parts
        wanted = self._keys(parts, files)
        number = self._next.get(wanted[0], 1)
        longest = max(len(suffix.encode()) for _, suffix in files)
        while True:
            mark = f"-{number}" if number > 1 else ""
            name = shortened(last, mark + "x" * longest)[: -longest or None]
            keys = wanted if (number == 1 and name == last) else self._keys((*folders, name), files)
            if self._taken.isdisjoint(keys):
                break
            number += 1
        if number > 1:
            self._next[wanted[0]] = number + 1
        self._taken.update(keys)
        return (*folders, name)

    @staticmethod
    def _keys(parts: Sequence[str], files: Sequence[tuple[str, str]]) -> list[int]:
        stem = "/".join(parts)
        return [hash(_folded(f"{folder}/{stem}{suffix}")) for folder, suffix in files]


def _folded(text: str) -> str:
    """The same for names that some file system takes for the same."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
