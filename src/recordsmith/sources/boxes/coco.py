"""COCO: one JSON file per split with the boxes and segmentations of all images.

Category ids are kept as labels, with their gaps. The listing keeps the text of the files and the
positions of annotations in it, which are parsed again for the reference of their sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from recordsmith.errors import Problems, SourceError, option
from recordsmith.example import Kind
from recordsmith.example.keys import HEIGHT, OBJECT_AREA, OBJECT_IS_CROWD, WIDTH
from recordsmith.sources.boxes.annotated import AnnotatedReader, Annotation, Masks, make_listing
from recordsmith.sources.boxes.annotation_files import FileAnnotatedImages, path_inside
from recordsmith.sources.boxes.boxes import (
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    BoxPolicy,
    PlacedBox,
    number,
)
from recordsmith.sources.boxes.coco_json import CocoFile, Described, read_annotations
from recordsmith.sources.boxes.coco_layout import find_files, other_files
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.folders import referenced
from recordsmith.sources.problems import count_notice, join_names, join_problems
from recordsmith.sources.source import Listing, Note
from recordsmith.stores import PlaceLike
from recordsmith.words import count

_LARGEST_AREA = float(np.finfo(np.float32).max)


class Coco(FileAnnotatedImages):
    """Images with boxes, and optionally masks, in COCO's JSON format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (its category id), `image/object/class/text`,
    `image/object/is_crowd` and `image/object/area` (in pixels, from the file).

    Example:
        >>> rs.pack(rs.Coco("coco", object_masks="instance"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
        object_masks: Masks | None = None,
    ) -> None:
        """
        Args:
            root: the folder of images and annotations; or the JSON file, next to its images or in
                a folder `annotations` next to theirs.
            annotations: the JSON file, or a mapping from split to JSON file; None to find them.
            images: the folder of the images, inside the root; None to find it.
            label_map: path of a `label_map.pbtxt`, which defines the labels.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`). With masks, an object with an invalid
                segmentation fails its sample, gets an empty mask (`clip`), or is dropped (`drop`).
            object_masks: `instance` adds `image/object/mask`, a PNG of 0 and 1 for each object;
                `class` adds `image/segmentation/class/encoded`, one PNG of labels with smaller
                objects on top. Polygons are rasterized like in pycocotools.

        Raises:
            OptionError: `boxes` or `object_masks` is invalid, or `images` is not a folder inside
                the root.
        """
        super().__init__(
            root,
            annotations=annotations,
            images=images,
            label_map=label_map,
            boxes=boxes,
            object_masks=object_masks,
        )

    def list_samples(self) -> Listing:
        """Scan the JSON files and find their images, sorted by image path.

        Raises:
            SourceError: there are no COCO files, or they are invalid or conflict with each other.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self.root)
        paths = self._files(index, find_files)
        files = {split: CocoFile(path, name) for split, (path, name) in paths.items()}
        notices = self._check_files(list(files.values()))
        classes, more = _classes(list(files.values()), self._label_map)
        classes.names()  # labels are checked before images are looked for
        entries, splits, left = self._entries(index, files)
        notices += [*left, *more]
        if self._annotations is None:
            others = other_files(index, {file.name for file in files.values()})
            notices += count_notice(others, "annotation file", "of other tasks skipped")
        if keypoints := sum(file.keypoints_count for file in files.values()):
            notices.append(f"keypoints of {count(keypoints, 'annotation')} left out")
        outside = {
            name: str(place.absolute())
            for place, name in paths.values()
            if path_inside(self.root, place) is None
        }
        categories = {file.name: tuple(file.categories.items()) for file in files.values()}
        return make_listing(
            entries,
            splits,
            index,
            CocoReader(**self._reader_options(classes), categories=tuple(categories.items())),
            classes,
            notices,
            lambda described: described.file.version,
            lambda described: self._reference(described, outside),
        )

    def _reference(self, described: Described, outside: Mapping[str, str]) -> dict[str, Any]:
        """The annotations of an image; `outside` has the files that are not below the root."""
        file, image = described
        found = file.reference_of(image["id"])
        if self._masks is None:
            for annotation in found.get("annotations", ()):
                annotation.pop("segmentation", None)
        if "ranges" in found and file.name in outside:
            found["file"] = outside[file.name]
        size = [image["width"], image["height"]]
        return {"place": file.name, "id": image["id"], "size": size, **found}

    def _check_files(self, files: list[CocoFile]) -> list[str]:
        """Raise the problems outside annotations, or return them as notices."""
        problems = Problems()
        for file in files:
            problems.extend(file.problems)
        if problems and self._policy == "stop":
            raise SourceError(
                "the annotation files have invalid entries",
                problems,
                path=self.root,
                remedy=f"Fix them, or pass {option('boxes', 'drop')} to drop them.",
                lists_problems=True,
            )
        notices = []
        if problems:
            number = count(problems.count, "invalid entry", "invalid entries")
            notices.append(f"{number} dropped: {join_problems(problems)}")
        for file in files:
            if file.orphans:
                number = count(len(file.orphans), "annotation")
                ids = join_names(map(str, file.orphans))
                notices.append(f"{number} of unlisted images in {file.name} skipped: {ids}")
        return notices


@dataclass(frozen=True)
class CocoReader(AnnotatedReader):
    """Reads an image, and its annotations from the reference or from ranges of the JSON file.

    categories: (file, (number, name) of each) of each file.
    """

    categories: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        name, image_id = reference["place"], reference["id"]
        place = f"{name}, image {image_id}"
        file = referenced(self.root, reference.get("file", name))
        names = self._names[name]
        objects = [_box(item, name, image_id, names) for item in read_annotations(file, reference)]
        width, height = reference["size"]
        return Annotation(place, objects, (number(width or 0), number(height or 0)))

    @cached_property
    def _names(self) -> Mapping[str, Mapping[Any, str]]:
        return {file: dict(names) for file, names in self.categories}

    def _object_kinds(self) -> Mapping[str, Kind]:
        return {OBJECT_IS_CROWD: "int64", OBJECT_AREA: "float"}

    def _object_features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        pixel_count = image[HEIGHT] * image[WIDTH]
        return {
            OBJECT_IS_CROWD: [int(number(item.source.extra.get("iscrowd")) > 0) for item in placed],
            OBJECT_AREA: [_area(item, pixel_count) for item in placed],
        }


def _box(
    annotation: Mapping[str, Any], file: str, image_id: Any, names: Mapping[Any, str]
) -> AnnotatedBox:
    place = f"{file}, annotation {annotation.get('id')}"
    category, box = annotation.get("category_id"), annotation.get("bbox")
    name = names.get(category) if isinstance(category, int) else None
    if name is None:
        fault = f"unknown category_id {category!r}"
        return AnnotatedBox(place, "", fault=fault, dropped=UNKNOWN_CLASSES_DROPPED)
    if not isinstance(box, list) or len(box) != 4:
        fault = f"invalid bbox {str(box)[:60]}; expected [x, y, width, height]"
        return AnnotatedBox(place, name, fault=fault)
    x, y, width, height = map(number, box)
    return AnnotatedBox(
        f"{place} ({name}, image {image_id})",
        name,
        (x, y, x + width, y + height),
        annotation.get("segmentation"),
        annotation,
    )


def _area(item: PlacedBox, pixel_count: int) -> float:
    """The area in the file, or that of the box if it is missing or invalid."""
    area = number(item.source.extra.get("area"))
    if 0 <= area <= _LARGEST_AREA:
        return area
    ymin, xmin, ymax, xmax = item.box
    return (ymax - ymin) * (xmax - xmin) * pixel_count


def _classes(files: list[CocoFile], label_map: PlaceLike | None) -> tuple[Classes, list[str]]:
    """The classes of all files together, and notices about them.

    Raises:
        SourceError: files have different categories, or a name has two numbers.
    """
    names: dict[int, str] = {}
    problems = []
    for file in files:
        for number_, name in file.categories.items():
            if names.setdefault(number_, name) != name:
                other = f"{names[number_]!r} in another file"
                problems.append(f"category {number_} is {name!r} in {file.name} and {other}")
    if problems and label_map is None:
        raise SourceError(
            f"the annotation files have different categories: {join_names(problems)}",
            problems,
            remedy=f"Fix them, or pass {option('label_map')} to use labels by name.",
        )
    notices = []
    if 0 in names and label_map is None:
        if any(0 in file.used for file in files):
            names = {number_ + 1: name for number_, name in names.items()}
            notices.append(
                "categories start at 0, the background: each label is its category id plus 1"
            )
        else:
            notices.append(f"1 category without objects dropped: 0, {names.pop(0)!r}")
    origin = f"the categories of {join_names(file.name for file in files)}"
    return classes_by_label(names, label_map, origin), notices
