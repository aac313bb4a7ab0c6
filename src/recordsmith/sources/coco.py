"""COCO: one JSON file with the boxes and regions of all pictures of a split.

Numbers of categories are kept as labels, with their gaps. What is said of a picture is parsed again
when its sample is read, so that the listing holds only where it is. Where files are, `coco_layout`
finds out; whether boxes are good, `boxes`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from recordsmith.errors import OptionError, SourceError
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
from recordsmith.files import PathLike, as_path
from recordsmith.image import encode_mask, resize_nearest, turn, undone_by
from recordsmith.sources.boxes import (
    BOX_KINDS,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    Frame,
    PlacedBox,
    box_features,
    check_policy,
    number,
)
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.coco_json import CocoFile
from recordsmith.sources.coco_layout import Described, entry_of, find_files, picture_folders
from recordsmith.sources.contract import Listing, Note, Sample, look_up, unheard
from recordsmith.sources.entries import Entry, samples_of
from recordsmith.sources.file_index import FileIndex
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.regions import (
    ClassMask,
    Mask,
    RegionError,
    rasterize,
)
from recordsmith.sources.splits import in_split_order
from recordsmith.sources.wording import in_full, some, tally

Masks = Literal["instance", "class"]

_EMPTY_MASK = "the outline of an object encloses no pixel, so its mask is empty"
_LARGEST_AREA = float(np.finfo(np.float32).max)
_MOST_PIXELS = 1 << 28  # of a mask that is made here; pictures that say more are no photographs


class Coco:
    """Pictures with boxes, and on request masks, in COCO's JSON.

    Each sample has its picture untouched (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1 of the stored picture),
    `image/object/class/label` (the number of its category), `image/object/class/text`,
    `image/object/is_crowd` and `image/object/area` (in pixels, as the file has it).
    """

    def __init__(
        self,
        root: PathLike,
        *,
        annotations: PathLike | Mapping[str, PathLike] | None = None,
        images: PathLike | None = None,
        label_map: PathLike | None = None,
        boxes: BoxPolicy = "stop",
        masks: Masks | None = None,
    ) -> None:
        """
        Args:
            root: the folder that holds pictures and annotations; or the JSON file, beside its
                pictures or in a folder `annotations` beside their folder.
            annotations: the JSON file, or one for each split by its name; None: they are found.
            images: the folder of the pictures, inside of the root; None: it is found.
            label_map: path of a `label_map.pbtxt`; then its numbers are the labels.
            boxes: what a wrong box does: `stop` its sample, be made right (`clip`), or left out
                (`drop`).
            masks: `instance` adds `image/object/mask`, a PNG of 0 and 1 for each object; `class`
                adds `image/segmentation/class/encoded`, one PNG of labels, smaller objects on top.

        Raises:
            OptionError: `boxes` or `masks` is another word; `images` is no folder of the root.
        """
        self.root = as_path(root)
        if annotations is None and self.root.is_file():
            annotations, self.root = self.root, _home_of(self.root)
        self._annotations = annotations
        self._images = None if images is None else _inside(self.root, as_path(images))
        self._label_map = None if label_map is None else as_path(label_map)
        self._policy = check_policy(boxes)
        if masks not in (None, "instance", "class"):
            raise OptionError(f"masks is {masks!r}; expected 'instance', 'class' or None")
        self._masks = masks
        self._entries: dict[str, Entry[Described]] = {}
        self._classes = Classes({}, "the data")
        self._is_deep = False

    def __repr__(self) -> str:
        return f"Coco({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Walk the JSON files and find their pictures; the order is that of the pictures' paths.

        Raises:
            SourceError: there are no COCO files, or they are broken or contradict each other.
            OptionError: the label map is none, or options name what is not there.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self.root)
        paths = self._files(index)
        files = {split: CocoFile(path, name) for split, (path, name) in paths.items()}
        notices = self._complaints(list(files.values()))
        self._classes, more = _classes(list(files.values()), self._label_map)
        class_names = self._classes.names()
        self._is_deep = len(class_names) > 256
        entries: dict[str, Entry[Described]] = {}
        splits: dict[str, str] = {}
        first: dict[str, str] = {}  # the file that lists a picture first
        for split, file in files.items():
            folders = (
                picture_folders(index, file, split) if self._images is None else [self._images]
            )
            for image in file.images:
                entry = entry_of(index, folders, Described(file, image))
                name = entry.picture
                if name in entries:
                    problem = (
                        f"{file.name}, picture {image['id']}: {name} is listed already, in "
                        f"{first[name]}; expected each picture once"
                    )
                    entry = dataclasses.replace(entry, problem=problem)
                    name = f"{file.name}/{image['id']}"
                entries[name], splits[name] = entry, split
                first.setdefault(name, file.name)
        if not entries:
            raise SourceError(f"{some(file.name for file in files.values())}: no pictures in it")
        self._entries = entries
        if len(files) == 1:
            splits = {}
        samples = samples_of(entries, splits, index, lambda described: described.file.version)
        used = {entry.picture for entry in entries.values()}
        left = [path for path in index.paths if has_picture_name(path) and path not in used]
        if left:
            notices.append(f"pictures that no annotation file lists: {tally(left)}")
        if index.hidden:
            notices.append(f"hidden: {some(index.hidden)}")
        notices += [*more, *self._classes.notices()]
        return Listing(
            samples,
            class_names,
            tuple(notices),
            in_split_order(splits.values()),
            has_label_map=True,
        )

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture, and what its JSON file says of it."""
        entry = look_up(self._entries, sample)
        features = entry.read_picture(self.root, note)
        assert entry.annotation is not None
        file, image = entry.annotation
        features[SOURCE_ID] = str(image["id"]).encode("utf-8", "surrogateescape")
        reader = BoxReader(features, self._policy, note)
        place = entry.annotation.place
        frame = reader.frame_of(number(image["width"] or 0), number(image["height"] or 0), place)
        placed = reader.place(_boxes(file, image, reader), frame, self._classes)
        masks: list[Mask] = []
        if self._masks is not None and not reader.problems:
            placed, masks = _with_masks(placed, frame, features, reader, place)
            for item, mask in zip(placed, masks, strict=True):
                if not mask.any():
                    note(_EMPTY_MASK, item.source.place)
        reader.finish(entry.picture)
        return features | self._features(placed, masks, features)

    def describe(self) -> Mapping[str, Any]:
        files = self._annotations
        named: Any = None
        if isinstance(files, Mapping):
            named = {split: self._located(path)[1] for split, path in files.items()}
        elif files is not None:
            named = self._located(files)[1]
        return {
            "kind": "Coco",
            "folder": self.root.resolve().name,
            "annotations": named,
            "images": self._images,
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
            "masks": self._masks,
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

    def _files(self, index: FileIndex) -> dict[str, tuple[str, str]]:
        """split -> (path, name in messages) of each JSON file."""
        if self._annotations is None:
            return {
                split: (index.full_path(path), path) for split, path in find_files(index).items()
            }
        given = self._annotations
        files = given if isinstance(given, Mapping) else {"": given}
        return {split: self._located(path) for split, path in files.items()}

    def _located(self, path: PathLike) -> tuple[str, str]:
        """A JSON file that the caller named: its path, and its name from the root."""
        full = as_path(path)
        if not full.exists() and (self.root / full).exists():
            full = self.root / full
        inside = os.path.relpath(full.resolve(), self.root.resolve()).replace(os.sep, "/")
        return str(full), inside if not inside.startswith("../") else full.name

    def _complaints(self, files: list[CocoFile]) -> list[str]:
        """What is wrong beside the annotations of pictures, if that shall not stop everything."""
        problems = [problem for file in files for problem in file.problems]
        if problems and self._policy == "stop":
            raise SourceError(
                f"{in_full(problems)}; mend that, or say boxes='drop' to leave such entries out",
                problems,
            )
        notices = [f"entries that were left out: {some(problems)}"] if problems else []
        for file in files:
            if file.strangers:
                ids = some(map(str, file.strangers))
                notices.append(
                    f"annotations in {file.name} of pictures that it does not list, "
                    f"{len(file.strangers):,}: {ids}"
                )
        return notices

    def _features(
        self, placed: list[PlacedBox], masks: list[Mask], picture: Mapping[str, Any]
    ) -> dict[str, Any]:
        height, width = picture[HEIGHT], picture[WIDTH]
        features = box_features(placed)
        features[OBJECT_IS_CROWD] = [
            int(number(item.source.extra.get("iscrowd")) > 0) for item in placed
        ]
        features[OBJECT_AREA] = [_area(item, height * width) for item in placed]
        if self._masks == "instance":
            features[OBJECT_MASK] = [encode_mask(mask) for mask in masks]
        elif self._masks == "class":
            whole = ClassMask(height, width, is_deep=self._is_deep)
            for item, mask in zip(placed, masks, strict=True):
                whole.add(mask, item.label)
            features[MASK] = encode_mask(whole.draw())
            features[MASK_FORMAT] = "png"
        return features


def _boxes(file: CocoFile, image: Mapping[str, Any], reader: BoxReader) -> list[AnnotatedBox]:
    boxes = []
    for annotation in file.annotations_of(image["id"]):
        place = f"{file.name}, annotation {annotation.get('id')}"
        category, box = annotation.get("category_id"), annotation.get("bbox")
        name = file.categories.get(category) if isinstance(category, int) else None
        if name is None:
            reader.reject(place, f"its category_id {category!r} is none of the categories")
        elif not isinstance(box, list) or len(box) != 4:
            reader.reject(place, f"its bbox is {str(box)[:60]}; expected [x, y, width, height]")
        else:
            x, y, width, height = map(number, box)
            where = f"{place} ({name}, picture {image['id']})"
            corners = (x, y, x + width, y + height)
            boxes.append(AnnotatedBox(where, name, corners, annotation))
    return boxes


def _with_masks(
    placed: list[PlacedBox],
    frame: Frame,
    picture: Mapping[str, Any],
    reader: BoxReader,
    place: str,
) -> tuple[list[PlacedBox], list[Mask]]:
    """The objects whose region is good, and the mask of each on the stored picture."""
    height, width = picture[HEIGHT], picture[WIDTH]
    if max(height * width, frame.height * frame.width) > _MOST_PIXELS:
        raise SourceError(
            f"{place} is {width} by {height}; masks are made up to {_MOST_PIXELS:,} pixels"
        )
    kept, masks = [], []
    for item in placed:
        segmentation = item.source.extra.get("segmentation")
        try:
            mask = rasterize(segmentation, int(frame.height), int(frame.width))
        except RegionError as error:
            reader.reject(item.source.place, str(error))
            continue
        mask = turn(mask, undone_by(frame.orientation))
        kept.append(item)
        masks.append(resize_nearest(mask, height, width))
    return kept, masks


def _area(item: PlacedBox, pixel_count: int) -> float:
    """What the file says; the box's own where it says nothing."""
    area = number(item.source.extra.get("area"))
    if 0 <= area <= _LARGEST_AREA:
        return area
    ymin, xmin, ymax, xmax = item.box
    return (ymax - ymin) * (xmax - xmin) * pixel_count


def _home_of(document: Path) -> Path:
    """The folder of the dataset that a JSON file is of."""
    folder = document.absolute().parent
    return folder.parent if folder.name.lower() == "annotations" else folder


def _inside(root: Path, images: Path) -> str:
    """The folder of pictures, relative to the root."""
    full = images if images.is_dir() else root / images
    path = os.path.relpath(full.resolve(), root.resolve()).replace(os.sep, "/")
    if not full.is_dir() or path == ".." or path.startswith("../"):
        raise OptionError(f"images is {images}; expected a folder inside of {root}")
    return "" if path == "." else path


def _classes(files: list[CocoFile], label_map: PathLike | None) -> tuple[Classes, list[str]]:
    """The classes of all files together, and what there is to say of them.

    Raises:
        SourceError: files contradict each other, or a name has two numbers.
    """
    names: dict[int, str] = {}
    problems = []
    for file in files:
        for number_, name in file.categories.items():
            if names.setdefault(number_, name) != name:
                problems.append(
                    f"category {number_} is {name!r} in {file.name} and {names[number_]!r} in "
                    "another file"
                )
    if problems and label_map is None:
        raise SourceError(
            f"the annotation files have different categories: {some(problems)}; mend them, or give "
            "a label_map, and the names count",
            problems,
        )
    notices = []
    if 0 in names and label_map is None:
        if any(0 in file.used for file in files):
            names = {number_ + 1: name for number_, name in names.items()}
            notices.append(
                "the categories count from 0, which is the background in label maps and masks: "
                "each label is its category plus 1"
            )
        else:
            notices.append(f"category 0, {names.pop(0)!r}, has no objects and was left out")
    origin = f"the categories of {some(file.name for file in files)}"
    return classes_by_label(names, label_map, origin), notices
