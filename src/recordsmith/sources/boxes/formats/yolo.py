"""YOLO: one text file per image, one line per object, relative coordinates.

Layouts: Darknet (`obj.data`, `obj.names`, lists of images, labels next to them), Ultralytics
(`data.yaml`, folders or lists, `labels/` next to `images/`), or only images, labels and a file of
class names. An image without a label file has no objects.
"""

from __future__ import annotations

import bisect
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Entry,
    to_float,
)
from recordsmith.sources.boxes.placing import BoxPolicy
from recordsmith.sources.boxes.reader import Masks
from recordsmith.sources.boxes.source import (
    MAX_OPENED,
    AnnotatedSource,
    ListedImages,
    listed_entry,
)
from recordsmith.sources.boxes.yolo_files import DataFile, is_yaml_description, read_data_file
from recordsmith.sources.classes import classes_by_label
from recordsmith.sources.files.account import Reason, Role
from recordsmith.sources.files.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import IMAGE_FOLDERS, has_image_name
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import (
    common_version,
    is_absolute,
    is_file,
    path_endings,
    with_slashes,
)
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import count_notice, join_names, join_problems
from recordsmith.sources.splits import splits_by_folder
from recordsmith.stores import PlaceLike

_DESCRIPTIONS = (".yaml", ".yml", ".data")
_DARKNET = re.compile(rb"^\s*names\s*=", re.MULTILINE)
_ROW = re.compile(rb"\s*\d+(\s+-?\d*\.?\d+(e-?\d+)?){4,}\s*")
_NAMES_FILES = re.compile(r".*\.names|classes\.txt|_darknet\.labels", re.IGNORECASE)
_KEYPOINTS = "objects were packed without their keypoints"


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a label file; `class_names` has the names of classes by number."""
    objects, notes = [], []
    for line, text in read_lines(file.location):
        words = text.split()
        values = [to_float(word) for word in words[1:]]
        if file.has_keypoints and len(values) > 4:
            notes.append((_KEYPOINTS, f"{file.name}, line {line}"))
            del values[4:]
        objects.append(_object(f"line {line}", words[0], values, file.class_names))
    yield AnnotatedImage(size=None, objects=objects, notes=notes)


def _object(
    where: str, number: str, values: list[float], names: Mapping[int, str]
) -> AnnotatedObject:
    label = to_float(number)
    name = names.get(int(label)) if label >= 0 and label.is_integer() else None
    if name is None:
        known = f"; expected 0 to {max(names)}" if names else "; no class is named"
        return AnnotatedObject(where, None, fault=f"unknown class number {number!r}{known}")
    if len(values) == 4:
        x, y, half_width, half_height = values[0], values[1], values[2] / 2, values[3] / 2
        corners = (x - half_width, y - half_height, x + half_width, y + half_height)
        return AnnotatedObject(where, name, corners)
    if len(values) >= 6 and len(values) % 2 == 0:
        xs, ys = values[::2], values[1::2]
        return AnnotatedObject(
            where, name, (min(xs), min(ys), max(xs), max(ys)), json.dumps([values])
        )
    fault = f"{len(values)} numbers after the class; expected 4 (x, y, width, height) or a polygon"
    return AnnotatedObject(where, name, fault=fault)


def _is_labels(head: bytes) -> bool:
    """Whether a file begins with rows of a class number and at least four numbers."""
    lines = [line for line in head.splitlines()[:-1] or [head] if line.strip()]
    return bool(lines) and all(_ROW.fullmatch(line) for line in lines[:MAX_OPENED])


def _is_description(path: str, head: bytes) -> bool:
    """Whether a file begins like a `data.yaml` or an `obj.data`."""
    if path.lower().endswith(".data"):
        return _DARKNET.search(head) is not None
    return is_yaml_description(head.decode("utf-8", "replace"))


class Yolo(
    AnnotatedSource,
    box_format=BoxFormat(
        "yolo",
        ".txt",
        _is_labels,
        parse,
        what="images and boxes of text files such as {} (YOLO)",
        file_what="a YOLO dataset description",
        file_suffixes=_DESCRIPTIONS,
        owns_suffixes=True,
        expected="data.yaml with images/ and labels/, obj.data with obj.names and lists of images, "
        "or images with .txt labels and their class names in classes.txt",
    ),
):
    """Images with boxes in YOLO's text format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (the position in the list of names, from 1) and
    `image/object/class/text`. Polygons and oriented boxes become the boxes around them, and masks
    with `object_masks`.

    The root may also be the `data.yaml` or `obj.data` of the dataset, if there are several.

    Example:
        rs.pack(rs.Yolo("coco128/data.yaml"), "packed")
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
        object_masks: Masks | None = None,
    ) -> None:
        super().__init__(root, label_map=label_map, boxes=boxes, object_masks=object_masks)
        self._file: str | None = None
        if self.root.suffix.lower() in _DESCRIPTIONS and is_file(self.root):
            self.root, self._file = self.root.parent, self.root.name

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "file": self._file}

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        if not tree.image_counts[""]:
            return
        for path in islice(tree.files(*_DESCRIPTIONS), MAX_OPENED):
            if _is_description(path, tree.head(path)):
                what = f"images and boxes described by {path} (YOLO)"
                yield LayoutCandidate("yolo", what, Confidence.MARKED)
                return
        yield from super().find_candidates(tree)

    def _list_images(self, index: FileIndex) -> ListedImages:
        config = _find_description(index, self._file)
        names, described = self._names(index, config)
        index.account.read(Role.DESCRIPTION, set(described))
        numbers = {number + 1: name for number, name in names.items()}
        classes = classes_by_label(numbers, self._label_map, described[0])
        samples = _Samples(index, config, [*map(index.version_of, described)])
        if not samples.entries:
            if config is None:
                raise no_files(index.root, self.box_format.expected, index)
            problem = (
                join_problems(samples.path_notices) or "its folders and lists contain no images"
            )
            raise SourceError(f"nothing to pack: {problem}", path=config.name)
        return ListedImages(
            samples.entries,
            classes,
            samples.notices(),
            {
                "names_by_number": tuple(names.items()),
                "has_keypoints": config is not None and config.has_keypoints,
                "is_upright": config is not None and config.is_yaml,
            },
        )

    def _names(self, index: FileIndex, config: DataFile | None) -> tuple[dict[int, str], list[str]]:
        """The names of classes by number, and the files that describe the dataset."""
        described = [] if config is None else [config.name]
        if config is not None and config.names_file:
            name = config.names_file
            match = index.find(name, _bases(config), config.name)
            if not isinstance(match, Found):
                problem = not_found(match, name, noun="file of class names")
                raise SourceError(problem, path=config.name)
            return _read_names(index, match.path), [match.path, *described]
        paths = sorted(filter(_is_names_file, index.paths), key=_depth)
        distinct = {tuple(_read_names(index, path).items()) for path in paths}
        if len(distinct) > 1:
            raise SourceError(
                f"the class names differ between {join_names(paths)}",
                path=index.root,
                remedy="Keep only one of these files.",
            )
        if config is not None and config.names:
            return config.names, described
        if paths:
            return _read_names(index, paths[0]), [paths[0], *described]
        if config is not None:  # no classes, so no objects
            return {}, described
        yaml = [path for path in index.paths if path.lower().endswith((".yaml", ".yml"))]
        if not yaml:
            raise no_files(index.root, self.box_format.expected, index)
        raise SourceError(
            "not a dataset description: expected the top-level keys names and one of train, val, "
            "test",
            path=yaml[0],
        )


