"""YOLO: one text file per image, one line per object, relative coordinates.

Layouts: Darknet (`obj.data`, `obj.names`, lists of images, labels next to them), Ultralytics
(`data.yaml`, folders or lists, `labels/` next to `images/`), or only images, labels and a file of
class names. An image without a label file has no objects.
"""

from __future__ import annotations

import bisect
import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Contents,
    Entry,
    outlined,
    quad_object,
)
from recordsmith.sources.boxes.formats import dota
from recordsmith.sources.boxes.source import (
    AnnotatedSource,
    BoxOptions,
    ListedImages,
    left_out_notice,
    listed_entries,
    path_notes,
)
from recordsmith.sources.boxes.yolo_files import DataFile, is_yaml_description, read_data_file
from recordsmith.sources.boxes.yolo_label_files import OTHER_SPELLING, LabelFiles
from recordsmith.sources.boxes.yolo_rows import (
    Keypoints,
    advice,
    are_oriented,
    find_keypoints,
    is_class_number,
    is_row,
    keypoints_of,
    numbers_in,
    parse_kpt_shape,
    rows_in,
)
from recordsmith.sources.classes import classes_by_label
from recordsmith.sources.files.account import Reason, Role
from recordsmith.sources.files.file_index import FileIndex, Found, name_key, no_files, not_found
from recordsmith.sources.files.file_tree import MAX_OPENED, FileTree
from recordsmith.sources.files.images import has_image_name, stem_of
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import (
    common_version,
    is_absolute,
    is_file,
    path_endings,
    with_slashes,
)
from recordsmith.sources.files.text_file import check_encoding
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import Fault, count_notice, join_names, join_problems
from recordsmith.sources.splits import splits_by_folder
from recordsmith.stores import PlaceLike
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.explaining import check_word

if TYPE_CHECKING:
    from typing_extensions import Unpack

YoloTask = Literal["obb", "segment", "pose"]
"""What rows with more than four numbers have: four corners, a polygon, or a box and keypoints."""

