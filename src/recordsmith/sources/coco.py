"""COCO: one JSON file with the boxes and regions of all pictures of a split.

`annotations/instances_train2017.json` with `train2017/`, a folder for each split with
`_annotations.coco.json` in it, or one JSON file beside or above its pictures. Numbers of
categories are kept as labels, with their gaps. What is said of a picture is parsed again when its
sample is read, so that the listing holds only where it is.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
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
from recordsmith.sources.coco_json import CocoFile, looks_like_coco
from recordsmith.sources.contract import Listing, Note, Sample, unheard
from recordsmith.sources.file_index import (
    FileIndex,
    Found,
    no_files,
    not_found,
)
from recordsmith.sources.pictures import has_picture_name, read_picture
from recordsmith.sources.regions import (
    ClassMask,
    Mask,
    RegionError,
    rasterize,
)
from recordsmith.sources.splits import SPLIT_NAMES, in_split_order
from recordsmith.sources.wording import some, tally

Masks = Literal["instance", "class"]

_EXPECTED = (
    "annotations/instances_<split>.json with a folder of pictures for each split, "
    "<split>/_annotations.coco.json beside the pictures, or one .json file beside or above them"
)
_SPLIT_FILE = "_annotations.coco.json"
_OTHER_TASKS = ("captions_", "person_keypoints_", "stuff_", "panoptic_", "image_info_")
_PICTURE_FOLDERS = frozenset(("images", "image", "imgs", "img", "jpegimages", "pictures", "data"))
_MOST_PIXELS = 1 << 28  # of a mask that is made here; pictures that say more are no photographs


class _Entry(NamedTuple):
    """A sample: its picture, and what its JSON file says; or why it cannot be read."""

    picture: str
    file: CocoFile
    image: Mapping[str, Any]
    notes: tuple[tuple[str, str], ...] = ()
    problem: str | None = None


class Coco:
    """Pictures with boxes, and on request masks, in COCO's JSON.

    Each sample has its picture untouched (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1 of the stored picture),
    `image/object/class/label` (the number of its category), `image/object/class/text`,
    `image/object/is_crowd` and `image/object/area` (in pixels, as the file has it).

    Args:
        root: the folder that holds pictures and annotations.
        annotations: the JSON file, or one for each split by its name; without it they are found.
        images: the folder of the pictures, inside of the root; without it it is found.
        label_map: path of a `label_map.pbtxt`; then its numbers are the labels.
        boxes: what a wrong box does: `stop` its sample, be made right (`clip`), or left out
            (`drop`).
        masks: `instance` adds `image/object/mask`, a PNG of 0 and 1 for each object; `class` adds
            `image/segmentation/class/encoded`, one PNG of labels, smaller objects on top.
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
        self.root = as_path(root)
        self._annotations = annotations
        self._images = None if images is None else _inside(self.root, as_path(images))
        self._label_map = None if label_map is None else as_path(label_map)
        self._policy = check_policy(boxes)
        if masks not in (None, "instance", "class"):
            raise OptionError(f"masks is {masks!r}; expected 'instance', 'class' or None")
        self._masks = masks
        self._entries: dict[str, _Entry] = {}
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
        entries: dict[str, _Entry] = {}
        splits: dict[str, str] = {}
        for split, file in files.items():
            folders = [self._images] if self._images is not None else _folders(index, file, split)
            for image in file.images:
                entry = _entry(index, folders, file, image)
                name = entry.picture
                if name in entries:
                    problem = (
                        f"{file.name}, picture {image['id']}: {name} is listed already, in "
                        f"{entries[name].file.name}; expected each picture once"
                    )
                    entry = entry._replace(problem=problem)
                    name = f"{file.name}/{image['id']}"
                entries[name], splits[name] = entry, split
        if not entries:
            raise SourceError(f"{some(file.name for file in files.values())}: no pictures in it")
        self._entries = entries
        has_splits = len(files) > 1
        samples = tuple(
            Sample(name, index.size_of(entry.picture), split=splits[name] if has_splits else None)
            for name, entry in sorted(entries.items())
        )
        named = in_split_order(splits.values()) if has_splits else ()
        used = {entry.picture for entry in entries.values()}
        left = [path for path in index.paths if has_picture_name(path) and path not in used]
        if left:
            notices.append(f"pictures that no annotation file lists: {tally(left)}")
        if index.hidden:
            notices.append(f"hidden: {some(index.hidden)}")
        notices += [*more, *self._classes.notices()]
        return Listing(samples, class_names, tuple(notices), named, has_label_map=True)

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture, and what its JSON file says of it."""
        entry = self._entries[sample.name]
        if entry.problem is not None:
            raise SourceError(entry.problem, [entry.problem])
        for what, where in entry.notes:
            note(what, where)
        features = read_picture(self.root / entry.picture, entry.picture)
        features["image/source_id"] = str(entry.image["id"]).encode("utf-8", "surrogateescape")
        reader = BoxReader(features, self._policy, note)
        place = f"{entry.file.name}, picture {entry.image['id']}"
        width, height = number(entry.image["width"] or 0), number(entry.image["height"] or 0)
        frame = reader.frame_of(width, height, place)
        placed = reader.place(self._boxes(entry, reader), frame, self._classes)
        masks: list[Mask] = []
        if self._masks is not None and not reader.problems:
            placed, masks = _with_masks(placed, frame, features, reader, place)
        reader.finish(entry.picture)
        return features | self._features(placed, masks, features)

    def describe(self) -> Mapping[str, Any]:
        files = self._annotations
        named: Any = None
        if isinstance(files, Mapping):
            named = {split: os.path.basename(path) for split, path in files.items()}
        elif files is not None:
            named = os.path.basename(files)
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
            "image/object/is_crowd": "int64",
            "image/object/area": "float",
        }
        if self._masks == "instance":
            kinds["image/object/mask"] = "bytes"
        return kinds

    def _files(self, index: FileIndex) -> dict[str, tuple[str, str]]:
        """split -> (path, name in messages) of each JSON file."""
        if self._annotations is None:
            return {split: (index.full_path(path), path) for split, path in _found(index).items()}
        given = self._annotations
        files = given if isinstance(given, Mapping) else {"": given}
        found = {}
        for split, path in files.items():
            full = as_path(path)
            if not full.exists() and (self.root / full).exists():
                full = self.root / full
            inside = os.path.relpath(full.resolve(), self.root.resolve()).replace(os.sep, "/")
            name = inside if not inside.startswith("../") else full.name
            found[split] = (str(full), name)
        return found

    def _complaints(self, files: list[CocoFile]) -> list[str]:
        """What is wrong beside the annotations of pictures, if that shall not stop everything."""
        problems = [problem for file in files for problem in file.problems]
        if problems and self._policy == "stop":
            listed = "; ".join(problems)
            raise SourceError(f"{len(problems)} entries cannot be packed: {listed}", problems)
        notices = [f"entries that were left out: {some(problems)}"] if problems else []
        for file in files:
            if file.strangers:
                ids = some(map(str, file.strangers))
                notices.append(
                    f"{len(file.strangers):,} annotations in {file.name} are of pictures that it "
                    f"does not list: {ids}"
                )
        return notices

    def _boxes(self, entry: _Entry, reader: BoxReader) -> list[AnnotatedBox]:
        boxes = []
        for annotation in entry.file.annotations_of(entry.image["id"]):
            place = f"{entry.file.name}, annotation {annotation.get('id')}"
            category, box = annotation.get("category_id"), annotation.get("bbox")
            name = entry.file.categories.get(category) if isinstance(category, int) else None
            if name is None:
                reader.reject(place, f"its category_id {category!r} is none of the categories")
            elif not isinstance(box, list) or len(box) != 4:
                reader.reject(place, f"its bbox is {str(box)[:60]}; expected [x, y, width, height]")
            else:
                x, y, width, height = map(number, box)
                where = f"{place} ({name}, picture {entry.image['id']})"
                corners = (x, y, x + width, y + height)
                boxes.append(AnnotatedBox(where, name, corners, annotation))
        return boxes

    def _features(
        self, placed: list[PlacedBox], masks: list[Mask], picture: Mapping[str, Any]
    ) -> dict[str, Any]:
        height, width = picture["image/height"], picture["image/width"]
        features = box_features(placed)
        features["image/object/is_crowd"] = [
            int(bool(item.source.extra.get("iscrowd"))) for item in placed
        ]
        features["image/object/area"] = [_area(item, height * width) for item in placed]
        if self._masks == "instance":
            features["image/object/mask"] = [encode_mask(mask) for mask in masks]
        elif self._masks == "class":
            whole = ClassMask(height, width, is_deep=self._is_deep)
            for item, mask in zip(placed, masks, strict=True):
                whole.add(mask, item.label)
            features["image/segmentation/class/encoded"] = encode_mask(whole.draw())
            features["image/segmentation/class/format"] = "png"
        return features


def _with_masks(
    placed: list[PlacedBox],
    frame: Frame,
    picture: Mapping[str, Any],
    reader: BoxReader,
    place: str,
) -> tuple[list[PlacedBox], list[Mask]]:
    """The objects whose region is good, and the mask of each on the stored picture."""
    height, width = picture["image/height"], picture["image/width"]
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
    if area >= 0:
        return area
    ymin, xmin, ymax, xmax = item.box
    return (ymax - ymin) * (xmax - xmin) * pixel_count


# -- finding -------------------------------------------------------------------------------------


def _inside(root: Path, images: Path) -> str:
    """The folder of pictures, relative to the root."""
    full = images if images.is_dir() else root / images
    path = os.path.relpath(full.resolve(), root.resolve()).replace(os.sep, "/")
    if not full.is_dir() or path == ".." or path.startswith("../"):
        raise OptionError(f"images is {images}; expected a folder inside of {root}")
    return "" if path == "." else path


def _found(index: FileIndex) -> dict[str, str]:
    """split -> JSON file; one file alone is no split.

    Raises:
        SourceError: there is none, or it is not clear which are meant.
    """
    documents = [path for path in index.paths if path.lower().endswith(".json")]
    groups = (
        [path for path in documents if posixpath.basename(path) == _SPLIT_FILE],
        [path for path in documents if posixpath.dirname(path).lower() == "annotations"],
        [path for path in documents if "/" not in path],
        documents,
    )
    for group in groups:
        known = [path for path in group if looks_like_coco(index.full_path(path))]
        instances = [path for path in known if "instances" in posixpath.basename(path)]
        boxed = instances or [path for path in known if not _is_of_other_task(path)]
        if boxed:
            return _by_split(boxed)
    raise no_files(index.root, _EXPECTED, index)


def _is_of_other_task(path: str) -> bool:
    return posixpath.basename(path).startswith(_OTHER_TASKS)


def _by_split(paths: list[str]) -> dict[str, str]:
    if len(paths) == 1:
        return {"": paths[0]}
    for tokens_of in (_split_words, _split_words_with_years):
        splits = {tuple(tokens_of(path)): path for path in paths}
        if len(splits) == len(paths) and all(len(words) == 1 for words in splits):
            return {words[0]: path for words, path in splits.items()}
    raise SourceError(
        f"there are {len(paths)} annotation files, and their names do not tell one split each: "
        f"{some(paths)}; say which: annotations='{paths[0]}', or one for each split: "
        f"annotations={{'train': '{paths[0]}', ...}}"
    )


def _split_words(path: str) -> list[str]:
    """Names of splits in the file's name, or that of its folder: instances_train2017 -> train."""
    folder, name = posixpath.split(path)
    source = posixpath.basename(folder) if name == _SPLIT_FILE else posixpath.splitext(name)[0]
    words = re.findall(r"[A-Za-z]+", source)
    return [word for word in words if word.lower() in SPLIT_NAMES]


