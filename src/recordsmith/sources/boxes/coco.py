"""COCO: one JSON file per split with the boxes and segmentations of all images.

Category ids are kept as labels, with their gaps. Annotations are parsed again when their sample is
read, so that the listing keeps only their positions in the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from recordsmith.errors import OptionError, Problems, SourceError, option
from recordsmith.example import Kind
from recordsmith.example.keys import (
    HEIGHT,
    MASK,
    MASK_FORMAT,
    OBJECT_AREA,
    OBJECT_IS_CROWD,
    OBJECT_MASK,
    SOURCE_ID,
    WIDTH,
)
from recordsmith.image import apply_orientation, encode_mask, inverse_orientation, resize_nearest
from recordsmith.sources.boxes.boxes import (
    BOX_KINDS,
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    Frame,
    PlacedBox,
    box_features,
    check_policy,
    number,
)
from recordsmith.sources.boxes.coco_json import CocoFile
from recordsmith.sources.boxes.coco_layout import Described, find_files, image_folders, make_entry
from recordsmith.sources.boxes.entries import Entry, make_samples
from recordsmith.sources.boxes.regions import (
    ClassMask,
    RegionError,
    rasterize,
)
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.folders import inside, is_file, last_name
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.problems import Fault, count_notice, join_names, join_problems
from recordsmith.sources.source import Listing, Note, Sample, ignore_note, look_up
from recordsmith.sources.splits import sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location, as_place
from recordsmith.words import count

Masks = Literal["instance", "class"]

_NO_OUTLINE = Flaw("objects have an invalid segmentation and got an empty mask", Check.MASK_FORMAT)
_NO_OUTLINE_DROPPED = Flaw(
    "objects were dropped because their segmentation is invalid", Check.MASK_FORMAT
)
_EMPTY_MASK = Flaw(
    "objects have an empty mask because their segmentation encloses no pixel", Check.MASK_VALUES
)
_LARGEST_AREA = float(np.finfo(np.float32).max)
_MOST_PIXELS = 1 << 28  # of a mask


class Coco:
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
        self.root = as_place(root)
        if annotations is None and is_file(self.root):
            annotations, self.root = self.root, _dataset_folder(self.root)
        self._annotations = annotations
        self._images = None if images is None else _path_of_images(self.root, images)
        self._label_map = None if label_map is None else as_location(label_map)
        self._policy = check_policy(boxes)
        if object_masks not in (None, "instance", "class"):
            raise OptionError(
                option="object_masks", value=object_masks, expected="'instance', 'class' or None"
            )
        self._masks = object_masks
        self._entries: dict[str, Entry[Described]] = {}
        self._classes = Classes({}, "the data")
        self._is_deep = False

    def __repr__(self) -> str:
        return f"Coco({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Scan the JSON files and find their images, sorted by image path.

        Raises:
            SourceError: there are no COCO files, or they are invalid or conflict with each other.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self.root)
        paths = self._files(index)
        files = {split: CocoFile(path, name) for split, (path, name) in paths.items()}
        notices = self._check_files(list(files.values()))
        self._classes, more = _classes(list(files.values()), self._label_map)
        class_names = self._classes.names()
        self._is_deep = len(class_names) > 256
        entries: dict[str, Entry[Described]] = {}
        splits: dict[str, str] = {}
        first: dict[str, str] = {}  # the file that lists an image first
        for split, file in files.items():
            folders = image_folders(index, file, split) if self._images is None else [self._images]
            for image in file.images:
                entry = make_entry(index, folders, Described(file, image))
                name = entry.image
                if name in entries:
                    problem = f"image {image['id']}: {name} is already listed in {first[name]}"
                    entry = dataclasses.replace(entry, fault=Fault(problem, file.name))
                    name = f"{file.name}/{image['id']}"
                entries[name], splits[name] = entry, split
                first.setdefault(name, file.name)
        if not entries:
            names = join_names(file.name for file in files.values())
            raise SourceError(f"no images to pack: {names} list no images", path=self.root)
        self._entries = entries
        if len(files) == 1:
            splits = {}
        samples = make_samples(entries, splits, index, lambda described: described.file.version)
        used = {entry.image for entry in entries.values()}
        left = [path for path in index.paths if has_image_name(path) and path not in used]
        notices += count_notice(
            left,
            "image",
            "missing from annotation files skipped",
            check=Check.IMAGE_WITHOUT_ANNOTATION,
        )
        notices += count_notice(index.hidden, "hidden file", "skipped")
        notices += [*more, *self._classes.notices()]
        return Listing(
            samples,
            self,
            class_names,
            tuple(notices),
            sort_splits(splits.values()),
            has_label_map=True,
        )

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image and its annotations.

        Raises:
            SourceError: its image is missing, or annotations are invalid; `problems` lists each.
            CorruptDataError: unreadable-image.
            FileAccessError: a file cannot be read.
        """
        entry = look_up(self._entries, sample)
        features = entry.read_image(self.root, note)
        assert entry.annotation is not None
        file, image = entry.annotation
        features[SOURCE_ID] = str(image["id"]).encode("utf-8", "surrogateescape")
        reader = BoxReader(features, self._policy, note)
        place = entry.annotation.place
        frame = reader.make_frame(number(image["width"] or 0), number(image["height"] or 0), place)
        placed = reader.place(_boxes(file, image, reader), frame, self._classes)
        masks: dict[str, Any] = {}
        if self._masks is not None and not reader.problems:
            placed, masks = self._add_masks(placed, frame, features, reader, place)
        reader.finish(entry.image)
        return features | self._features(placed, features) | masks

    def describe(self) -> Mapping[str, Any]:
        files = self._annotations
        named: Any = None
        if isinstance(files, Mapping):
            named = {split: self._located(path)[1] for split, path in files.items()}
        elif files is not None:
            named = self._located(files)[1]
        return {
            "kind": "Coco",
            "folder": last_name(self.root),
            "annotations": named,
            "images": self._images,
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
            "object_masks": self._masks,
        }

    def kinds(self) -> Mapping[str, Kind]:
        kinds: dict[str, Kind] = {
            **BOX_KINDS,
            OBJECT_IS_CROWD: "int64",
            OBJECT_AREA: "float",
        }
        if self._masks == "instance":
            kinds[OBJECT_MASK] = "bytes"
        return kinds

    def _files(self, index: FileIndex) -> dict[str, tuple[Location, str]]:
        """split -> (location, name for messages) of each JSON file."""
        if self._annotations is None:
            return {split: (index.root / path, path) for split, path in find_files(index).items()}
        given = self._annotations
        files = given if isinstance(given, Mapping) else {"": given}
        return {split: self._located(path) for split, path in files.items()}

    def _located(self, place: PlaceLike) -> tuple[Location, str]:
        """A JSON file from the caller, and its name relative to the root."""
        file = as_location(place)
        if not is_file(file):
            below = inside(self.root, str(place))
            file = below if below is not None and is_file(below) else file
        return file, _path_inside(self.root, file) or file.name

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
        if max(height * width, frame.height * frame.width) > _MOST_PIXELS:
            raise SourceError(
                f"{place}: the size {width}x{height} is too large for masks; expected at most "
                f"{_MOST_PIXELS:,} pixels"
            )
        kept: list[PlacedBox] = []
        encoded: list[bytes] = []  # one mask at a time is held as pixels
        whole = ClassMask(height, width, is_deep=self._is_deep)
        for item in placed:
            segmentation = item.source.extra.get("segmentation")
            try:
                drawn = rasterize(segmentation, int(frame.height), int(frame.width))
            except RegionError as error:
                if self._policy != "clip":
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
            if self._masks == "instance":
                encoded.append(encode_mask(mask))
            else:
                whole.add(mask, item.label)
        if self._masks == "instance":
            return kept, {OBJECT_MASK: encoded}
        return kept, {MASK: encode_mask(whole.draw()), MASK_FORMAT: "png"}

    def _features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        height, width = image[HEIGHT], image[WIDTH]
        features = box_features(placed)
        features[OBJECT_IS_CROWD] = [
            int(number(item.source.extra.get("iscrowd")) > 0) for item in placed
        ]
        features[OBJECT_AREA] = [_area(item, height * width) for item in placed]
        return features


