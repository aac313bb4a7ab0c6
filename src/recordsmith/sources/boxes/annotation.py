"""What all formats of annotated images have in common: images, objects, files, and the registry.

A format is one module in `formats`: a function `parse` that yields the images of an annotation
file, how such files begin, and the source that uses both.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec

from recordsmith.errors import Problems, SourceError
from recordsmith.example import Kind
from recordsmith.sources.problems import Fault
from recordsmith.sources.source import Note, ignore_note
from recordsmith.stores import Location

Corners: TypeAlias = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax, in the units of a frame."""

MAX_VALUE_BYTES = 1 << 16
"""Larger annotations are not part of a reference, which has their place instead."""

MAX_OBJECTS = 100_000
"""Of an image: each takes some hundred bytes until its record is written."""


class AnnotatedObject(NamedTuple):
    """One object on an image.

    where: in its file: "line 17".
    name: its class; None if it is unknown, which `fault` explains.
    corners: xmin, ymin, xmax, ymax in the units of the annotation; NaN for an invalid number.
    outline: polygons or run lengths, see `rasterize`; "box" if it is the box; or a function that
        returns one of these.
    extra: the values of `BoxFormat.features`.
    fault: why it cannot be read at all.
    """

    where: str
    name: str | None
    corners: Corners = (0, 0, 0, 0)
    outline: Any = None
    extra: Sequence[Any] = ()
    fault: str = ""

    def place_in(self, file: str) -> str:
        """Where it is, for messages: "a.xml, line 17 (cat)"."""
        name = f" ({self.name})" if self.name and not self.fault else ""
        return f"{file}, {self.where}{name}"


class AnnotatedImage(NamedTuple):
    """One image in an annotation file.

    where: in the file: "image 17"; empty in a file about one image.
    file_name: of the image, as the file has it.
    size: width and height of the image that the objects were drawn on, 0 if unknown; None for
        coordinates that are relative to its sides.
    spans: line, start and end of each part of the file about the image. `parse` reads the objects
        from these parts again, so that none are kept; None if the listing keeps the objects, or if
        the whole file is about the image.
    id: of the image, for `image/source_id`.
    split: its split, if the file has splits.
    """

    where: str = ""
    file_name: str = ""
    size: tuple[float, float] | None = (0, 0)
    objects: Sequence[AnnotatedObject] = ()
    spans: array[int] | None = None
    id: Any = None
    split: str = ""


WHOLE_FILE = AnnotatedImage()
"""An image whose annotation is a file that was not parsed."""


@dataclass(eq=False)
class AnnotationFile:
    """An annotation file, or the parts of it about one image, for `parse`.

    name: its path relative to the root, for messages.
    texts, spans: the parts, with their first lines, or where they are; None for the whole file.
    with_outlines: whether outlines of objects are needed.
    note: called for what is left out.
    context: what parsing parts needs to know of the whole file, in JSON values; set by `parse`.
    class_names: of its objects, in order; set by `parse`, except those of `objects`.
    uses_category_0: whether an object has the category id 0, which may be the background; set by
        `parse`.
    problems, notices: what is wrong outside of objects, and what is left out; set by `parse`.
    """

    location: Location
    name: str
    version: int = 0
    texts: Sequence[tuple[int, str]] | None = None
    spans: Sequence[tuple[int, int, int]] | None = None
    with_outlines: bool = False
    note: Note = ignore_note
    context: Any = None
    class_names: dict[str, Any] = field(default_factory=dict)
    uses_category_0: bool = False
    problems: Problems = field(default_factory=Problems)
    notices: list[str] = field(default_factory=list)

    @property
    def is_part(self) -> bool:
        """Whether only the parts about one image are parsed."""
        return self.texts is not None or self.spans is not None

    @cached_property
    def data(self) -> bytes:
        """All bytes, which stay in memory."""
        return self.location.read()

    def read(self, start: int, stop: int) -> bytes:
        """Some bytes of the file."""
        if "data" in vars(self):
            return self.data[start:stop]
        return self.location.read(start, stop)

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """Yield the first line and the bytes of each part."""
        for line, text in self.texts or ():
            yield line, text.encode()
        for line, start, stop in self.spans or ():
            yield line, self.read(start, stop)


