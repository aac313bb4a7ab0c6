"""What a folder contains, for the detector: names, listed once, and how some files begin."""

from __future__ import annotations

import heapq
import itertools
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

from recordsmith.dataset.names import INTERNAL_NAMES
from recordsmith.errors import FileAccessError, SourceError, option
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.stores import Location

_NAMES_KEPT = 1000
_FEWER_KEPT = 32
_KEPT_IN_ALL = 200_000
_SUFFIXES_KEPT = 50
_FOLDERS_KEPT = 20_000
HEAD_BYTES = 1 << 16
_NO_DIGITS = bytes(sorted(set(range(256)) - set(b"0123456789")))

HIGHEST_KEY = 1 << 32
"""Above every `sampling_key`."""


class Strength(IntEnum):
    """How much speaks for a reading. Only the strongest readings of a folder compete."""

    POSSIBLE = 0
    """Can be read like this, but nothing speaks for it: chosen only by a format or an option."""
    STRUCTURE = 1
    """Folders and names of images: class folders, images without classes."""
    ANNOTATED = 2
    """Annotations, masks or columns that fit the images."""
    MARKED = 3
    """A file that only this format has, such as `dataset_info.json` or `data.yaml`."""


@dataclass(frozen=True)
class Reading:
    """One way to read a folder: a source's format and its options, as `detect` takes them.

    what: a clause for people without a count: "images in image/, masks in label/".
    noun: what is counted: images, pairs, rows, records.
    left_out: paths in the folder that this reading does not read, such as "test/ (no labels)".
    files: the tables and lists that are read in addition to images. Another reading of such a file
        alone does not compete.
    problem: why the folder cannot be packed like this as it is, such as colours that need a table.
    remedy: what to do about the problem; with `option` for the names of options.
    needs: the options of which each solves the problem.
    hint: what else the folder shows, with the option that reads it.
    """

    format: str
    what: str
    strength: Strength
    options: Mapping[str, Any] = field(default_factory=dict)
    noun: str = "images"
    left_out: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""
    needs: tuple[str, ...] = ()
    hint: str = ""


def sampling_key(name: str) -> int:
    """A pseudorandom number that is the same for `x1.jpg`, `x1_mask.png` and `img_1.png`.

    Large folders are compared by the names with the smallest keys, so that the samples of two
    folders with the same names have the same names as well.
    """
    stem = os.path.splitext(name.replace("leftImg8bit", ""))[0]
    return zlib.crc32(stem.encode("utf-8", "surrogateescape").translate(None, _NO_DIGITS))


@dataclass
class SurveyedFolder:
    """The files directly in one folder.

    path: relative to the root with `/`, "" for the root itself.
    by_suffix: the names of files by suffix in lower case with its dot.
    names: of files, in order; of each suffix at most 1,000, those with the smallest sampling keys.
    suffixes: how many files have a suffix, in lower case with its dot.
    image_count: files with a suffix of images.
    highest_key: names of images with a sampling key above it may be left out of `names`.
    """

    path: str
    by_suffix: dict[str, list[str]] = field(default_factory=dict)
    suffixes: Counter[str] = field(default_factory=Counter)
    image_count: int = 0
    highest_key: int = HIGHEST_KEY

    @property
    def file_count(self) -> int:
        return self.suffixes.total()

    @cached_property
    def names(self) -> list[str]:
        return sorted(itertools.chain.from_iterable(self.by_suffix.values()))

    @cached_property
    def images(self) -> list[str]:
        """The known names of images."""
        known = (names for suffix, names in self.by_suffix.items() if suffix in IMAGE_SUFFIXES)
        return sorted(itertools.chain.from_iterable(known))

    def ending(self, endings: tuple[str, ...]) -> Iterator[str]:
        """Yield the known names with one of these endings in lower case, in order."""
        for suffix, names in sorted(self.by_suffix.items()):
            if any(end.endswith(suffix) or suffix.endswith(end) for end in endings):
                yield from (name for name in names if name.lower().endswith(endings))


