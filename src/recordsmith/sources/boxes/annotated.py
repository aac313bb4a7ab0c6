"""Annotated images: what a listing keeps of each, and what all their readers and sources share.

A sample whose image is missing stays in the listing and fails when it is read, so that packing
reports it like any other bad sample.
"""

from __future__ import annotations

import posixpath
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.example.keys import HEIGHT, MASK, MASK_FORMAT, OBJECT_MASK, SOURCE_ID, WIDTH
from recordsmith.image import (
    apply_orientation,
    encode_mask,
    inverse_orientation,
    resize_nearest,
    swaps_sides,
)
from recordsmith.sources.boxes.boxes import (
    BOX_KINDS,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    Frame,
    PlacedBox,
    box_features,
    check_policy,
)
from recordsmith.sources.boxes.regions import ClassMask, RegionError, rasterize
from recordsmith.sources.classes import Classes
from recordsmith.sources.files.file_index import FileIndex, Found
from recordsmith.sources.files.file_tree import TreeSource
from recordsmith.sources.files.images import read_image
from recordsmith.sources.files.paths import common_version, last_name
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.numbered import SampleTable
from recordsmith.sources.problems import Fault
from recordsmith.sources.source import (
    Listing,
    Note,
    Sample,
    StoredReader,
    ignore_note,
    unlisted_error,
)
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_location, as_place

Masks = Literal["instance", "class"]

VALUE_BYTES = 1 << 16
"""Larger annotations are not part of the reference, which has their place instead."""

MAX_OBJECTS = 100_000
"""The most objects of an image: each takes some hundred bytes until its record is written."""

_POLYGONS = "polygons were packed as the boxes around them"
_NO_OUTLINE = Flaw("objects have an invalid segmentation and got an empty mask", Check.MASK_FORMAT)
_NO_OUTLINE_DROPPED = Flaw(
    "objects were dropped because their segmentation is invalid", Check.MASK_FORMAT
)
_EMPTY_MASK = Flaw(
    "objects have an empty mask because their segmentation encloses no pixel", Check.MASK_VALUES
)
_MOST_PIXELS = 1 << 28  # of a mask

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Entry(Generic[Kept]):
    """One sample.

    image: its path, relative to the root; a name for the sample if the image is missing.
    annotation: what the listing keeps of its annotation; None without annotations.
    notes: (what, where) for each note to make when it is read.
    fault: why it cannot be read.
    """

    image: str
    annotation: Kept | None = None
    notes: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None


class Annotation(NamedTuple):
    """The objects of one image.

    place: file, and where in it: "a.xml".
    size: of the image that they were drawn on, 0 if unknown; None for relative boxes.
    """

    place: str
    objects: list[AnnotatedBox]
    size: tuple[float, float] | None = (0, 0)


