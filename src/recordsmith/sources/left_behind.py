"""What a reading leaves behind that should not be lost unsaid: labels, splits, many images.

`Recogniser` opens files that no reading uses; `concerns_of` judges a whole account. Usual cases
(test images without labels, other tasks, read-me files) are notices; others stop `pack`.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from functools import cached_property

from recordsmith.errors import SourceError, option
from recordsmith.sources.boxes.annotation import BOX_FORMATS
from recordsmith.sources.files.account import AccountLine, LeftFor, Reason, Role, are_few
from recordsmith.sources.files.file_tree import HEAD_BYTES, FileTree
from recordsmith.sources.files.images import has_image_name, is_mask_word
from recordsmith.sources.files.paths import with_slashes
from recordsmith.sources.problems import join_names
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import is_like_split
from recordsmith.words import count

_WORDS = re.compile(r"[^\s,;|:\"'\[\]{}()<>=]+")
_MAX_WORDS = 20_000
_LONG_NUMBER = 5  # digits of a number that is the name of an image, not by chance
_LABELLED = (Reason.LABELLED, Reason.UNREAD_ANNOTATIONS, Reason.NAMES_IMAGES)


class Recogniser:
    """Recognises annotations, and tables and lists of images, among the files that are left out."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree

    def recognise(self, path: str) -> LeftFor | None:
        """Why a file should not be left out; None if it may be."""
        head = self._tree.head(path)
        name = self._format_of(path, head)
        if name is not None:
            what = f"of the format {name} not read"
            return LeftFor(Reason.UNREAD_ANNOTATIONS, "annotation file", what)
        stem = _stem(path)
        if stem in self._stems and not path.lower().endswith(".txt"):
            return None
        words = self._named(head)
        lines = head.count(b"\n") + 1
        needed = len(self._stems) if len(head) < HEAD_BYTES else min(len(self._stems), lines)
        if words and len(words) > 1 and 2 * len(words) >= needed:
            return LeftFor(Reason.NAMES_IMAGES, "file", "with names of the images not read")
        return None

    @staticmethod
    def _format_of(path: str, head: bytes) -> str | None:
        for known in BOX_FORMATS.values():
            if path.lower().endswith(known.suffix) and known.matches(head):
                return known.name
        return None

    def _named(self, head: bytes) -> set[str]:
        """The stems of images that a file names."""
        text = with_slashes(head.decode("utf-8", "replace"))
        words = (match.group() for match in itertools.islice(_WORDS.finditer(text), _MAX_WORDS))
        return {
            stem
            for word in words
            if (stem := _stem(word)) in self._stems and not _is_small_number(word)
        }

    @cached_property
    def _stems(self) -> frozenset[str]:
        scans = self._tree.folders.values()
        return frozenset(_stem(name) for scan in scans for name in scan.images)


def _is_small_number(word: str) -> bool:
    """Whether a word may be any number, although an image has its name."""
    return word.isdecimal() and len(word) < _LONG_NUMBER


def _stem(path: str) -> str:
    name = posixpath.basename(path)
    return (posixpath.splitext(name)[0] if has_image_name(name) else name).casefold()


def concerns_of(listing: Listing) -> list[str]:
    """What a listing leaves behind that stops `pack`, a sentence each."""
    account = listing.account
    if account is None or not account.is_inspected:
        return []
    left = account.left_out
    concerns = [line.describe() for line in left if line.kind in _LABELLED]
    classes = {name.casefold() for name in listing.class_names or () if name is not None}
    images = [line for line in left if line.noun == "image" and line.kind not in _LABELLED]
    for line in images:
        folders = [folder for folder in line.folders if _is_labelled(folder, classes)]
        if folders and account.counted(Role.IMAGE):
            number = count(sum(line.folders[folder] for folder in folders), "labelled image")
            where = join_names(f"{folder}/" for folder in sorted(folders))
            concerns.append(f"{number} not read, in {where}")
    unexplained = [line for line in images if not line.kind.is_known]  # type: ignore[union-attr]
    number = sum(line.file_count for line in unexplained)
    total = account.counted(Role.IMAGE) + sum(line.file_count for line in images)
    if not concerns and not are_few(number, total):
        concerns += [line.describe() for line in unexplained]
    return concerns


def _is_labelled(folder: str, classes: set[str]) -> bool:
    """Whether a folder that is left out is named like a class that is read, or like masks."""
    parts = folder.split("/")
    return parts[-1].casefold() in classes or (
        is_like_split(parts[0]) and len(parts) == 2 and is_mask_word(parts[-1])
    )


def check_left_behind(listing: Listing) -> None:
    """Refuse a listing that leaves labelled data or many images behind.

    Raises:
        SourceError: `problems` has what is left behind.
    """
    concerns = concerns_of(listing)
    if not concerns:
        return
    account = listing.account
    assert account is not None  # as it has concerns
    raise SourceError(
        "this would leave behind what may be needed",
        concerns,
        path=None,
        remedy=_remedy([line for line in account.left_out if not _is_known(line)]),
        lists_problems=True,
    )


def _is_known(line: AccountLine) -> bool:
    return isinstance(line.kind, Role) or line.kind.is_known


def _remedy(lines: list[AccountLine]) -> str:
    places: dict[str, None] = {}
    for line in lines:
        few = line.names if line.file_count <= 3 else [folder or "." for folder in line.folders]
        places |= dict.fromkeys(few)
    typed = " ".join(option("leave_out", place) for place in [*places][:3])
    return f"Choose another reading, or accept this by name: {typed}."