def _split_words_with_years(path: str) -> list[str]:
    words = re.findall(r"[A-Za-z]+\d+", posixpath.splitext(posixpath.basename(path))[0])
    return [word for word in words if word.rstrip("0123456789").lower() in SPLIT_NAMES]


def _folders(index: FileIndex, file: CocoFile, split: str) -> list[str]:
    """Where pictures are looked for, best first: beside the file, folders named like it, images."""
    own = posixpath.dirname(file.name)
    words = {split.lower(), *(word.lower() for word in _split_words_with_years(file.name))}
    words.update(word.lower() for word in _split_words(file.name))
    folders = sorted({posixpath.dirname(path) for path in index.paths if has_picture_name(path)})
    above = {posixpath.dirname(folder) for folder in folders}

    def rank(folder: str) -> tuple[int, str]:
        last = posixpath.basename(folder).lower()
        if folder == own:
            return 0, folder
        if last in words:
            return 1, folder
        return (2 if last in _PICTURE_FOLDERS else 3), folder

    near = {own, posixpath.dirname(own), ""}
    wanted = [folder for folder in {*folders, *above, *near} if rank(folder)[0] < 3]
    return list(dict.fromkeys([*sorted(wanted, key=rank), *sorted(near)]))


def _entry(
    index: FileIndex, folders: list[str], file: CocoFile, image: Mapping[str, Any]
) -> _Entry:
    name = image["file_name"]
    found = index.find_picture(name, folders, file.name) if name else []
    place = f"{file.name}, picture {image['id']}"
    if isinstance(found, Found):
        where = f"{place}: {name!r}, taken: {found.path}"
        return _Entry(found.path, file, image, ((found.change, where),) if found.change else ())
    why = not_found(found, f"looked in {some(folder or '.' for folder in folders)}")
    problem = f"{place}: there is no file {name!r}; {why}"
    return _Entry(f"{file.name}/{image['id']}", file, image, problem=problem)


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
