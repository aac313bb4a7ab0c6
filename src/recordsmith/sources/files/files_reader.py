"""Readers of samples that share a few large files: tables, archives, shards, arrays.

A reference names a file, which the reader opens once, or has from the listing.
"""

from __future__ import annotations

import os
import posixpath
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

from recordsmith.sources.files.paths import object_version
from recordsmith.sources.samples import Sample, StoredReader, unlisted_error
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError

_Opened = TypeVar("_Opened")


@dataclass(frozen=True)
class FilesReader(StoredReader, Generic[_Opened]):
    """Reads samples whose references have a `file`.

    A file is opened at first use, in one thread; the process that listed the samples passes the
    files that it has opened. Elsewhere, a file must still be the version that was listed.

    root: the folder that contains the files.
    files: the name of each, relative to the root, and its version number.
    """

    root: Location
    files: tuple[tuple[str, int], ...]
    _opened: dict[str, _Opened] = field(default_factory=dict, init=False, repr=False, compare=False)
    _lock: Any = field(default_factory=threading.RLock, init=False, repr=False, compare=False)

    def having(self, opened: Mapping[str, _Opened]) -> Self:
        """Use files that are open already, by name; return this reader."""
        self._opened.update(opened)
        return self

    def opened(self, sample: Sample) -> tuple[_Opened, Mapping[str, Any]]:
        """The open file that contains a sample of a listing, and the reference of the sample."""
        reference = sample.reference or {}
        try:
            return self.file(reference["file"]), reference
        except KeyError:
            raise unlisted_error(sample) from None

    def file(self, name: str) -> _Opened:
        """An open file; KeyError if it is not one of the files."""
        known = self._opened
        if name not in known:
            if name not in dict(self.files):
                raise KeyError(name)
            with self._lock:
                if name not in known:
                    known.update(self._open(name))
        return known[name]

    @abstractmethod
    def _open(self, name: str) -> Mapping[str, _Opened]:
        """Open a file, or several files together; returns them by name."""

    def checked(self, name: str) -> Location:
        """The place of a file; an error if it has changed."""
        location = self.root / name
        if object_version(location) != dict(self.files)[name]:
            raise SourceError(
                "the file changed since its samples were listed",
                path=location,
                remedy="List the source again.",
            )
        return location


def versions_of(root: Location, names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """The files of a reader: names with version numbers."""
    return tuple((name, object_version(root / name)) for name in names)


def below_common_folder(places: Sequence[Location]) -> tuple[Location, list[str]]:
    """The folder that contains some files, and the name of each relative to it."""
    absolute = [place.absolute() for place in places]
    folder = os.path.commonpath([posixpath.dirname(place.key) for place in absolute])
    head = f"{folder}/" if folder else ""
    return Location(absolute[0].store, folder), [place.key.removeprefix(head) for place in absolute]
