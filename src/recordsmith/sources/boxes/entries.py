"""Samples of annotated images: what a listing keeps of each, and how its image is read.

A sample whose image is missing stays in the listing and fails when it is read, so that packing
reports it like any other bad sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from recordsmith.sources.files.file_index import FileIndex, Found
from recordsmith.sources.files.images import read_image
from recordsmith.sources.files.versions import common_version
from recordsmith.sources.problems import Fault
from recordsmith.sources.source import Note, Sample
from recordsmith.stores import Location

Annotation = TypeVar("Annotation")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Annotation]):
    """One sample.

    image: its path, relative to the root; a name for the sample if the image is missing.
    annotation: where its objects are; None without annotations.
    notes: (what, where) for each note to make when it is read.
    fault: why it cannot be read.
    """

    image: str
    annotation: Annotation | None = None
    notes: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None

    def read_image(self, root: Location, note: Note) -> dict[str, Any]:
        """Read the image and return its features.

        Raises:
            SourceError: the sample has a fault.
            CorruptDataError: unreadable-image.
            FileAccessError: the image cannot be read.
        """
        if self.fault is not None:
            raise self.fault.error()
        for what, where in self.notes:
            note(what, where)
        return read_image(root / self.image, self.image)


def path_notes(found: Found, name: str, place: str) -> tuple[tuple[str, str], ...]:
    """The notes for an image that was not found under the exact name in its annotation.

    Args:
        name: the name in the annotation.
        place: of the annotation.
    """
    if found.change is None:
        return ()
    return ((found.change, f"{place}: {name!r}, used {found.path}"),)


def make_samples(
    entries: Mapping[str, Entry[Annotation]],
    splits: Mapping[str, str],
    index: FileIndex,
    version_of: Callable[[Annotation], int],
) -> tuple[Sample, ...]:
    """The samples of a listing, sorted by name.

    Args:
        entries: by sample name.
        splits: by sample name, for the samples that have one.
        version_of: returns the version number of an annotation.
    """
    samples = []
    for name, entry in sorted(entries.items()):
        size, image = index.size_and_version(entry.image)
        annotation = 0 if entry.annotation is None else version_of(entry.annotation)
        version = common_version((image, annotation))
        samples.append(Sample(name, size, split=splits.get(name), version=version))
    return tuple(samples)