@dataclass(frozen=True)
class BoxFormat:
    """A format of annotated images.

    suffix: of its annotation files, in lower case.
    matches: whether a file begins like one of this format.
    parse: yields the images of a file; raises SourceError with the line of what is invalid. Sets
        context, class_names, uses_category_0, problems and notices of the file, which are complete
        when it is exhausted.
    what: how a folder in this format is described, with {} for the files.
    expected: the files of this format, for the error if there are none.
    file_what: how a single file is described, if it may be the source.
    file_suffixes: those of such files.
    owns_suffixes: whether every file with one of these suffixes is of this format.
    has_outlines: whether objects can have masks.
    features: the features that it adds to those of all boxes, and their kinds.
    without_outlines: shortens a part where outlines are not needed.
    """

    name: str
    suffix: str
    matches: Callable[[bytes], bool]
    parse: Callable[[AnnotationFile], Iterable[AnnotatedImage]]
    what: str
    expected: str
    file_what: str = ""
    file_suffixes: tuple[str, ...] = ()
    owns_suffixes: bool = False
    has_outlines: bool = True
    features: Mapping[str, Kind] = field(default_factory=dict)
    without_outlines: Callable[[bytes], bytes] | None = None


FORMATS: dict[str, BoxFormat] = {}
"""By name; each is registered with its source."""


@dataclass(slots=True)
class Entry:
    """One sample: an image, and what a listing keeps of its annotation.

    image: its path, relative to the root; a name for the sample if the image is missing.
    place: the path of the annotation file, relative to the root; empty without one.
    annotated: without its objects.
    objects: as JSON, where NaN is null, if the listing has parsed them and they are small.
    file: if it is about several images.
    notes: (what, where) for each note to make when it is read.
    fault: why it cannot be read.
    """

    image: str
    place: str = ""
    version: int = 0
    annotated: AnnotatedImage = WHOLE_FILE
    objects: bytes = b""
    file: AnnotationFile | None = None
    notes: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None

    def reference(self, box_format: BoxFormat, root: Location) -> dict[str, Any]:
        """The objects in JSON values, or their place in the file if they are large."""
        if self.fault is not None:
            return {"fault": self.fault.to_json()}
        reference: dict[str, Any] = {"notes": [*map(list, self.notes)]} if self.notes else {}
        if not self.place:
            return reference
        reference["place"] = self.place
        spans, size = self.annotated.spans, self.annotated.size
        if self.annotated.id is not None:
            reference["id"] = self.annotated.id
        reference_size = {"size": size and list(size)}
        if self.objects:
            return reference | reference_size | {"objects": msgspec.json.decode(self.objects)}
        if self.file is None or spans is None:
            return reference
        if not root.contains(self.file.location):
            reference["file"] = str(self.file.location.absolute())
        triples = [*map(list, zip(spans[::3], spans[1::3], spans[2::3], strict=True))]
        in_file = reference | reference_size | {"spans": triples}
        if sum(stop - start for _, start, stop in triples) > MAX_VALUE_BYTES:
            return in_file
        shorten = None if self.file.with_outlines else box_format.without_outlines
        texts = []
        try:
            for line, start, stop in triples:
                data = self.file.read(start, stop)
                texts.append([line, (shorten(data) if shorten else data).decode()])
        except ValueError:  # not UTF-8, or changed since it was listed: the reader reports it
            return in_file
        return reference | reference_size | {"texts": texts}


def to_float(text: object) -> float:
    """A number from an annotation; NaN if it is invalid."""
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def parse_objects(
    box_format: BoxFormat, file: AnnotationFile, size: tuple[float, float] | None = (0, 0)
) -> tuple[tuple[float, float] | None, list[AnnotatedObject]]:
    """The size and the objects of the image that a file, or its parts, are about."""
    objects: list[AnnotatedObject] = []
    is_empty = file.is_part and not (file.texts or file.spans)
    image = WHOLE_FILE if is_empty else None
    try:
        for image in box_format.parse(file):
            objects += image.objects
            if len(objects) > MAX_OBJECTS:
                break
    except ValueError:
        if not file.is_part:
            raise
        image = None  # the parts were valid when they were listed
    if image is None:
        raise SourceError(
            "the file changed after it was listed", path=file.location, remedy="Rerun the job."
        )
    if len(objects) > MAX_OBJECTS:
        raise SourceError(
            f"{file.name}: more than {MAX_OBJECTS:,} objects on an image",
            remedy="Cut the image into tiles.",
        )
    return (image.size if size == (0, 0) else size), objects