@dataclass(frozen=True)
class AnnotatedReader(StoredReader):
    """Reads an image and the boxes on it; subclasses read the annotation.

    labels: of classes by name.
    origin: where the classes are from, for messages.
    is_upright: whether relative boxes are relative to the upright image.
    """

    root: Location
    labels: tuple[tuple[str, int], ...]
    origin: str
    boxes: BoxPolicy
    object_masks: Masks | None = None
    is_upright: bool = False

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image and its annotations.

        Raises:
            SourceError: its image is missing, or annotations are invalid; `problems` lists each.
            CorruptDataError: unreadable-image.
            FileAccessError: a file cannot be read.
        """
        reference = sample.reference
        if reference is None:
            raise unlisted_error(sample)
        if "fault" in reference:
            raise Fault.from_json(reference["fault"]).error()
        for what, where in reference.get("notes", ()):
            note(what, where)
        features = self._image(sample.name, reference)
        source_id = reference.get("id", posixpath.basename(sample.name))
        features[SOURCE_ID] = str(source_id).encode("utf-8", "surrogateescape")
        reader = BoxReader(features, self.boxes, note)
        found = self._annotation(reference, note) if "place" in reference else None
        placed: list[PlacedBox] = []
        masks: dict[str, Any] = {}
        frame = Frame(features[WIDTH], features[HEIGHT])
        if found is not None:
            frame = (
                reader.relative_frame(found.place, is_upright=self.is_upright)
                if found.size is None
                else reader.make_frame(*found.size, found.place)
            )
            if self.object_masks is None:
                for each in found.objects:
                    if isinstance(each.segmentation, list) or callable(each.segmentation):
                        note(_POLYGONS, each.place)
            placed = reader.place(found.objects, frame, self._classes)
        if self.object_masks is not None and not reader.problems:
            place = sample.name if found is None else found.place
            placed, masks = self._add_masks(placed, frame, features, reader, place)
        reader.finish(reference.get("place", sample.name))
        return features | box_features(placed) | self._object_features(placed, features) | masks

    def kinds(self) -> Mapping[str, Kind]:
        kinds = {**BOX_KINDS, **self._object_kinds()}
        return {**kinds, OBJECT_MASK: "bytes"} if self.object_masks == "instance" else kinds

    @abstractmethod
    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        """Read the annotation that a reference contains or leads to."""

    def _image(self, name: str, reference: Mapping[str, Any]) -> dict[str, Any]:
        """The features of the image."""
        return read_image(self.root / name, name)

    def _object_kinds(self) -> Mapping[str, Kind]:
        """The kinds of the features of `_object_features`."""
        return {}

    def _object_features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        """The features of objects that only this format has."""
        return {}

    @cached_property
    def _classes(self) -> Classes:
        return Classes(dict(self.labels), self.origin)

    def _add_masks(
        self,
        placed: list[PlacedBox],
        frame: Frame,
        image: Mapping[str, Any],
        reader: BoxReader,
        place: str,
    ) -> tuple[list[PlacedBox], dict[str, Any]]:
        """The kept objects, and the features of their masks on the stored image."""
        height, width = image[HEIGHT], image[WIDTH]
        canvas = (int(frame.height), int(frame.width))
        if frame.is_relative:
            canvas = (width, height) if swaps_sides(frame.orientation) else (height, width)
        if max(height * width, canvas[0] * canvas[1]) > _MOST_PIXELS:
            raise SourceError(
                f"{place}: the size {width}x{height} is too large for masks; expected at most "
                f"{_MOST_PIXELS:,} pixels"
            )
        kept: list[PlacedBox] = []
        encoded: list[bytes] = []  # one mask at a time is held as pixels
        is_deep = max((label for _, label in self.labels), default=0) > 255
        whole = ClassMask(height, width, is_deep=is_deep)
        for item in placed:
            segmentation = item.source.segmentation
            if callable(segmentation):
                segmentation = segmentation()
            if isinstance(segmentation, str):  # the box
                xmin, ymin, xmax, ymax = item.source.corners
                segmentation = [[xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]]
            if frame.is_relative and isinstance(segmentation, list):
                scale = np.array(canvas[::-1])
                segmentation = [
                    (np.reshape(polygon, (-1, 2)) * scale).ravel() for polygon in segmentation
                ]
            try:
                drawn = rasterize(segmentation, *canvas)
            except RegionError as error:
                if self.boxes != "clip":
                    reader.reject(item.source.place, str(error), _NO_OUTLINE_DROPPED)
                    continue
                reader.note(_NO_OUTLINE, f"{item.source.place}: {error}")
                mask = np.zeros((height, width), np.uint8)
            else:
                mask = resize_nearest(
                    apply_orientation(drawn, inverse_orientation(frame.orientation)), height, width
                )
                if not mask.any():
                    reader.note(_EMPTY_MASK, item.source.place)
            kept.append(item)
            if self.object_masks == "instance":
                encoded.append(encode_mask(mask))
            else:
                whole.add(mask, item.label)
        if self.object_masks == "instance":
            return kept, {OBJECT_MASK: encoded}
        return kept, {MASK: encode_mask(whole.draw()), MASK_FORMAT: "png"}


class AnnotatedImages(TreeSource):
    """What the sources of annotated images share: their options, and the listing.

    Subclasses define `list_samples`.
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
        object_masks: Masks | None = None,
    ) -> None:
        """
        Args:
            root: the folder of images and annotations.
            label_map: path of a `label_map.pbtxt`, which defines the labels.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).
            object_masks: `instance` or `class` adds masks, as in `Coco`.

        Raises:
            OptionError: `boxes` or `object_masks` is invalid.
        """
        self.root, self._file = self._parts_of(as_place(root))
        self._label_map = None if label_map is None else as_location(label_map)
        self._policy = check_policy(boxes)
        if object_masks not in (None, "instance", "class"):
            raise OptionError(
                option="object_masks", value=object_masks, expected="'instance', 'class' or None"
            )
        self._masks = object_masks

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": type(self).__name__,
            "folder": last_name(self.root),
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
            **({} if self._masks is None else {"object_masks": self._masks}),
        }

    @staticmethod
    def _parts_of(root: Location) -> tuple[Location, str | None]:
        """The folder, and the name of a file in it if the root is this file."""
        return root, None

    def _reader_options(self, classes: Classes) -> dict[str, Any]:
        """The fields that the readers of all formats have."""
        return {
            "root": self.root,
            "labels": classes.labels(),
            "origin": classes.origin,
            "boxes": self._policy,
            "object_masks": self._masks,
        }


