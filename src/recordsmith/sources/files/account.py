"""The account of a source: every file of its folder, read as what, or left out and why.

A source reports what it reads and what it leaves out for reasons of its own. `finish` compares
that with the files that the detector counted: what no one reported is left out, by its name. So a
new source cannot lose a file unseen.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import (
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from enum import StrEnum
from posixpath import splitext
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from recordsmith.dataset import is_split_name
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.known_names import (
    DATA_SUFFIXES,
    is_document,
    is_submission,
    is_table_name,
)
from recordsmith.sources.files.paths import join_path
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.support.words import count

_KEPT_NAMES = 100  # of a line
_KEPT_FOLDERS = 1000  # of a line; the files of others are counted together
_FEW = 0.1
_MAX_OPENED = 20
_MAX_OF_LINE = 8  # files opened of one line
_SHOWN = 3
_UNLABELLED = frozenset(("pred", "predict", "prediction", "predictions", "unlabelled", "unlabeled"))


class Role(StrEnum):
    """What a file is read as."""

    IMAGE = "image"
    MASK = "mask"
    ANNOTATION = "annotation"
    CAPTIONS = "file of captions"
    LIST = "list of names"
    CLASS_NAMES = "file of class names"
    TABLE = "table"
    ARRAY = "array file"
    RECORDS = "file of records"
    DESCRIPTION = "description file"

    def __str__(self) -> str:
        return self.value


class Reason(StrEnum):
    """Why files are left out."""

    HIDDEN = "hidden"
    LINK = "links to folders, not followed"
    REQUESTED = "left out as asked"
    DOCUMENT = "documentation or programs"
    UNLABELLED_SPLIT = "a split without labels"
    UNLISTED = "not in the lists of the dataset"
    OTHER_TASK = "of another task"
    SUBMISSION = "a sample submission"
    RENDERED = "drawn from the masks that are read"
    OTHER_FILE = "not images"
    OTHER_READING = "outside what is read"
    NO_ANNOTATION = "without an annotation"
    NO_IMAGE = "annotations without an image"
    UNREAD_ANNOTATIONS = "annotations that are not read"
    NAMES_IMAGES = "names of images that are not read"
    LABELLED = "labelled data that are not read"

    def __str__(self) -> str:
        return self.value


UNUSUAL: frozenset[Role | Reason] = frozenset(
    (
        *(Reason.OTHER_READING, Reason.NO_ANNOTATION, Reason.NO_IMAGE, Reason.LABELLED),
        *(Reason.UNREAD_ANNOTATIONS, Reason.NAMES_IMAGES),
    )
)
"""Reasons that stop `pack` where much is left out, or labelled data are."""

Kind: TypeAlias = Role | Reason


@dataclass
class AccountLine:
    """Some files of a source with one role, or left out for one reason.

    kind: what they are read as, or why they are left out.
    noun: what one of them is, such as "image".
    what: what is said of them in a notice, such as "outside class folders skipped".
    file_count: how many they are.
    folders: how many are in each folder, relative to the source; at most 1,000 folders.
    names: the first paths, relative to the source; at most 100.
    check: what `lint` reports them as.
    """

    kind: Kind
    noun: str = "file"
    what: str = ""
    file_count: int = 0
    folders: Counter[str] = field(default_factory=Counter)
    names: list[str] = field(default_factory=list)
    check: Check = Check.SKIPPED

    @property
    def is_read(self) -> bool:
        return isinstance(self.kind, Role)

    def add(self, folder: str, number: int, names: Iterable[str]) -> None:
        """Add files of a folder, of which some names are known."""
        self.file_count += number
        if number and (folder in self.folders or len(self.folders) < _KEPT_FOLDERS):
            self.folders[folder] += number
        room = _KEPT_NAMES - len(self.names)
        if room > 0:
            self.names += [name for name, _ in zip(names, range(room), strict=False)]

    def merge(self, other: AccountLine) -> None:
        self.file_count += other.file_count
        self.folders.update(other.folders)
        self.add("", 0, other.names)

    def describe(self) -> str:
        """The line for people: "8 images in a/ and b/", "2 documents skipped: a.md and b.pdf"."""
        number = count(self.file_count, self.noun, _plural(self.noun))
        if self.is_read:
            folders = [f"{name}/" if name else "the folder itself" for name in +self.folders]
            return f"{number} in {_first_of(folders, len(folders))}"
        text = " ".join(filter(None, (number, self.what)))
        return f"{text}: {_first_of(self.names, self.file_count)}" if self.names else text

    def notice(self) -> Flaw:
        """The line as a notice, for reports and `lint`."""
        flaw = Flaw(self.describe(), self.check, files=self.names, item_count=self.file_count)
        flaw.found = " ".join(filter(None, (self.noun, self.what)))  # of each file
        return flaw

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: counts by folder, and the first names."""
        return {
            "read_as" if self.is_read else "left_out": str(self.kind),
            "noun": self.noun,
            "files": self.file_count,
            "folders": dict(self.folders.most_common(20)),
            "first": self.names[:5],
            "what" if self.is_read else "notice": self.describe(),
        }


