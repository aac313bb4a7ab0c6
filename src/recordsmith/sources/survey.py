"""What a folder contains, for the detector: names, and the beginnings of some files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

from recordsmith.errors import FileAccessError
from recordsmith.sources.files.folders import walk_files
from recordsmith.sources.files.images import has_image_name
from recordsmith.stores import Location

_NAMES_KEPT = 1000
_FOLDERS_KEPT = 20_000
_HEAD_BYTES = 1 << 16


class Strength(IntEnum):
    """How much speaks for a reading. Only the strongest readings of a folder compete."""

    STRUCTURE = 1
    """Folders and names of images: class folders, images without classes."""
    ANNOTATED = 2
    """Annotations, masks or columns that fit the images."""
    MARKED = 3
    """A file that only this format has, such as `dataset_info.json` or `data.yaml`."""


@dataclass(frozen=True)
class Reading:
    """One way to read a folder: a source's format and its options, as `make_source` takes them.

    what: a clause for people without a count: "images in image/, masks in label/".
    noun: what is counted: images, pairs, rows, records.
    left_out: paths in the folder that this reading does not read, such as "test/ (no labels)".
    """

    format: str
    what: str
    strength: Strength
    options: Mapping[str, Any] = field(default_factory=dict)
    noun: str = "images"
    left_out: tuple[str, ...] = ()


@dataclass
class SurveyedFolder:
    """The files directly in one folder.

    path: relative to the root with `/`, "" for the root itself.
    names: of files, the first 1,000 in order.
    suffixes: how many files have a suffix, in lower case with its dot.
    """

    path: str
    names: list[str] = field(default_factory=list)
    suffixes: Counter[str] = field(default_factory=Counter)
    image_count: int = 0

    @property
    def file_count(self) -> int:
        return self.suffixes.total()


class Survey:
    """The folders below a root, without hidden ones.

    folders: by path, with all folders above them; those beyond the first 20,000 are left out.
    is_partial: whether folders were left out.
    """

    def __init__(self, root: Location) -> None:
        """
        Raises:
            FileAccessError: a folder cannot be read.
        """
        self.root = root
        self.folders: dict[str, SurveyedFolder] = {"": SurveyedFolder("")}
        self.is_partial = False
        for path, _, _entry in walk_files(root, []):
            folder, _, name = path.rpartition("/")
            found = self._folder(folder)
            if found is None:
                self.is_partial = True
                continue
            if len(found.names) < _NAMES_KEPT:
                found.names.append(name)
            found.suffixes[os.path.splitext(name)[1].lower()] += 1
            found.image_count += has_image_name(name)

    def _folder(self, path: str) -> SurveyedFolder | None:
        found = self.folders.get(path)
        if found is None and len(self.folders) < _FOLDERS_KEPT:
            parent = path.rpartition("/")[0]
            if path != parent:
                self._folder(parent)
            found = self.folders[path] = SurveyedFolder(path)
        return found

    @cached_property
    def tops(self) -> list[str]:
        """The names of the folders in the root."""
        return self.inside("")

    def inside(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        prefix = f"{folder}/" if folder else ""
        return [
            path[len(prefix) :]
            for path in self.folders
            if path and path.startswith(prefix) and "/" not in path[len(prefix) :]
        ]

    def files(self, *suffixes: str, depth: int | None = None) -> Iterator[str]:
        """Yield the known paths with one of these endings in lower case, the shallowest first."""
        for folder in sorted(self.folders.values(), key=lambda each: each.path.count("/")):
            if depth is None or (folder.path.count("/") + bool(folder.path)) <= depth:
                for name in folder.names:
                    if name.lower().endswith(suffixes):
                        yield f"{folder.path}/{name}" if folder.path else name

    def head(self, path: str) -> bytes:
        """The first 64 KiB of a file; empty if it cannot be read."""
        try:
            return (self.root / path).read(0, _HEAD_BYTES)
        except FileAccessError:
            return b""