class _Samples:
    """The samples from the lists or folders in the description, or from all images.

    entries: by image path, or by list and line if the image is missing.
    path_notices: on paths in the description.
    """

    def __init__(self, index: FileIndex, config: DataFile | None, versions: list[int]) -> None:
        self.entries: dict[str, Entry] = {}
        self.path_notices: dict[str, None] = {}
        self._index = index
        self._versions = versions
        self._folders = {".", *(folder for path in index.paths for folder in _folders_above(path))}
        self._twice: list[str] = []
        self._has_lists = False
        if config is not None:
            self._add_splits(config, _bases(config))
            return
        entries = [self._entry(path) for path in index.paths if has_image_name(path)]
        if any(entry.annotation for entry in entries):
            self.entries = {entry.image: entry for entry in entries}
            for name, split in splits_by_folder(self.entries).items():
                self.entries[name].split = split

    def notices(self) -> list[str]:
        """What was found otherwise than described, and what is left out."""
        entries = self.entries.values()
        bare = sorted(
            entry.image for entry in entries if not entry.annotation and entry.fault is None
        )
        used = {entry.annotation for entry in entries}
        folders = {posixpath.dirname(path) for path in used if "labels/" in path.lower()}
        unused = [
            path
            for path in self._index.paths
            if path.endswith(".txt")
            and path not in used
            and posixpath.dirname(path) in folders
            and not _is_names_file(path)
        ]
        self._leave_undescribed()
        what = "without a label file packed without boxes"
        of_bare, of_unused = Check.IMAGE_WITHOUT_ANNOTATION, Check.ANNOTATION_WITHOUT_IMAGE
        what_unused = "without an image skipped"
        self._index.account.leave(Reason.NO_IMAGE, unused, "label file", what_unused, of_unused)
        return [
            *self.path_notices,
            *count_notice(self._twice, "repeated image", "packed once, in the first split"),
            *count_notice(bare, "image", what, check=of_bare),
        ]

    def _leave_undescribed(self) -> None:
        """Leave out images outside the description, with their label files."""
        left = [p for p in self._index.paths if has_image_name(p) and p not in self.entries]
        labelled = (
            {} if self._has_lists else {p: a for p in left if (a := self._entry(p).annotation)}
        )
        leave, what = self._index.account.leave, "missing from the description skipped"
        leave(Reason.UNLISTED, [path for path in left if path not in labelled], "image", what)
        leave(Reason.LABELLED, labelled, "image", f"with label files {what}")
        leave(Reason.LABELLED, set(labelled.values()), "label file", what)

    def _add_splits(self, config: DataFile, bases: Sequence[str]) -> None:
        seen: dict[tuple[str, ...], str] = {}
        for split, values in config.splits.items():
            resolved = (self._resolve(split, value, config.name, bases) for value in values)
            paths = tuple(dict.fromkeys(path for path in resolved if path is not None))
            earlier = seen.setdefault(paths, split)
            if paths and earlier != split:
                notice = f"{config.name}: {split} skipped, because it is the same as {earlier}"
                self.path_notices[notice] = None
                continue
            for path in paths:
                for entry in self._entries_of(path, bases):
                    self._add(split, entry)

    def _resolve(self, split: str, value: str, name: str, bases: Sequence[str]) -> str | None:
        """The folder or list that a path means; the path may be from another machine."""
        plain = with_slashes(value)
        exact = [] if is_absolute(plain) else [plain]
        for ending in [*exact, *path_endings(plain)]:
            paths = (posixpath.normpath(posixpath.join(base, ending)) for base in bases)
            for path in paths:
                if path in self._folders or path in self._index:
                    notice = f"{name}: {value} not found, used {path}"
                    if ending not in exact:
                        self.path_notices[notice] = None
                    return path
        self.path_notices[f"{name}: {split} path {value} not found"] = None
        return None

    def _entries_of(self, path: str, bases: Sequence[str]) -> Iterator[Entry]:
        """Yield the entries of a folder or list."""
        if path in self._folders:
            prefix = "" if path == "." else f"{path}/"
            paths = self._index.paths  # sorted
            for number in range(bisect.bisect_left(paths, prefix), len(paths)):
                if not paths[number].startswith(prefix):
                    break
                if has_image_name(paths[number]):
                    yield self._entry(paths[number])
            return
        self._has_lists = True
        self._index.account.read(Role.LIST, {path})
        folders = list(dict.fromkeys([*bases, posixpath.dirname(path), *_bases_above(path)]))
        for line, text in read_lines(self._index.root / path):
            entry = listed_entry(self._index, text, folders, path, line, f"{path}/{line}")
            if entry.fault is None:
                notes, entry = entry.notes, self._entry(entry.image)
                entry.notes = notes
            yield entry

    def _add(self, split: str, entry: Entry) -> None:
        name = entry.image
        entry.split = split
        earlier = self.entries.setdefault(name, entry)
        if earlier.split != split:
            self._twice.append(f"{name} in {earlier.split} and {split}")
        elif earlier is not entry:
            self._twice.append(f"{name} twice in {split}")

    def _entry(self, image: str) -> Entry:
        """An image and its label file: in labels/ like the image in images/, or next to it."""
        stem = posixpath.splitext(image)[0]
        folder, name = posixpath.split(stem)
        parts = stem.split("/")
        candidates = [
            "/".join([*parts[:place], "labels", *parts[place + 1 :]])
            for place in range(len(parts) - 2, -1, -1)
            if parts[place].lower() in IMAGE_FOLDERS
        ]
        candidates += [stem, posixpath.join(posixpath.dirname(folder), "labels", name)]
        for path in (f"{candidate}.txt" for candidate in candidates):
            if path in self._index:
                version = common_version((self._index.version_of(path), *self._versions))
                return Entry(image, path, version)
        return Entry(image)