def _boxes(file: CocoFile, image: Mapping[str, Any], reader: BoxReader) -> list[AnnotatedBox]:
    boxes = []
    for annotation in file.read_annotations(image["id"]):
        place = f"{file.name}, annotation {annotation.get('id')}"
        category, box = annotation.get("category_id"), annotation.get("bbox")
        name = file.categories.get(category) if isinstance(category, int) else None
        if name is None:
            reader.reject(place, f"unknown category_id {category!r}", UNKNOWN_CLASSES_DROPPED)
        elif not isinstance(box, list) or len(box) != 4:
            fault = f"invalid bbox {str(box)[:60]}; expected [x, y, width, height]"
            reader.reject(place, fault)
        else:
            x, y, width, height = map(number, box)
            where = f"{place} ({name}, image {image['id']})"
            corners = (x, y, x + width, y + height)
            boxes.append(AnnotatedBox(where, name, corners, annotation))
    return boxes


def _area(item: PlacedBox, pixel_count: int) -> float:
    """The area in the file, or that of the box if it is missing or invalid."""
    area = number(item.source.extra.get("area"))
    if 0 <= area <= _LARGEST_AREA:
        return area
    ymin, xmin, ymax, xmax = item.box
    return (ymax - ymin) * (xmax - xmin) * pixel_count


def _dataset_folder(document: Location) -> Location:
    """The folder of the dataset that a JSON file belongs to."""
    folder = document.absolute().parent
    return folder.parent if folder.name.lower() == "annotations" else folder


def _path_of_images(root: Location, images: PlaceLike) -> str:
    """The folder of images, relative to the root."""
    for folder in (as_folder(images), inside(root, str(images))):
        if folder is not None and folder.is_folder():
            path = _path_inside(root, folder)
            if path is not None:
                return path
    raise OptionError(option="images", value=str(images), expected=f"a folder inside {root}")


def _path_inside(root: Location, place: Location) -> str | None:
    """The path of a file or folder relative to the root, which also links may lead to."""
    if not root.contains(place):
        return None
    return place.identity[len(root.identity) :].lstrip("/")


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