class LeftFor(NamedTuple):
    """Why a file is left out, what it is, and what a notice says of it."""

    reason: Reason
    noun: str
    what: str


class Inspector(Protocol):
    """Opens files that a reading leaves out.

    format: that of the reading.
    is_chosen: whether the caller chose this format.
    """

    format: str
    is_chosen: bool

    def recognise(self, path: str, others: Sequence[str]) -> LeftFor | None:
        """Why a file should not be left out; None if it may be. `others` are left out as well."""
        ...

    def is_named_like_image(self, path: str) -> bool:
        """Whether a file that is no image has the name of one, up to a point: `x.gt.txt`."""
        ...


class Account:
    """What became of the files of a source; a source adds to it while it lists them.

    requested: the patterns of files that the caller leaves out.
    inspector: what has opened files that are left out, as the detector asks; else None.
    """

    def __init__(
        self,
        requested: Sequence[str] = (),
        explained: Mapping[str, tuple[Reason, str]] = MappingProxyType({}),
    ) -> None:
        """`explained`: why some files and folders are left out; see `LayoutCandidate`."""
        self.requested = tuple(requested)
        self.explained = dict(explained)
        self._lines: dict[tuple[Any, ...], AccountLine] = {}
        self._of_folder: Counter[str] = Counter()
        self.read_in: set[str] = set()  # the folders that contain files that are read
        self._left: set[str] = set()
        self._known: list[Collection[str]] = [self._left]  # few, as each is searched
        self._links: list[str] = []
        self.inspector: Inspector | None = None

    def __iter__(self) -> Iterator[AccountLine]:
        """The lines: first what is read, then what is left out."""
        return iter(sorted(self._lines.values(), key=lambda line: not line.is_read))

    def __contains__(self, path: str) -> bool:
        """Whether a file was added by its path."""
        return any(path in known for known in self._known)

    def is_read(self, path: str) -> bool:
        """Whether a file was added by its path as one that is read."""
        return any(path in known for known in self._known if known is not self._left)

    @property
    def file_count(self) -> int:
        return self._of_folder.total()

    @property
    def left_out(self) -> list[AccountLine]:
        return [line for line in self if not line.is_read]

    def counted(self, kind: Kind) -> int:
        """How many files have a role or a reason."""
        return sum(line.file_count for line in self._lines.values() if line.kind is kind)

    def read(self, role: Role, paths: Collection[str]) -> None:
        """Add files that are read, by their paths relative to the source."""
        if paths:
            self._known.append(paths if isinstance(paths, (set, dict)) else frozenset(paths))
            self.read_in.update(path.rpartition("/")[0] for path in paths)
            self._add(self._line(role, str(role)), paths)

    def read_folders(
        self, role: Role, numbers: Mapping[str, int], above: str = "", names: Sequence[str] = ()
    ) -> None:
        """Add files of folders below `above` that are read; the first of their paths are known."""
        line = self._line(role, str(role))
        for folder, number in numbers.items():
            path = join_path(above, folder)
            line.add(path, number, ())
            self._of_folder[path] += number
            if number:
                self.read_in.add(path)
        line.add("", 0, itertools.islice(names, _KEPT_NAMES))

    def leave(
        self,
        reason: Reason,
        paths: Iterable[str],
        noun: str = "file",
        what: str = "",
        check: Check = Check.SKIPPED,
    ) -> None:
        """Add files that are left out.

        Args:
            noun: what one of them is.
            what: what a notice says of them; empty for the reason.
            check: what `lint` reports them as.
        """
        paths = list(paths)
        if paths:
            self._left.update(paths)
            self._add(self._line(reason, noun, what, check), paths)
            if reason is Reason.LINK:
                self._links += paths

    def leave_samples(self, names: Iterable[str], what: str) -> list[str]:
        """Move images that were added as read to those that are left out; return their names."""
        images = next((line for line in self._lines.values() if line.kind is Role.IMAGE), None)
        moved = []
        for name in names:
            folder = name.rpartition("/")[0]
            if images is not None and images.folders[folder] > 0:
                images.file_count -= 1
                images.folders[folder] -= 1
                self._line(Reason.REQUESTED, "image", what).add(folder, 1, (name,))
                moved.append(name)
        return moved

    def leave_unreadable(self, paths: Iterable[str], *, is_hidden: bool) -> None:
        """Add hidden files, or else pipes and devices, that were not added before."""
        reason, noun, what = (
            (Reason.HIDDEN, "hidden file", "")
            if is_hidden
            else (Reason.OTHER_FILE, "special file", "skipped (pipes or devices)")
        )
        self.leave(reason, [path for path in paths if path not in self], noun, what)

    def leave_other(self, path: str, where: str = "", splits: Container[str] = ()) -> None:
        """Add a file that no rule of a source explains: the detector does, or its name decides.

        Args:
            where: of images: where they are, such as "outside class folders".
            splits: folders that are read as splits: other images in them are not those of a split
                without labels.
        """
        reason, noun = reason_of_name(path)
        if reason is Reason.UNLABELLED_SPLIT and path.rpartition("/")[0] in splits:
            reason = Reason.OTHER_READING
        reason, why = self._explanation(path) or (reason, where if noun == "image" else "")
        is_table = noun == "table" and reason is Reason.OTHER_FILE
        hint = " (to pack one, pass its path)" if is_table else ""
        what = f"{why} skipped{hint}".lstrip() if why or hint else ""
        folder = path.rpartition("/")[0]
        suffix = splitext(path)[1].lower() if noun == "data file" else ""
        self._line(reason, noun, what, suffix=suffix).add(folder, 1, (path,))
        self._of_folder[folder] += 1

    def _explanation(self, path: str) -> tuple[Reason, str] | None:
        """Why a file or a folder above it is left out, if that is known."""
        if not self.explained:
            return None
        ends = (place + 1 for place, letter in enumerate(path) if letter == "/")
        paths = (path, *(path[:end] for end in ends))
        return next(filter(None, map(self.explained.get, paths)), None)

    def _add(self, line: AccountLine, paths: Collection[str]) -> None:
        ordered = sorted(paths) if isinstance(paths, (set, frozenset)) else paths
        of_folder = Counter(path.rpartition("/")[0] for path in ordered)
        for folder, number in of_folder.items():
            line.add(folder, number, ())
        line.add("", 0, itertools.islice(ordered, _KEPT_NAMES))
        self._of_folder.update(of_folder)

    def others(self, paths: Iterable[str]) -> list[str]:
        """Those of some files that were not added by their paths, in order."""
        return sorted(set(paths).difference(*self._known))

    def _line(
        self,
        kind: Kind,
        noun: str,
        what: str = "",
        check: Check = Check.SKIPPED,
        suffix: str = "",
    ) -> AccountLine:
        what = what or ("" if isinstance(kind, Role) else _WHAT.get(kind, f"skipped ({kind})"))
        key = kind, noun, what, suffix
        if key not in self._lines:
            self._lines[key] = AccountLine(kind, noun, what, check=check)
        return self._lines[key]

    def finish(self, folders: Iterable[tuple[str, int, Iterable[str]]]) -> None:
        """Add what no one reported, so that the account has every file that was counted.

        folders: path, number of files, and the known names, of each folder.
        """
        for folder, number, names in folders:
            missing = number - self._of_folder[folder]
            if missing <= 0 or any(f"{folder}/".startswith(f"{link}/") for link in self._links):
                continue
            head = f"{folder}/" if folder else ""
            for name in names:
                path = head + name
                if missing and path not in self:
                    self.leave_other(path)
                    missing -= 1
            if missing:  # of a folder too large to keep its names
                self._line(Reason.OTHER_FILE, "file").add(folder, missing, ())
                self._of_folder[folder] += missing

    def inspect(self, inspector: Inspector) -> None:
        """Open some files that are left out for no good reason, and say what they are."""
        room = _MAX_OPENED
        self.inspector = inspector
        for key, line in [*self._lines.items()]:
            if line.kind not in (Reason.OTHER_FILE, Reason.OTHER_READING) or line.noun not in (
                "table",
                "data file",
            ):
                continue
            opened = line.names[: min(room, _MAX_OF_LINE)]
            room -= len(opened)
            known = {
                path: left
                for path in opened
                if (left := inspector.recognise(path, opened)) is not None
            }
            if len(known) == len(opened) < line.file_count and len({*known.values()}) == 1:
                left = known.popitem()[1]  # what all of the first ones are, the others are
                named = self._line(*left)
                named.merge(self._lines.pop(key))
                continue
            for path, left in known.items():
                self._move(key, path, left)

    def _move(self, key: tuple[Any, ...], path: str, left: LeftFor) -> None:
        line, folder = self._lines[key], path.rpartition("/")[0]
        line.names.remove(path)
        line.file_count -= 1
        line.folders[folder] -= 1
        self._line(*left).add(folder, 1, (path,))
        if not line.file_count:
            del self._lines[key]

    def notices(self) -> list[Flaw]:
        return [line.notice() for line in self.left_out]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: the number of files, and what is read and left out."""
        return {
            "files": self.file_count,
            "read": [line.to_json() for line in self if line.is_read],
            "left_out": [line.to_json() for line in self.left_out],
        }


_WHAT = {Reason.LINK: "not followed"} | dict.fromkeys(
    (Reason.HIDDEN, Reason.DOCUMENT, Reason.OTHER_FILE, Reason.OTHER_READING), "skipped"
)


def reason_of_name(path: str) -> tuple[Reason, str]:
    """Why a file that no source reads is left out, and what it is."""
    if has_image_name(path):
        is_test = any(map(_is_test_folder, path.split("/")[:-1]))
        return Reason.UNLABELLED_SPLIT if is_test else Reason.OTHER_READING, "image"
    if is_document(path):
        return Reason.DOCUMENT, "document"
    if is_table_name(path):
        return Reason.SUBMISSION if is_submission(path) else Reason.OTHER_FILE, "table"
    name = path.rpartition("/")[2]
    is_data = path.lower().endswith(DATA_SUFFIXES) or "." not in name
    return Reason.OTHER_FILE, "data file" if is_data else "file"


def _is_test_folder(name: str) -> bool:
    """Whether a folder is named like a split that is not for training: `test1`, `test_images`."""
    words = re.findall("[a-z]+", name.lower())
    return any(
        (is_split_name(word) and not word.startswith("train")) or word in _UNLABELLED
        for word in words
    )


def are_few(number: int, total: int) -> bool:
    """Whether some images are so few that a reading may leave them out: one, or a tenth."""
    return number <= max(1, _FEW * total)


def _first_of(names: Sequence[str], number: int) -> str:
    """The first of some names, of which there are `number`: "a, b, c and 4 more"."""
    more = [f"{number - _SHOWN:,} more"] if number > _SHOWN else []
    *first, last = [*names[:_SHOWN], *more]
    return f"{', '.join(first)} and {last}" if first else last


def _plural(noun: str) -> str:
    """images, lists of names, links to folders."""
    head, joint, rest = noun.partition(" of ")
    return "links to folders" if noun == "link to a folder" else f"{head}s{joint}{rest}"
