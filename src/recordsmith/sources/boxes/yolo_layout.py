"""Find a YOLO dataset's description, images and label files.

Layouts: Darknet (`obj.data`, `obj.names`, lists of images, labels next to them), Ultralytics
(`data.yaml`, folders or lists, `labels/` next to `images/`), or only images, labels and a file of
class names.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotated import Entry, path_notes
from recordsmith.sources.boxes.yolo_lists import (
    DataFile,
    read_darknet_data,
    read_data_yaml,
    read_names,
)
from recordsmith.sources.files.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import is_absolute, path_endings, with_slashes
from recordsmith.sources.flaws import Check
from recordsmith.sources.problems import Fault, count_notice, join_names, join_problems
from recordsmith.sources.splits import split_lists, splits_by_folder
from recordsmith.words import count as counted

_EXPECTED = (
    "data.yaml with images/ and labels/, obj.data with obj.names and lists of images, or "
    "images with .txt labels and their class names in classes.txt"
)
_NAMES_FILES = re.compile(r"(?:.*\.names|classes\.txt|_darknet\.labels)", re.IGNORECASE)
_IMAGE_FOLDERS = frozenset(("images", "jpegimages"))


class YoloSamples(NamedTuple):
    """The samples to pack.

    entries: by image path, or by list and line if the image is missing; annotations are paths of
        label files.
    splits: by sample name, if there are several.
    class_names: by class number, from 0.
    description: paths of the files that describe the dataset; the first has the class names.
    is_upright: whether boxes are relative to the upright image after EXIF orientation.
    """

    entries: dict[str, Entry[str]]
    splits: dict[str, str]
    class_names: dict[int, str]
    description: list[str]
    notices: list[str]
    is_upright: bool
    has_keypoints: bool


class _Config(NamedTuple):
    """The file that describes the dataset, the bases of its paths, and its content."""

    name: str
    bases: list[str]
    data: DataFile
    is_yaml: bool


def find_samples(index: FileIndex, described_by: str | None = None) -> YoloSamples:
    """Find images and label files; `described_by` is the YAML or data file to use.

    Raises:
        SourceError: there are no YOLO files, or the description is invalid.
        FileAccessError: a file cannot be read.
    """
    config = _config(index, described_by)
    names_file = _names_file(index, config)
    if config is not None and config.data.names:
        names, described = config.data.names, [config.name]
    elif names_file is not None:
        names, described = read_names(index.root / names_file), [names_file]
        described += [] if config is None else [config.name]
    elif config is not None:  # no classes, so no objects
        names, described = {}, [config.name]
    else:
        raise _undescribed(index)
    survey = _Survey(index, config)
    notices = survey.finish()
    if not survey.entries:
        if config is None:
            raise no_files(index.root, _EXPECTED, index)
        found = join_problems(notices) or "its folders and lists contain no images"
        raise SourceError(f"nothing to pack: {found}", path=config.name)
    count = None if config is None else config.data.class_count
    if count is not None and count != len(names):
        found = counted(len(names), "class name")
        notices.append(f"{found} in {described[0]}, which announces {count}")
    return YoloSamples(
        survey.entries,
        survey.splits,
        names,
        described,
        notices,
        is_upright=config is not None and config.is_yaml,
        has_keypoints=config is not None and config.data.has_keypoints,
    )


class _Survey:
    """The samples from the lists or folders in the description, or from all images."""

    def __init__(self, index: FileIndex, config: _Config | None) -> None:
        self.entries: dict[str, Entry[str]] = {}
        self.splits: dict[str, str] = {}
        self._index = index
        self._folders = _folders(index)
        self._notices: list[str] = []
        self._twice: list[str] = []
        if config is not None:
            self._add_splits(config)
        elif lists := split_lists(path for path in index.paths if "/" not in path):
            for split, path in lists.items():
                self._add_list(split, path, [""])
        else:
            self._add_all()

    def finish(self) -> list[str]:
        """All notices."""
        entries = self.entries.values()
        bare = sorted(e.image for e in entries if e.annotation is None and e.fault is None)
        return [
            *self._notices,
            *count_notice(self._twice, "repeated image", "packed once, in the first split"),
            *count_notice(
                bare,
                "image",
                "without a label file packed without boxes",
                check=Check.IMAGE_WITHOUT_ANNOTATION,
            ),
            *count_notice(
                self._unused_labels(),
                "label file",
                "without an image skipped",
                check=Check.ANNOTATION_WITHOUT_IMAGE,
            ),
            *count_notice(self._index.hidden, "hidden file", "skipped"),
        ]

    def _unused_labels(self) -> list[str]:
        """The files in folders of labels that belong to no image."""
        used = {entry.annotation for entry in self.entries.values()}
        folders = {posixpath.dirname(path) for path in used if path is not None}
        return [
            path
            for path in self._index.paths
            if path.endswith(".txt")
            and path not in used
            and posixpath.dirname(path) in folders
            and "labels" in path.lower().split("/")[:-1]
            and not _NAMES_FILES.fullmatch(posixpath.basename(path))
        ]

    def _add_splits(self, config: _Config) -> None:
        seen: dict[tuple[str, ...], str] = {}
        for split, values in config.data.splits.items():
            found = []
            for value in values:
                path = self._resolved(value, config)
                if path is None:
                    self._notices.append(f"{config.name}: {split} path {value} not found")
                else:
                    found.append(path)
            earlier = seen.setdefault(tuple(found), split)
            if found and earlier != split:
                self._notices.append(
                    f"{config.name}: {split} skipped, because it is the same as {earlier}"
                )
                continue
            for path in found:
                if path in self._folders:
                    self._add_folder(split, path)
                else:
                    self._add_list(split, path, config.bases)

    def _resolved(self, value: str, config: _Config) -> str | None:
        """The folder or list that a path means; the path may be from another machine."""
        plain = with_slashes(value)
        if not is_absolute(plain) and (path := self._below(plain, config.bases)) is not None:
            return path
        for tail in path_endings(plain):
            path = self._below(tail, config.bases)
            if path is not None:
                found = f"{config.name}: {value} not found, used {path}"
                if found not in self._notices:
                    self._notices.append(found)
                return path
        return None

    def _below(self, name: str, bases: Sequence[str]) -> str | None:
        """The folder or file of a name, from the first base that has it."""
        paths = (posixpath.normpath(posixpath.join(base, name)) for base in bases)
        return next((path for path in paths if path in self._folders or path in self._index), None)

    def _add_folder(self, split: str, folder: str) -> None:
        prefix = "" if folder == "." else f"{folder}/"
        for path in self._index.paths:
            if path.startswith(prefix) and has_image_name(path):
                self._add(split, Entry(path, self._labels_path(path)))

    def _add_list(self, split: str, path: str, bases: Sequence[str]) -> None:
        folders = list(dict.fromkeys([*bases, posixpath.dirname(path), *_above(path)]))
        for line, text in read_lines(self._index.root / path):
            found = self._index.find_image(text, folders, path)
            if isinstance(found, Found) and has_image_name(found.path):
                notes = path_notes(found, text, f"{path}, line {line}")
                entry = Entry(found.path, self._labels_path(found.path), notes)
            else:
                check = Check.ANNOTATION_WITHOUT_IMAGE
                fault = Fault(not_found(found, text), path, line, check=check)
                entry = Entry(f"{path}/{line}", fault=fault)
            self._add(split, entry)

    def _add_all(self) -> None:
        images = [path for path in self._index.paths if has_image_name(path)]
        labelled = {path: labels for path in images if (labels := self._labels_path(path))}
        if labelled:
            self.entries = {path: Entry(path, labelled.get(path)) for path in images}
            self.splits = splits_by_folder(images)

    def _add(self, split: str, entry: Entry[str]) -> None:
        name = entry.image
        if name not in self.entries:
            self.entries[name], self.splits[name] = entry, split
        elif self.splits[name] != split:
            self._twice.append(f"{name} in {self.splits[name]} and {split}")
        else:
            self._twice.append(f"{name} twice in {split}")

    def _labels_path(self, image: str) -> str | None:
        """The label file: in labels/ like the image in images/, or next to it."""
        stem = posixpath.splitext(image)[0]
        folder, name = posixpath.split(stem)
        parts = stem.split("/")
        candidates = [
            "/".join([*parts[:place], "labels", *parts[place + 1 :]])
            for place in range(len(parts) - 2, -1, -1)
            if parts[place].lower() in _IMAGE_FOLDERS
        ]
        candidates += [stem, posixpath.join(posixpath.dirname(folder), "labels", name)]
        paths = (f"{candidate}.txt" for candidate in candidates)
        return next((path for path in paths if path in self._index), None)


def _folders(index: FileIndex) -> frozenset[str]:
    folders = {"."}
    for path in index.paths:
        folder = posixpath.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return frozenset(folders)


def _above(path: str) -> list[str]:
    """The folders above that of a file, up to the root."""
    folders = []
    folder = posixpath.dirname(path)
    while folder:
        folder = posixpath.dirname(folder)
        folders.append(folder)
    return folders or [""]


def _undescribed(index: FileIndex) -> SourceError:
    """The error for a dataset without class names."""
    nothing = no_files(index.root, _EXPECTED, index)
    yaml = [path for path in index.paths if path.lower().endswith((".yaml", ".yml"))]
    if not yaml:
        return nothing
    return SourceError(
        "not a dataset description: expected the top-level keys names and one of train, val, test",
        path=yaml[0],
    )


def _config(index: FileIndex, only: str | None = None) -> _Config | None:
    """Read the description of the dataset: data.yaml or obj.data.

    Args:
        only: the one to use.

    Raises:
        SourceError: there are several, or the description is invalid.
    """
    paths = [only] if only is not None else index.paths
    for suffixes, read in (
        ((".yaml", ".yml"), read_data_yaml),
        ((".data",), read_darknet_data),
    ):
        is_yaml = ".yaml" in suffixes
        found = []
        for path in sorted(paths, key=lambda path: (path.count("/"), path)):
            if path.lower().endswith(suffixes):
                data = read(index.root / path, path)
                if data is not None:
                    bases = [posixpath.dirname(path), *_above(path)]
                    if data.base:
                        below = (posixpath.join(base, data.base) for base in list(bases))
                        bases = [*map(posixpath.normpath, below), *bases]
                    inside = [base for base in bases if not base.startswith(("../", "/"))]
                    found.append(_Config(path, list(dict.fromkeys(inside)), data, is_yaml))
        nearest = [config for config in found if config.name.count("/") == found[0].name.count("/")]
        if len(nearest) > 1:
            raise SourceError(
                f"several dataset descriptions: {join_names(config.name for config in nearest)}",
                path=index.root,
                remedy=f"Pass one of them, such as {index.root / nearest[0].name}.",
            )
        if nearest:
            return nearest[0]
    return None


def _names_file(index: FileIndex, config: _Config | None) -> str | None:
    """The file with one class name per line."""
    if config is not None and config.data.names_file:
        found = index.find(config.data.names_file, config.bases, config.name)
        if isinstance(found, Found):
            return found.path
        name = config.data.names_file
        raise SourceError(not_found(found, name, noun="file of class names"), path=config.name)
    paths = [path for path in index.paths if _NAMES_FILES.fullmatch(posixpath.basename(path))]
    paths.sort(key=lambda path: (path.count("/"), path))
    distinct = {tuple(sorted(read_names(index.root / path).items())) for path in paths}
    if len(distinct) > 1:
        raise SourceError(
            f"the class names differ between {join_names(paths)}",
            path=index.root,
            remedy="Keep only one of these files.",
        )
    return paths[0] if paths else None