_DESCRIPTIONS = (".yaml", ".yml", ".data")
_DARKNET = re.compile(rb"^[ \t]*names\s*=", re.MULTILINE)
_NAMES_FILES = re.compile(r".*\.names|classes\.txt|_darknet\.labels", re.IGNORECASE)
_AS_ORIENTED = (
    "rows of four points were read as rotated boxes (OBB); "
    f"{option('yolo_task', 'segment')} reads polygons"
)
_SLACK = 0.01  # how far outside the image Ultralytics takes a point as not labelled


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a label file; `class_names` has the names of classes by number."""
    objects = []
    for line, text in read_lines(file.location):
        label, *values = numbers_in(text)
        name = file.class_names.get(int(label)) if is_class_number(label) else None
        if name is None:
            fault = _unknown_class(text.split(maxsplit=1)[0], file.class_names)
            objects.append(AnnotatedObject(f"line {line}", None, fault=fault))
        else:
            objects.append(
                _oriented(f"line {line}", name, values)
                if file.has_corners
                else _object(f"line {line}", name, values, file.keypoints)
            )
    yield AnnotatedImage(size=None, objects=objects)


def _unknown_class(number: str, names: Mapping[int, str]) -> str:
    known = f"; expected 0 to {max(names)}" if names else "; no class is named"
    return f"unknown class number {number!r:.60}{known}"


def _oriented(where: str, name: str, values: list[float]) -> AnnotatedObject:
    if len(values) == 8:
        return quad_object(where, name, [*zip(values[::2], values[1::2], strict=True)])
    expected = f"8, of four corners; {option('yolo_task', 'segment')} reads polygons"
    fault = f"{len(values)} numbers after the class; expected {expected}"
    return AnnotatedObject(where, name, fault=fault)


def _object(
    where: str, name: str, values: list[float], keypoints: Keypoints | None
) -> AnnotatedObject:
    """The box with its keypoints, or the box around a polygon."""
    if len(values) == 4 or (keypoints and len(values) == 4 + math.prod(keypoints)):
        x, y, half_width, half_height = values[0], values[1], values[2] / 2, values[3] / 2
        corners = (x - half_width, y - half_height, x + half_width, y + half_height)
        points = values[4:]
        if points and keypoints and keypoints[1] == 2:
            pairs = zip(points[::2], points[1::2], strict=True)
            points = [value for point in pairs for value in (*point, _visibility(*point))]
        return AnnotatedObject(where, name, corners, points=points)
    found = f"{len(values)} numbers after the class"
    if keypoints:
        count, size = keypoints
        fault = (
            f"{found}; expected 4 or {4 + count * size}, for {count} keypoints of {size} numbers"
        )
    elif keypoints is None and (shape := keypoints_of(values)):
        fault = f"{found} may be a polygon, or a box and keypoints: {advice(shape)}"
    elif len(values) >= 6 and len(values) % 2 == 0:
        return outlined(where, name, [*zip(values[::2], values[1::2], strict=True)])
    else:
        fault = f"{found}; expected 4 (x, y, width, height) or a polygon"
    return AnnotatedObject(where, name, fault=fault)


def _visibility(x: float, y: float) -> int:
    """The visibility of a point without one: as in Ultralytics, 0 at 0, 0 and just outside."""
    return 0 if x == y == 0 or -_SLACK <= min(x, y) < 0 else 2


def _is_labels(head: bytes) -> bool:
    """Whether a file begins with rows of a class number and at least four numbers."""
    rows = [numbers for _, numbers in islice(rows_in(head), MAX_OPENED)]
    return bool(rows) and all(map(is_row, rows[:-1] or rows))  # the last one may be damaged


def _names_files(tree: FileTree) -> Iterator[str]:
    return filter(_is_names_file, tree.files(".txt", ".names", ".labels"))


def _may_be_read(tree: FileTree) -> bool:
    """Whether there are names of classes, or a text has the name of an image."""
    if any(_names_files(tree)):
        return True
    images = {name_key(stem_of(name)) for scan in tree.folders.values() for name in scan.images}
    return any(name_key(stem_of(path)) in images for path in tree.files(".txt"))


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

    Each sample has the image and box features of `Voc`; labels are positions in the list of names,
    from 1. Polygons become the boxes around them, and masks with `object_masks`. If all rows have
    four points, they are oriented boxes (OBB), whose corners each sample has as well, as in `Dota`.
    The keypoints of YOLO-pose are read if `kpt_shape` is known; `data.yaml` has it, and may have
    `kpt_names` and `flip_idx`.

    The root may also be the `data.yaml` or `obj.data` of the dataset, if there are several.

    Example:
        rs.pack(rs.Yolo("coco128/data.yaml"), "packed")
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        kpt_shape: str | None = None,
        yolo_task: YoloTask | None = None,
        encoding: str = "utf-8",
        **options: Unpack[BoxOptions],
    ) -> None:
        """
        Args:
            root: the folder of images and labels, or the description of the dataset.
            kpt_shape: the number of keypoints and of values of each, such as `17,3`. `none` if rows
                with more than four numbers are polygons. None for `kpt_shape` of `data.yaml`;
                without it, rows that may have keypoints are refused.
            yolo_task: what rows with more than four numbers have: the corners of oriented boxes
                (`obb`), polygons (`segment`), or boxes and keypoints (`pose`). None to detect it.
            encoding: of class names and lists of images.
            options: `label_map`, `boxes`, `drawn` and `object_masks`, as in `Voc`.
        """
        super().__init__(root, **options)
        self._keypoints = None if kpt_shape is None else parse_kpt_shape(kpt_shape)
        if yolo_task is not None:
            check_word("yolo_task", yolo_task, get_args(YoloTask))
        if self._keypoints and yolo_task in ("obb", "segment"):
            raise OptionError(option="kpt_shape", value=kpt_shape, expected="None: no poses")
        self._task = yolo_task
        self._encoding = check_encoding(encoding)
        self._file: str | None = None
        if self.root.suffix.lower() in _DESCRIPTIONS and is_file(self.root):
            self.root, self._file = self.root.parent, self.root.name

    def describe(self) -> Mapping[str, Any]:
        return {
            **super().describe(),
            "file": self._file,
            **({} if self._keypoints is None else {"kpt_shape": list(self._keypoints)}),
            **({} if self._task is None else {"yolo_task": self._task}),
            **({} if self._encoding == "utf-8" else {"encoding": self._encoding}),
        }

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        if not tree.image_counts[""]:
            return
        texts = [tree.head(path) for path in islice(tree.files(".txt"), MAX_OPENED)]
        if any(map(dota.matches, texts)) and not any(map(_is_labels, texts)):
            return  # a data.yaml of Roboflow's, next to labels of DOTA
        lengths = {len(row) for text in texts for _, row in rows_in(text) if len(row) > 5}
        hint = f"for masks of the polygons, pass {option('object_masks', 'instance')}"
        hints = {"object_masks": hint} if len(lengths) > 1 else {}  # others may be keypoints
        for path in islice(tree.files(*_DESCRIPTIONS), MAX_OPENED):
            if _is_description(path, tree.head(path)):
                what = f"images and boxes described by {path} (YOLO)"
                yield LayoutCandidate("yolo", what, Confidence.MARKED, hints=hints)
                return
        yield from (replace(found, hints=hints) for found in super().find_candidates(tree))

    @classmethod
    def _matching(cls, tree: FileTree) -> list[str]:
        """The first label files; those of images without objects are empty."""
        paths = list(islice(tree.files(cls.box_format.suffix), MAX_OPENED))
        known = [path for path in paths if cls.box_format.matches(tree.head(path))]
        if known and _may_be_read(tree):
            return known
        labels = [path for path in paths if not (_is_names_file(path) or tree.head(path).strip())]
        return labels if labels and any(_names_files(tree)) else []

    def _list_images(self, index: FileIndex) -> ListedImages:
        config = _find_description(index, self._file, self._encoding)
        names, described = self._names(index, config)
        index.account.read(Role.DESCRIPTION, set(described))
        numbers = {number + 1: name for number, name in names.items()}
        classes = classes_by_label(numbers, self._label_map, described[0])
        versions = [*map(index.version_of, described)]
        samples = _Samples(index, config, versions, self._encoding)
        if not samples.entries:
            if config is None:
                raise no_files(index.root, self.box_format.expected, index)
            problem = join_problems(samples.path_notices) or "its paths contain no images"
            raise SourceError(f"nothing to pack: {problem}", path=config.name)
        keypoints = self._keypoints
        if keypoints is None and config is not None:
            keypoints = config.keypoints
        if self._task in ("obb", "segment"):
            keypoints = ()
        heads = samples.first_labels()
        keypoints = find_keypoints(heads, keypoints)
        if self._task == "pose" and not keypoints:
            raise OptionError(option="kpt_shape", value=None, expected="that of the poses: '17,3'")
        is_detected = self._task is None and not keypoints and are_oriented(heads)
        is_oriented = self._task == "obb" or is_detected
        contents = Contents(has_points=bool(keypoints), has_corners=is_oriented)
        if keypoints:
            of_class = (config or DataFile(str(self.root), False, {}, {})).keypoint_class
            contents.keypoint_classes = {
                name: of_class(number, keypoints[0]) for number, name in names.items()
            }
        return ListedImages(
            samples.entries,
            classes,
            [*samples.notices(), *([_AS_ORIENTED] if is_detected else [])],
            {
                "names_by_number": tuple(names.items()),
                "keypoints": keypoints,
                "is_upright": config is not None and config.is_yaml,
            },
            contents=contents,
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
            return self._read_names(index, match.path), [match.path, *described]
        paths = sorted(filter(_is_names_file, index.paths), key=_depth)
        listed = [self._read_names(index, path) for path in paths]
        if any(names != listed[0] for names in listed):
            raise SourceError(
                f"the class names differ between {join_names(paths)}",
                path=index.root,
                remedy="Keep only one of these files.",
            )
        if config is not None and config.names:
            return config.names, described
        if paths:
            return listed[0], [paths[0], *described]
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

    def _read_names(self, index: FileIndex, path: str) -> dict[int, str]:
        """Class names, one per line, from 0; a blank line is a class without a name."""
        lines = read_lines(index.root / path, path, self._encoding)
        return {number - 1: name for number, name in lines}


class _Samples:
    """The samples from the lists or folders in the description, or from all images.

    entries: by image path, or by list and line if the image is missing.
    path_notices: on paths in the description.
    """

    def __init__(
        self, index: FileIndex, config: DataFile | None, versions: list[int], encoding: str
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.path_notices: dict[str, None] = {}
        self._index = index
        self._versions = versions
        self._encoding = None if encoding == "utf-8" else encoding
        self._labels = LabelFiles(index)
        self._folders = {".", *(folder for path in index.paths for folder in _folders_above(path))}
        self._twice: list[str] = []
        self._left_out_count = 0
        self._has_lists = False
        if config is not None:
            self._add_splits(config, _bases(config))
        else:
            entries = map(self._entry, filter(has_image_name, index.paths))
            self.entries = {entry.image: entry for entry in entries}
            for name, split in splits_by_folder(self.entries).items():
                self.entries[name].split = split
        if not any(entry.annotation or entry.fault for entry in self.entries.values()):
            self._check_labels(config)
        self._check_shared()
        self._left_out = left_out_notice(self._left_out_count, "listed image", self.entries, index)

    def first_labels(self) -> dict[str, bytes]:
        tree = self._index.tree
        sizes = self._index.size_and_version
        paths = (path for path in tree.files(".txt") if path in self._used and sizes(path)[0])
        return {path: tree.head(path) for path in islice(paths, MAX_OPENED)}

    @cached_property
    def _used(self) -> set[str]:
        """The label files of images; an empty path for images without one."""
        return {entry.annotation for entry in self.entries.values()}

    def notices(self) -> list[str]:
        """What was found otherwise than described, and what is left out."""
        used = self._used
        folders = {posixpath.dirname(path) for path in used if "labels/" in path.lower()}
        unused = [
            path
            for path in self._index.paths
            if path.lower().endswith(".txt")
            and path not in used
            and posixpath.dirname(path) in folders
            and not _is_names_file(path)
        ]
        self._leave_undescribed()
        sizes = [self._index.size_and_version(path)[0] for path in used if path]
        empty = f"all {len(sizes):,} label files are empty"
        what, check = "without an image skipped", Check.ANNOTATION_WITHOUT_IMAGE
        self._index.account.leave(Reason.NO_IMAGE, unused, "label file", what, check)
        return [
            *self._left_out,
            *self.path_notices,
            *([] if any(sizes) or not sizes else [empty]),
            *count_notice(self._twice, "repeated image", "packed once, in the first split"),
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
        lines = read_lines(self._index.root / path, path, self._encoding)
        for listed in listed_entries(self._index, lines, folders, path).values():
            if listed is None:
                self._left_out_count += 1
            elif listed.fault is not None:
                yield listed
            else:
                entry = self._entry(listed.image)
                entry.notes += listed.notes
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
        label = self._labels.find(image)
        if isinstance(label, Found):
            path = label.path
            version = common_version((self._index.version_of(path), *self._versions))
            return Entry(image, path, version, notes=path_notes(label, image, path))
        if label:
            return Entry(image, fault=Fault(not_found(label, image, noun="label file of"), image))
        return Entry(image)

    def _check_labels(self, config: DataFile | None) -> None:
        """Check whether there are label files; called if no image has one."""
        tree, images = self._index.tree, [*self.entries]
        texts = islice(tree.files(".txt"), MAX_OPENED)
        heads = {path: tree.head(path) for path in texts if not _is_names_file(path)}
        labels = [
            path
            for path, head in heads.items()
            if _is_labels(head) or (config is None and not head.strip())
        ]
        if labels and images:
            raise SourceError(
                f"no label file has the name of an image: label file {labels[0]}, image "
                f"{images[0]}",
                path=self._index.root,
                remedy="Rename them, or pack the images without labels with "
                f"{option('format', 'files')}.",
            )
        if config is None:
            self.entries = {}

    def _check_shared(self) -> None:
        """A label file of several images is a fault of each, unless it has the name of one."""
        users: dict[str, Entry] = {}
        shared: dict[str, list[Entry]] = {}
        for entry in self.entries.values():
            first = users.setdefault(entry.annotation, entry) if entry.annotation else entry
            if first is not entry:
                shared.setdefault(entry.annotation, [first]).append(entry)
        for path, entries in shared.items():
            images = [entry.image for entry in entries]
            problem = f"the label file of {len(images)} images: {join_names(images)}"
            exact = [entry for entry in entries if stem_of(entry.image) == stem_of(path)]
            for entry in entries:
                if len(exact) != 1:
                    remedy = "Rename all but one of the images, or remove them."
                    entry.fault = Fault(problem, path, remedy=remedy)
                elif entry is not exact[0]:
                    entry.annotation = ""
                    entry.notes = tuple(n for n in entry.notes if n[0] != OTHER_SPELLING)
        for image in sorted(filter(has_image_name, self._index.left_out)):
            found = self._labels.find(image)
            if isinstance(found, Found) and (user := users.get(found.path)) is not None:
                user.fault = Fault(
                    f"the label file of {user.image} and of {image}, which is left out",
                    found.path,
                    remedy=f"Leave {user.image} out as well, or rename it.",
                )


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


def _find_description(index: FileIndex, only: str | None, encoding: str) -> DataFile | None:
    """Read the description of the dataset: the one to use, or the nearest to the root."""
    paths = sorted(index.paths, key=_depth) if only is None else [only]
    for suffixes in (_DESCRIPTIONS[:2], _DESCRIPTIONS[2:]):
        named = (path for path in paths if path.lower().endswith(suffixes))
        read = (read_data_file(index.root / path, path, encoding) for path in named)
        files = [file for file in read if file]
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
