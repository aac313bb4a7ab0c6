"""Samples of annotated pictures: what a listing keeps of each, and how its picture is read.

An entry knows where its picture is and what was changed to find it; or why it cannot be read, which
reading it says with file and line, so that packing reports it like any other bad sample.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from recordsmith.errors import SourceError
from recordsmith.sources.contract import Note, Sample
from recordsmith.sources.file_index import FileIndex, Found
from recordsmith.sources.pictures import read_picture
from recordsmith.sources.versions import version_of_times

Annotation = TypeVar("Annotation")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Annotation]):
    """One sample.

    picture: its path, relative to the root; where there is none, a name for the sample.
    annotation: what tells its objects; None if nothing does.
    notes: what reading it says, and where.
    problem: why it cannot be read, with its place.
    """

    picture: str
    annotation: Annotation | None = None
    notes: tuple[tuple[str, str], ...] = ()
    problem: str | None = None

    def read_picture(self, root: Path, note: Note) -> dict[str, Any]:
        """The features of its picture.

        Raises:
            SourceError: it has a problem.
            CorruptDataError: unreadable-image.
            FileAccessError: it cannot be read.
        """
        if self.problem is not None:
            raise SourceError(self.problem)
        for what, where in self.notes:
            note(what, where)
        return read_picture(os.path.join(root, self.picture), self.picture)


def notes_of(found: Found, name: str, place: str) -> tuple[tuple[str, str], ...]:
    """What is to be said of a picture that was found in another way than it is named.

    Args:
        name: what the annotation calls it.
        place: of the annotation.
    """
    if found.change is None:
        return ()
    return ((found.change, f"{place}: {name!r}, taken: {found.path}"),)


def samples_of(
    entries: Mapping[str, Entry[Annotation]],
    splits: Mapping[str, str],
    index: FileIndex,
    time_of: Callable[[Annotation], int],
) -> tuple[Sample, ...]:
    """The samples of a listing, by name.

    Args:
        entries: by the names of the samples.
        splits: of those that have one, by the same names.
        time_of: when an annotation was changed last.
    """
    samples = []
    for name, entry in sorted(entries.items()):
        size, time = index.size_and_time(entry.picture)
        changed = 0 if entry.annotation is None else time_of(entry.annotation)
        version = version_of_times((time, changed))
        samples.append(Sample(name, size, split=splits.get(name), version=version))
    return tuple(samples)
