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

from recordsmith.errors import Problems, SourceError, located, option
from recordsmith.example import Kind
from recordsmith.example.keys import HEIGHT, OBJECT_AREA, OBJECT_IS_CROWD, WIDTH
from recordsmith.image import decode_image
from recordsmith.sources.boxes.annotated import (
    AnnotatedReader,
    Annotation,
    check_object_count,
    make_listing,
)
from recordsmith.sources.boxes.annotation_files import FileAnnotatedImages
from recordsmith.sources.boxes.boxes import (
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    PlacedBox,
    number,
)
from recordsmith.sources.boxes.coco_json import CocoFile, Described, read_annotations, segments_of
from recordsmith.sources.boxes.coco_layout import find_files, other_files, panoptic_folder
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.paths import inside, referenced
from recordsmith.sources.flaws import Check, Flaw
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

    def list_samples(self) -> Listing:
        """Scan the JSON files and find their images, sorted by image path.

        Raises:
            SourceError: there are no COCO files, or they are invalid or conflict with each other.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        paths = self._files(index, find_files)
        files = {split: CocoFile(path, name) for split, (path, name) in paths.items()}
        notices = self._check_files(list(files.values()))
        classes, more = _classes(list(files.values()), self._label_map)
        classes.names()  # labels are checked before images are looked for
        panoptic = [file.name for file in files.values() if file.is_panoptic]
        folders = {name: panoptic_folder(index, name) for name in panoptic if self._masks}
        entries, splits, left = self._entries(index, files, folders.values())
        notices += [*left, *more]
        if self._annotations is None:
            others = other_files(index, {file.name for file in files.values()})
            notices += count_notice(others, "annotation file", "of other tasks skipped")
        if keypoints := sum(file.keypoints_count for file in files.values()):
            notices.append(f"keypoints of {count(keypoints, 'annotation')} left out")
        outlines = sum(file.outline_count for file in files.values())
        if panoptic and self._masks is None:
            found = join_names(panoptic)
            notices.append(f"masks of {found} left out: object masks are not requested")
        if outlines and self._masks is None:
            found = count(outlines, "annotation")
            notices.append(f"segmentation of {found} left out: object masks are not requested")
        places = self._places(paths)
        categories = {file.name: tuple(file.categories.items()) for file in files.values()}
        return make_listing(
            entries,
            splits,
            index,
            CocoReader(
                **self._reader_options(classes),
                categories=tuple(categories.items()),
                panoptic=tuple(folders.items()),
            ),
            classes,
            notices,
            lambda described: described.file.version,
            lambda described: {**places[described.file.name], **self._reference(described)},
        )

    def _reference(self, described: Described) -> dict[str, Any]:
        file, image = described
        found = file.reference_of(image["id"])
        if self._masks is None:
            for annotation in found.get("annotations", ()):
                annotation.pop("segmentation", None)
        return {"id": image["id"], "size": [image["width"], image["height"]], **found}

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
                notice = f"{number} of unlisted images in {file.name} skipped: {ids}"
                check, places = Check.ANNOTATION_WITHOUT_IMAGE, [file.name]
                notices.append(Flaw(notice, check, files=places, item_count=len(file.orphans)))
        return notices


@dataclass(frozen=True)
class CocoReader(AnnotatedReader):
    """Reads an image, and its annotations from the reference or from ranges of the JSON file.

    categories: (file, (number, name) of each) of each file.
    panoptic: (file, folder of PNG files) of each panoptic file, if there are masks.
    """

    categories: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()
    panoptic: tuple[tuple[str, str], ...] = ()

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        name, image_id = reference["place"], reference["id"]
        place = f"{name}, image {image_id}"
        file = referenced(self.root, reference.get("file", name))
        names = self._names[name]
        has_masks = self.object_masks is not None
        objects: list[AnnotatedBox] = []
        for item in read_annotations(file, reference):
            check_object_count(len(objects), place)
            parts = [item]
            if "segments_info" in item:
                numbers = self._segment_numbers(name, item) if has_masks else None
                parts = [{**each, "segmentation": numbers} for each in segments_of(item)]
            objects += [_box(part, name, image_id, names, has_masks=has_masks) for part in parts]
        width, height = reference["size"]
        return Annotation(place, objects, (number(width or 0), number(height or 0)))

    @cached_property
    def _names(self) -> Mapping[str, Mapping[Any, str]]:
        return {file: dict(names) for file, names in self.categories}

    def _segment_numbers(self, name: str, annotation: Mapping[str, Any]) -> Any:
        """The number of the segment of each pixel: red + 256 green + 65536 blue."""
        file_name = annotation.get("file_name")
        folder = self.root / dict(self.panoptic)[name]
        place = inside(folder, file_name) if isinstance(file_name, str) else None
        if place is None:
            raise SourceError(f"invalid file_name {file_name!r:.60} of segments", path=name)
        with located(place):
            pixels = decode_image(place.read())
        return pixels.astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32)

    def _object_kinds(self) -> Mapping[str, Kind]:
        return {OBJECT_IS_CROWD: "int64", OBJECT_AREA: "float"}

    def _object_features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        pixel_count = image[HEIGHT] * image[WIDTH]
        return {
            OBJECT_IS_CROWD: [int(number(item.source.extra.get("iscrowd")) > 0) for item in placed],
            OBJECT_AREA: [_area(item, pixel_count) for item in placed],
        }


def _box(
    annotation: Mapping[str, Any],
    file: str,
    image_id: Any,
    names: Mapping[Any, str],
    *,
    has_masks: bool,
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
        _outline(annotation) if has_masks else None,
        {key: annotation.get(key) for key in ("iscrowd", "area")},
    )


def _outline(annotation: Mapping[str, Any]) -> Any:
    """The segmentation; for a segment the mask of its number."""
    found = annotation.get("segmentation")
    return found == annotation.get("id") if isinstance(found, np.ndarray) else found


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