def _folders_above(path: str) -> Iterator[str]:
    """The folders above a file, without the root."""
    while path := posixpath.dirname(path):
        yield path


def _bases_above(path: str) -> list[str]:
    """The folders above that of a file, up to the root."""
    return [*_folders_above(posixpath.dirname(path)), ""]


def _bases(config: DataFile) -> list[str]:
    """Where the folder may be that the paths in a description are relative to."""
    bases = [posixpath.dirname(config.name), *_bases_above(config.name)]
    if config.base:
        below = (posixpath.join(base, config.base) for base in bases)
        bases = [*map(posixpath.normpath, below), *bases]
    return list(dict.fromkeys(base for base in bases if not base.startswith(("../", "/"))))


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _find_description(index: FileIndex, only: str | None) -> DataFile | None:
    """Read the description of the dataset: the one to use, or the nearest to the root."""
    paths = sorted(index.paths, key=_depth) if only is None else [only]
    for suffixes in (_DESCRIPTIONS[:2], _DESCRIPTIONS[2:]):
        named = (path for path in paths if path.lower().endswith(suffixes))
        files = [file for path in named if (file := read_data_file(index.root / path, path))]
        nearest = [file for file in files if file.name.count("/") == files[0].name.count("/")]
        if len(nearest) > 1:
            raise SourceError(
                f"several dataset descriptions: {join_names(file.name for file in nearest)}",
                path=index.root,
                remedy=f"Pass one of them, such as {index.root / nearest[0].name}.",
            )
        if nearest:
            return nearest[0]
    return None


def _is_names_file(path: str) -> bool:
    return _NAMES_FILES.fullmatch(posixpath.basename(path)) is not None


def _read_names(index: FileIndex, path: str) -> dict[int, str]:
    """Class names, one per line, numbered from 0; a blank line is a class without a name."""
    return {number - 1: name for number, name in read_lines(index.root / path)}