class Survey:
    """The folders below a root, without hidden ones. Links to folders are followed.

    folders: by path, with all folders above them; those beyond the first 20,000 are left out.
    """

    def __init__(self, root: Location, most_folders: int = _FOLDERS_KEPT) -> None:
        """
        Raises:
            FileAccessError: the root cannot be read.
        """
        self.root = root
        self.folders: dict[str, SurveyedFolder] = {}
        self._kept = 0
        found: list[tuple[str, Location, tuple[str, ...]]] = [("", root, (root.identity,))]
        while found:
            path, location, above = found.pop()
            if len(self.folders) >= most_folders:
                break
            folder = self.folders[path] = SurveyedFolder(path)
            try:
                below = self._list(folder, location)
            except FileAccessError:
                if not path:
                    raise
                continue  # packing reports it
            head = f"{path}/" if path else ""
            for name in reversed(below):
                inner = location / name
                identity = inner.identity
                if identity not in above:
                    found.append((head + name, inner, (*above, identity)))

    def _list(self, folder: SurveyedFolder, location: Location) -> list[str]:
        """Add the files in a folder; returns the names of the folders in it."""
        cap = _NAMES_KEPT if self._kept < _KEPT_IN_ALL else _FEWER_KEPT
        if self._kept >= 5 * _KEPT_IN_ALL:
            cap = 0
        counts: defaultdict[str, int] = defaultdict(int)
        kept: dict[str, list[Any]] = {}
        below = []
        for entry in location.list_entries():
            name = entry.name
            if name[0] == "." or name in INTERNAL_NAMES:
                continue
            if entry.kind == "folder":
                below.append(name)
                continue
            if entry.kind == "special":
                continue
            dot = name.rfind(".")
            suffix = name[dot:].lower() if dot > 0 else ""
            counts[suffix] += 1
            number = counts[suffix]
            if number <= cap:
                if number > 1:
                    kept[suffix].append(name)
                elif len(kept) < _SUFFIXES_KEPT or suffix in IMAGE_SUFFIXES:
                    kept[suffix] = [name]
                else:
                    counts[suffix] = cap + 1  # too many different ones to keep their names
            elif suffix in kept:
                names = kept[suffix]
                if number == cap + 1:  # negated, so that the largest key is the first to go
                    names[:] = [(-sampling_key(each), each) for each in names]
                    heapq.heapify(names)
                item = -sampling_key(name), name
                if item > names[0]:
                    heapq.heapreplace(names, item)
        for suffix, names in kept.items():
            if counts[suffix] > cap:
                if suffix in IMAGE_SUFFIXES:
                    folder.highest_key = min(folder.highest_key, -names[0][0])
                folder.by_suffix[suffix] = sorted(name for _, name in names)
            else:
                folder.by_suffix[suffix] = sorted(names)
        folder.suffixes = Counter(counts)
        folder.image_count = sum(counts[suffix] for suffix in counts if suffix in IMAGE_SUFFIXES)
        self._kept += sum(map(len, folder.by_suffix.values()))
        return below

    def below(self, folder: str) -> Survey:
        """What a folder in the root contains, which is not listed again."""
        found = object.__new__(Survey)
        found.root, head = self.root / folder, f"{folder}/"
        found.folders = {
            path[len(head) :]: replace(each, path=path[len(head) :])
            for path, each in self.folders.items()
            if f"{path}/".startswith(head)
        }
        return found

    @cached_property
    def tops(self) -> list[str]:
        """The names of the folders in the root."""
        return self.inside("")

    @cached_property
    def _inside(self) -> Mapping[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.folders:
            if path:
                above, _, name = path.rpartition("/")
                found[above].append(name)
        return found

    def inside(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        return self._inside.get(folder, [])

    def files(self, *suffixes: str, depth: int | None = None) -> Iterator[str]:
        """Yield the known paths with one of these endings in lower case, the shallowest first."""
        for folder in sorted(self.folders.values(), key=lambda each: each.path.count("/")):
            if depth is None or (folder.path.count("/") + bool(folder.path)) <= depth:
                for name in folder.ending(suffixes):
                    yield f"{folder.path}/{name}" if folder.path else name

    def head(self, path: str) -> bytes:
        """The first 64 KiB of a file; empty if it cannot be read."""
        try:
            return (self.root / path).read(0, HEAD_BYTES)
        except FileAccessError:
            return b""

    @cached_property
    def image_counts(self) -> Mapping[str, int]:
        """The number of images in each folder and all folders below it."""
        counts = {path: folder.image_count for path, folder in self.folders.items()}
        for path in sorted(self.folders, key=lambda each: -each.count("/")):
            if path:
                counts[path.rpartition("/")[0]] += counts[path]
        return counts


def choose_reading(
    root: Location, readings: Sequence[Reading], given: Mapping[str, Any], or_else: str = ""
) -> Reading:
    """Choose the only reading of the highest strength.

    Args:
        readings: at least one, the likeliest first.
        given: options that are chosen already, which solve the problem of a reading.
        or_else: what else a user can do if there are several.

    Raises:
        SourceError: several have this strength, or the reading has a problem.
    """
    highest = max(reading.strength for reading in readings)
    strongest = [reading for reading in readings if reading.strength == highest]
    if len(strongest) > 1:
        ways = [f"{reading.what}: {typed_options(reading)}" for reading in strongest]
        raise SourceError(
            f"the folder can be read in {len(ways)} ways",
            ways,
            path=root,
            remedy=f"Choose one with its options{or_else}.",
            lists_problems=True,
        )
    (reading,) = strongest
    if reading.problem and given.keys().isdisjoint(reading.needs):
        raise SourceError(f"{reading.what}: {reading.problem}", path=root, remedy=reading.remedy)
    return reading


def typed_options(reading: Reading) -> str:
    """The format and the options of a reading, for messages."""
    options = {"format": reading.format, **reading.options}
    return " ".join(option(name, value) for name, value in options.items())
