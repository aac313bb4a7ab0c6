"""What a reading leaves behind that should not be lost unsaid: labels, splits, many images.

`Recogniser` opens files that no reading uses; `concerns_of` judges a whole account. Usual cases
(test images without labels, other tasks, read-me files) are notices; others stop `pack`.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from recordsmith.dataset import split_word
from recordsmith.sources.boxes.known_formats import recognise_annotations
from recordsmith.sources.files.account import (
    UNUSUAL,
    Account,
    AccountLine,
    Inspector,
    LeftFor,
    Reason,
    Role,
    are_few,
)
from recordsmith.sources.files.file_tree import HEAD_BYTES, FileTree
from recordsmith.sources.files.images import has_image_name, is_mask_word
from recordsmith.sources.files.paths import with_slashes
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS
from recordsmith.sources.problems import join_names
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import is_like_split
from recordsmith.support.errors import SourceError, option
from recordsmith.support.words import common_prefix, count

_WORDS = re.compile(r"[^\s,;|:\"'\[\]{}()<>=]+")
_ANNOTATIONS = re.compile(rb'"(annotations?|labels?|coordinates|bbox|boxes|regions|shapes)"\s*:')
_MAX_WORDS = 20_000
_MAX_SIBLINGS = 4
_SHOWN = 5
_FEW = 3  # paths that are named each
_LONG, _LONG_NUMBER = 3, 5  # characters of a name of an image without its suffix
_UNANNOTATED = (Reason.NO_ANNOTATION, Reason.NO_IMAGE)
_OTHERS, _MAY_LABEL = (Reason.OTHER_FILE, Reason.OTHER_READING), ("table", "data file", "file")
_LABELLED = (Reason.LABELLED, Reason.UNREAD_ANNOTATIONS, Reason.NAMES_IMAGES)


class Recogniser:
    """Recognises annotations, and tables and lists of images, among the files that are left out.

    Of a format that the caller chose, over those of other files, nothing is recognised.
    """

    def __init__(self, tree: FileTree, format: str, is_chosen: bool) -> None:
        self._tree, self.format, self.is_chosen = tree, format, is_chosen

    def recognise(self, path: str, others: Sequence[str]) -> LeftFor | None:
        if self.is_chosen:
            return None
        head = self._tree.head(path)
        what = self._format_of(path, head)
        if what is not None:
            return LeftFor(Reason.UNREAD_ANNOTATIONS, "annotation file", f"of the format {what}")
        stem = _stem(path)
        if stem in self._folders_of and not path.lower().endswith(".txt"):
            return None
        named = self._named(head)
        if named and self._repeats_folders(path, head, named):
            return LeftFor(Reason.OTHER_FILE, "list", "of images that folders show, skipped")
        if self._names_half(path, head, named, others):
            return LeftFor(Reason.NAMES_IMAGES, "file", "with names of images, not read")
        return None

    def is_named_like_image(self, path: str) -> bool:
        """Whether a file that is no image has the name of one, up to a point: `x.gt.txt`."""
        stem, dot, _ = posixpath.basename(path).casefold().rpartition(".")
        while dot and stem not in self._folders_of:
            stem, dot, _ = stem.rpartition(".")
        return (stem if dot else posixpath.basename(path).casefold()) in self._folders_of

    def _names_half(self, path: str, head: bytes, named: set[str], others: Sequence[str]) -> bool:
        """Whether a file, or it and those next to it, name half of the images.

        Or, if it is large, whether half of its first lines name one; or whether it is JSON that
        names any, with annotations.
        """
        if named and path.lower().endswith(".json") and _ANNOTATIONS.search(head):
            return True
        if len(head) >= HEAD_BYTES:
            lines = head.splitlines()
            naming = sum(map(bool, map(self._named, lines)))
            if len(lines) > 1 and 2 * naming >= len(lines):
                return True
        for name in others[:_MAX_SIBLINGS] if named else ():
            if name != path and posixpath.dirname(name) == posixpath.dirname(path):
                named = named | self._named(self._tree.head(name))
        return len(named) > 1 and 2 * len(named) >= len(self._folders_of)

    def _repeats_folders(self, path: str, head: bytes, named: set[str]) -> bool:
        """Whether a list has the names of the images of one split, which folders show as well."""
        words = with_slashes(head.decode("utf-8", "replace")).split()
        split = split_word(posixpath.basename(path))
        if split is None or any(_stem(word) not in self._folders_of for word in words[:_MAX_WORDS]):
            return False
        folders = {folder for stem in named for folder in self._folders_of[stem]}
        return all(split in folder.casefold() for folder in folders)

    @staticmethod
    def _format_of(path: str, head: bytes) -> str | None:
        unread = recognise_annotations(path, head)
        if unread is not None:
            return f"{unread.name} not read; {unread.advice}"
        for name, suffixes in BOX_SUFFIXES.items():
            is_named = path.lower().endswith(suffixes[0])
            if is_named and FORMATS[name].box_format.is_format_of(path, head):
                return f"{name} not read"
        return None

    def _named(self, head: bytes) -> set[str]:
        """The stems of images that a file names."""
        text = with_slashes(head.decode("utf-8", "replace"))
        words = (match.group() for match in itertools.islice(_WORDS.finditer(text), _MAX_WORDS))
        return {
            stem
            for word in words
            if (stem := _stem(word)) in self._folders_of and not _may_be_anything(word)
        }

    @cached_property
    def _folders_of(self) -> Mapping[str, list[str]]:
        """The folders of the images with each stem."""
        folders: dict[str, list[str]] = {}
        for path, scan in self._tree.folders.items():
            for name in scan.images:
                folders.setdefault(_stem(name), []).append(path)
        return folders


def _may_be_anything(word: str) -> bool:
    """Whether a word is so short, or a number so small, that it names an image by chance."""
    return not has_image_name(word) and len(word) < (_LONG_NUMBER if word.isdecimal() else _LONG)


def _stem(path: str) -> str:
    name = posixpath.basename(path)
    return (posixpath.splitext(name)[0] if has_image_name(name) else name).casefold()


class _Concern(NamedTuple):
    """Something left behind that stops `pack`, and the paths that accept it.

    is_of_format: whether the format accepts it as well, if the caller chooses it.
    """

    text: str
    paths: Sequence[str]
    is_of_format: bool = False


def concerns_of(listing: Listing) -> list[str]:
    """What a listing leaves behind that stops `pack`, a sentence each."""
    return [concern.text for concern in _find_concerns(listing)]


def _find_concerns(listing: Listing) -> list[_Concern]:
    account = listing.account
    if account is None or (inspector := account.inspector) is None:
        return []
    left, read = account.left_out, _folders_of_read(account)
    concerns = [
        _Concern(line.describe(), _paths_of(line, read)) for line in left if line.kind in _LABELLED
    ]
    if not inspector.is_chosen and inspector.format in ("files", "folder"):
        others = [line for line in left if line.kind in _OTHERS and line.noun in _MAY_LABEL]
        is_bare = _are_bare(listing, inspector)
        concerns += [
            _Concern(line.describe(), _paths_of(line, read), is_bare)
            for line in others
            if is_bare or _are_named_like_images(line, account, inspector)
        ]
    classes = {name.casefold() for name in listing.class_names or () if name is not None}
    accounted = {*_LABELLED, Reason.REQUESTED}
    images = [line for line in left if line.noun == "image" and line.kind not in accounted]
    for line in images:
        folders = [folder for folder in line.folders if _is_labelled(folder, classes)]
        if folders and account.counted(Role.IMAGE):
            labelled = count(sum(line.folders[folder] for folder in folders), "labelled image")
            where = join_names(f"{folder}/" for folder in sorted(folders))
            concerns.append(_Concern(f"{labelled} not read, in {where}", sorted(folders)))
    accepted = _UNANNOTATED if inspector.is_chosen else ()
    unexplained = [line for line in images if line.kind in UNUSUAL and line.kind not in accepted]
    number = sum(line.file_count for line in unexplained)
    total = account.counted(Role.IMAGE) + sum(line.file_count for line in images)
    if not concerns and not are_few(number, total):
        concerns += [
            _Concern(line.describe(), _paths_of(line, read), line.kind in _UNANNOTATED)
            for line in unexplained
        ]
    return concerns


def _are_bare(listing: Listing, inspector: Inspector) -> bool:
    """Whether the images have neither classes nor anything else that a reading gives them."""
    return inspector.format == "files" and listing.class_names is None


def _are_named_like_images(line: AccountLine, account: Account, inspector: Inspector) -> bool:
    """Whether most files of a line have names of images, and are half as many as these."""
    named = sum(map(inspector.is_named_like_image, line.names))
    return 2 * line.file_count >= account.counted(Role.IMAGE) and 2 * named >= len(line.names)


def _folders_of_read(account: Account) -> set[str]:
    """The folders in which, or below which, files are read."""
    read = {""}
    for folder in account.read_in:
        while folder not in read:
            read.add(folder)
            folder = posixpath.dirname(folder)  # noqa: PLW2901
    return read


def _paths_of(line: AccountLine, read: Container[str]) -> list[str]:
    """The folders of a line in which nothing is read, and its files in others."""
    folders = [folder for folder in line.folders if folder not in read]
    names = [name for name in line.names if posixpath.dirname(name) in read]
    start = common_prefix(names)
    is_pattern = len(names) > _FEW and len(posixpath.basename(start)) >= _LONG
    return [*folders, *([f"{start}*"] if is_pattern and line.file_count == len(names) else names)]


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
    concerns = _find_concerns(listing)
    inspector = listing.account.inspector if listing.account is not None else None
    if inspector is None or not concerns:
        return
    problem = "this reading would leave out files that may be needed"
    paths = [*dict.fromkeys(path for concern in concerns for path in concern.paths)]
    typed = " ".join(option("leave_out", path) for path in paths[:_SHOWN])
    remedy = f"Choose another reading, or leave them out by name: {typed}"
    is_of_format = all(concern.is_of_format for concern in concerns)
    if is_of_format and _are_bare(listing, inspector):
        problem = "the images would have no labels, and nothing reads the files next to them"
        remedy = (
            "If these have labels, write a table with the name of an image in each row "
            f"({option('table')}). To pack the images alone, pass {option('format', 'files')}"
        )
    elif len(paths) > _SHOWN and is_of_format:
        way = option("format", inspector.format)
        remedy = f"Choose another reading, or pass {way} to leave them out"
    elif len(paths) > _SHOWN:
        remedy += " and so on"
    texts = [concern.text for concern in concerns]
    remedy = f"{remedy}.{_advice_on_lists(paths)}"
    raise SourceError(problem, texts, path=None, remedy=remedy, lists_problems=True)


def _advice_on_lists(paths: Sequence[str]) -> str:
    """How to use lists of splits that a reading leaves behind, such as `part-train.txt`."""
    names = [posixpath.basename(path) for path in paths if path.lower().endswith(".txt")]
    if len({*map(split_word, names)} - {None}) < 2:
        return ""
    return (
        " To use the splits of these lists, also write the columns name and split to a CSV file, "
        f"and pass {option('splits', '@splits.csv')}."
    )