def make_listing(
    entries: Mapping[str, Entry[Kept]],
    splits: Mapping[str, str],
    index: FileIndex,
    reader: AnnotatedReader,
    classes: Classes,
    notices: list[str],
    version_of: Callable[[Kept], int],
    reference_of: Callable[[Kept], Mapping[str, Any]],
) -> Listing:
    """The listing of annotated images, sorted by name.

    Args:
        entries: by sample name.
        splits: by sample name, for the samples that have one; empty for none.
        version_of: returns the version number of an annotation.
        reference_of: returns its part of the sample's reference, with its `place`.
    """
    names = sorted(entries)
    names_of_splits = sort_splits(filter(None, splits.values()))
    only = only_split(names_of_splits[:1], index.root)
    if len(names_of_splits) < 2:
        splits, names_of_splits = {}, ()
    numbers = {split: number for number, split in enumerate(names_of_splits)}
    sizes, versions = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
    for number, name in enumerate(names):
        entry = entries[name]
        sizes[number], image = index.size_and_version(entry.image)
        annotation = 0 if entry.annotation is None else version_of(entry.annotation)
        versions[number] = common_version((image, annotation))

    def reference(number: int) -> Mapping[str, Any]:
        entry = entries[names[number]]
        if entry.fault is not None:
            return {"fault": entry.fault.to_json()}
        found = {} if entry.annotation is None else reference_of(entry.annotation)
        return {**found, "notes": list(map(list, entry.notes))} if entry.notes else found

    samples = SampleTable(
        names,
        sizes,
        splits=(
            (
                names_of_splits,
                np.array([numbers.get(splits.get(name, ""), -1) for name in names], np.int32),
            )
            if splits
            else None
        ),
        version=versions,
        references=reference,
    )
    return Listing(
        samples,
        reader,
        classes.names(),
        (*notices, *classes.notices()),
        names_of_splits,
        only,
        has_label_map=True,
    )


def path_notes(found: Found, name: str, place: str) -> tuple[tuple[str, str], ...]:
    """The notes for an image that was not found under the exact name in its annotation.

    Args:
        name: the name in the annotation.
        place: of the annotation.
    """
    if found.change is None:
        return ()
    return ((found.change, f"{place}: {name!r}, used {found.path}"),)


def check_object_count(count: int, place: str) -> None:
    """Check that an image may have another object.

    Raises:
        SourceError: it has too many.
    """
    if count >= MAX_OBJECTS:
        raise SourceError(
            f"{place}: more than {MAX_OBJECTS:,} objects", remedy="Cut the image into tiles."
        )


def changed_error(path: str) -> SourceError:
    """The error for an annotation file that is not what it was when it was listed."""
    return SourceError("the file changed after it was listed", path=path, remedy="Rerun the job.")
