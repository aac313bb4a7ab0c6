"""YOLO's files: what describes the dataset, which pictures it has, and where their labels are.

Darknet's layout (`obj.data`, `obj.names`, lists of pictures, labels beside them), Ultralytics'
(`data.yaml`, folders or lists, `labels/` beside `images/`), or pictures, labels and a file of
class names without any of these.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.sources.entries import Entry, notes_of
from recordsmith.sources.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.foreign_paths import is_absolute, tails
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.small_texts import read_lines
from recordsmith.sources.splits import split_lists, splits_by_folder
from recordsmith.sources.wording import in_full, some, tally
from recordsmith.sources.yolo_lists import DataFile, read_darknet_data, read_data_yaml, read_names

_EXPECTED = (
    "data.yaml with images/ and labels/, obj.data with obj.names and lists of pictures, or "
    "pictures with .txt labels and their class names in classes.txt"
)
_NAMES_FILES = re.compile(r"(?:.*\.names|classes\.txt|_darknet\.labels)", re.IGNORECASE)
_PICTURE_FOLDERS = frozenset(("images", "jpegimages"))


class FoundSamples(NamedTuple):
    """What is to be packed.

    entries: by the path of the picture, or of the list and its line where there is no picture;
        annotations are paths of label files.
    splits: of the samples, by the same names, if there are several.
    class_names: by class number, from 0.
    description: paths of the files that tell of the dataset; the first has the names of classes.
    is_upright: whether boxes are drawn on pictures as their EXIF orientation turns them.
    """

    entries: dict[str, Entry[str]]
    splits: dict[str, str]
    class_names: dict[int, str]
    description: list[str]
    notices: list[str]
    is_upright: bool
    has_keypoints: bool


class _Config(NamedTuple):
    """The file that describes the dataset, where its paths begin, and what is in it."""

    name: str
    bases: list[str]
    data: DataFile
    is_yaml: bool


def find_samples(index: FileIndex, described_by: str | None = None) -> FoundSamples:
    """Find pictures and label files; `described_by` is the YAML or data file that counts.

    Raises:
        SourceError: there is nothing of the kind, or what describes it is not understood.
        FileAccessError: a file cannot be read.
    """
    config = _config(index, described_by)
    names_file = _names_file(index, config)
    if config is not None and config.data.names:
        names, described = config.data.names, [config.name]
    elif names_file is not None:
        names, described = read_names(index.full_path(names_file)), [names_file]
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
        found = in_full(notices) or "no pictures in what it names"
        raise SourceError(f"nothing to pack: {config.name} leads to no pictures: {found}")
    count = None if config is None else config.data.class_count
    if count is not None and count != len(names):
        notices.append(f"{described[0]} has {len(names)} class names, and says they are {count}")
    return FoundSamples(
        survey.entries,
        survey.splits if len(set(survey.splits.values())) > 1 else {},
        names,
        described,
        notices,
        is_upright=config is not None and config.is_yaml,
        has_keypoints=config is not None and config.data.has_keypoints,
    )


class _Survey:
    """The samples: from the lists or folders that the description names, or all pictures."""

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
        """What there is to say."""
        notices = list(self._notices)
        if self._twice:
            notices.append(f"named twice, of which the first counts: {some(self._twice)}")
        entries = self.entries.values()
        bare = sorted(e.picture for e in entries if e.annotation is None and e.problem is None)
        if bare:
            notices.append(f"pictures without a label file, packed without boxes: {tally(bare)}")
        if self._index.hidden:
            notices.append(f"hidden: {some(self._index.hidden)}")
        return notices

    def _add_splits(self, config: _Config) -> None:
        seen: dict[tuple[str, ...], str] = {}
        for split, values in config.data.splits.items():
            found = []
            for value in values:
                path = self._resolved(value, config)
                if path is None:
                    self._notices.append(f"{config.name}: {split} is {value}, which is not there")
                else:
                    found.append(path)
            earlier = seen.setdefault(tuple(found), split)
            if found and earlier != split:
                self._notices.append(
                    f"{config.name}: {split} names the same as {earlier}, and is no split"
                )
                continue
            for path in found:
                if path in self._folders:
                    self._add_folder(split, path)
                else:
                    self._add_list(split, path, config.bases)

    def _resolved(self, value: str, config: _Config) -> str | None:
        """The folder or list that a path means, as it may be written for another machine."""
        plain = value.replace("\\", "/")
        if not is_absolute(plain) and (path := self._below(plain, config.bases)) is not None:
            return path
        for tail in tails(plain):
            path = self._below(tail, config.bases)
            if path is not None:
                told = f"{config.name}: {value} is not there, taken: {path}"
                if told not in self._notices:
                    self._notices.append(told)
                return path
        return None

    def _below(self, name: str, bases: Sequence[str]) -> str | None:
        """The folder or file of that name, from the first base that has one."""
        paths = (posixpath.normpath(posixpath.join(base, name)) for base in bases)
        return next((path for path in paths if path in self._folders or path in self._index), None)

    def _add_folder(self, split: str, folder: str) -> None:
        prefix = "" if folder == "." else f"{folder}/"
        for path in self._index.paths:
            if path.startswith(prefix) and has_picture_name(path):
                self._add(split, Entry(path, self._labels_of(path)))

    def _add_list(self, split: str, path: str, bases: Sequence[str]) -> None:
        folders = list(dict.fromkeys([*bases, posixpath.dirname(path), *_above(path)]))
        for line, text in read_lines(self._index.full_path(path)):
            found = self._index.find_picture(text, folders, path)
            if isinstance(found, Found) and has_picture_name(found.path):
                notes = notes_of(found, text, f"{path}, line {line}")
                entry = Entry(found.path, self._labels_of(found.path), notes)
            else:
                entry = Entry(
                    f"{path}/{line}",
                    problem=f"{path}, line {line} names the picture {text!r}: {not_found(found)}",
                )
            self._add(split, entry)

    def _add_all(self) -> None:
        pictures = [path for path in self._index.paths if has_picture_name(path)]
        labelled = {path: labels for path in pictures if (labels := self._labels_of(path))}
        if labelled:
            self.entries = {path: Entry(path, labelled.get(path)) for path in pictures}
            self.splits = splits_by_folder(pictures)

    def _add(self, split: str, entry: Entry[str]) -> None:
        name = entry.picture
        if name not in self.entries:
            self.entries[name], self.splits[name] = entry, split
        elif self.splits[name] != split:
            self._twice.append(f"{name} in {self.splits[name]} and {split}")
        else:
            self._twice.append(f"{name} twice in {split}")

    def _labels_of(self, picture: str) -> str | None:
        """The label file: in labels/ as the picture is in images/, or beside it."""
        stem = posixpath.splitext(picture)[0]
        folder, name = posixpath.split(stem)
        parts = stem.split("/")
        candidates = [
            "/".join([*parts[:place], "labels", *parts[place + 1 :]])
            for place in range(len(parts) - 2, -1, -1)
            if parts[place].lower() in _PICTURE_FOLDERS
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
    """There are no names of classes; says what the YAML that is there lacks."""
    nothing = no_files(index.root, _EXPECTED, index)
    yaml = [path for path in index.paths if path.lower().endswith((".yaml", ".yml"))]
    if not yaml:
        return nothing
    return SourceError(
        f"{nothing}. {yaml[0]} does not have both names and one of train, val, test as keys at its "
        "left margin"
    )


def _config(index: FileIndex, only: str | None = None) -> _Config | None:
    """What describes the dataset: data.yaml, or obj.data.

    Raises:
        SourceError: there are several, and `only` is none of them; or it is not understood.
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
                data = read(index.full_path(path), path)
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
                f"{some(config.name for config in nearest)} in {index.root} each describe a "
                f"dataset; say which by its path, such as {index.root / nearest[0].name}"
            )
        if nearest:
            return nearest[0]
    return None


def _names_file(index: FileIndex, config: _Config | None) -> str | None:
    """The file with the class names, a line each."""
    if config is not None and config.data.names_file:
        found = index.find(config.data.names_file, config.bases, config.name)
        if isinstance(found, Found):
            return found.path
        raise SourceError(
            f"{config.name} names the class names {config.data.names_file!r}: "
            f"{not_found(found, 'there is no such file')}"
        )
    paths = [path for path in index.paths if _NAMES_FILES.fullmatch(posixpath.basename(path))]
    paths.sort(key=lambda path: (path.count("/"), path))
    distinct = {tuple(sorted(read_names(index.full_path(path)).items())) for path in paths}
    if len(distinct) > 1:
        raise SourceError(f"the class names differ between {some(paths)}; keep one of them")
    return paths[0] if paths else None
