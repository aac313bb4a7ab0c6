"""YOLO: a text file for each picture, a line for each object, all numbers relative.

Darknet's layout (`obj.data`, `obj.names`, lists of pictures, labels beside them), Ultralytics'
(`data.yaml`, folders or lists, `labels/` beside `images/`), or pictures, labels and a file of
class names without any of these. A picture without a label file is a picture without objects.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recordsmith.errors import SourceError
from recordsmith.example import Kind
from recordsmith.files import PathLike, as_path
from recordsmith.sources.boxes import (
    BOX_KINDS,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    box_features,
    check_policy,
    number,
)
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.contract import Listing, Note, Sample, unheard
from recordsmith.sources.file_index import (
    FileIndex,
    Found,
    no_files,
    not_found,
    splits_by_folder,
)
from recordsmith.sources.pictures import has_picture_name, read_picture
from recordsmith.sources.splits import SPLIT_NAMES, in_split_order
from recordsmith.sources.wording import listed, some, tally
from recordsmith.sources.yolo_lists import (
    DataFile,
    read_darknet_data,
    read_data_yaml,
    read_lines,
    read_names,
)

_EXPECTED = (
    "data.yaml with images/ and labels/, obj.data with obj.names and lists of pictures, or "
    "pictures with .txt labels and their class names in classes.txt"
)
_NAMES_FILES = re.compile(r"(?:.*\.names|classes\.txt|_darknet\.labels)", re.IGNORECASE)
_DESCRIPTIONS = (".yaml", ".yml", ".data")
_PICTURE_FOLDERS = frozenset(("images", "jpegimages"))
_DRIVE = re.compile(r"[A-Za-z]:")
_OUTLINED = "an object drawn as a polygon was packed as the box around it"
_KEYPOINTS = "key points of objects were left out; their boxes are packed"


class _Entry(NamedTuple):
    """A sample: its picture and its label file, if it has one; or why it cannot be read."""

    picture: str
    labels: str | None = None
    notes: tuple[tuple[str, str], ...] = ()
    problem: str | None = None


class _Config(NamedTuple):
    """The file that describes the dataset, where its paths begin, and what is in it."""

    name: str
    bases: list[str]
    data: DataFile
    is_yaml: bool


class Yolo:
    """Pictures with boxes in YOLO's text files.

    Each sample has its picture untouched (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1 of the stored picture),
    `image/object/class/label` (its number in the list of names, from 1) and
    `image/object/class/text`. Polygons become the boxes around them.

    Args:
        root: the folder that holds pictures, labels and what describes them; or the `data.yaml`
            or `obj.data` in it, where there are several.
        label_map: path of a `label_map.pbtxt`; then its numbers are the labels.
        boxes: what a wrong box does: `stop` its sample, be made right (`clip`), or left out
            (`drop`).
    """

    def __init__(
        self, root: PathLike, *, label_map: PathLike | None = None, boxes: BoxPolicy = "stop"
    ) -> None:
        path = as_path(root)
        is_description = path.is_file() and path.suffix.lower() in _DESCRIPTIONS
        self._described_by = path.name if is_description else None
        self.root = path.parent if is_description else path
        self._label_map = None if label_map is None else as_path(label_map)
        self._policy = check_policy(boxes)
        self._entries: dict[str, _Entry] = {}
        self._names: dict[int, str] = {}
        self._classes = Classes({}, "the data")
        self._is_upright = False
        self._has_keypoints = False

    def __repr__(self) -> str:
        return f"Yolo({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find pictures and label files; the order is that of the pictures' paths.

        Raises:
            SourceError: there is nothing of the kind, or what describes it is not understood.
            OptionError: the label map is none.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self.root)
        config = _config(index, self._described_by)
        names_file = _names_file(index, config)
        if config is not None and config.data.names:
            self._names, origin = config.data.names, config.name
        elif names_file is not None:
            self._names, origin = read_names(index.full_path(names_file)), names_file
        elif config is not None:  # no classes, so no objects
            self._names, origin = {}, config.name
        else:
            raise _undescribed(index)
        survey = _Survey(index, config)
        if not survey.entries:
            if config is None:
                raise no_files(self.root, _EXPECTED, index)
            found = listed(survey.finish()) or "no pictures in what it names"
            raise SourceError(f"nothing to pack: {config.name} leads to no pictures: {found}")
        numbers = {label + 1: name for label, name in self._names.items()}
        self._classes = classes_by_label(numbers, self._label_map, origin)
        self._is_upright = config is not None and config.is_yaml
        self._has_keypoints = config is not None and config.data.has_keypoints
        self._entries = survey.entries
        splits = survey.splits if len(set(survey.splits.values())) > 1 else {}
        samples = tuple(
            Sample(name, index.size_of(entry.picture), split=splits.get(name))
            for name, entry in sorted(survey.entries.items())
        )
        notices = survey.finish()
        count = None if config is None else config.data.class_count
        if count is not None and count != len(self._names):
            notices.append(
                f"{origin} has {len(self._names)} class names, and says they are {count}"
            )
        return Listing(
            samples,
            self._classes.names(),
            (*notices, *self._classes.notices()),
            in_split_order(splits.values()),
            has_label_map=True,
        )

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture and its label file."""
        entry = self._entries[sample.name]
        if entry.problem is not None:
            raise SourceError(entry.problem, [entry.problem])
        for what, where in entry.notes:
            note(what, where)
        features = read_picture(self.root / entry.picture, entry.picture)
        features["image/source_id"] = posixpath.basename(features["image/filename"])
        if entry.labels is None:
            return features | box_features([])
        reader = BoxReader(features, self._policy, note)
        boxes = list(self._boxes(entry.labels, reader, note))
        frame = reader.relative_frame(entry.labels, is_upright=self._is_upright)
        placed = reader.place(boxes, frame, self._classes)
        reader.finish(entry.labels)
        return features | box_features(placed)

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "Yolo",
            "folder": self.root.resolve().name,
            "file": self._described_by,
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
        }

    def kinds(self) -> Mapping[str, Kind]:
        return dict(BOX_KINDS)

    def _boxes(self, path: str, reader: BoxReader, note: Note) -> Iterator[AnnotatedBox]:
        for line, text in read_lines(str(self.root / path)):
            place = f"{path}, line {line}"
            words = text.split()
            values = [number(word) for word in words[1:]]
            label = number(words[0])
            name = self._names.get(int(label)) if label >= 0 and label.is_integer() else None
            if name is None:
                known = (
                    f"0 to {max(self._names)}" if self._names else "none, as no class has a name"
                )
                reader.reject(place, f"the class number is {words[0]!r}; expected {known}")
                continue
            if self._has_keypoints and len(values) > 4:
                note(_KEYPOINTS, place)
                values = values[:4]
            if len(values) == 4:
                x, y, width, height = values
                half_width, half_height = width / 2, height / 2
                corners = (x - half_width, y - half_height, x + half_width, y + half_height)
            elif len(values) >= 6 and len(values) % 2 == 0:
                note(_OUTLINED, place)
                xs, ys = values[::2], values[1::2]
                corners = (min(xs), min(ys), max(xs), max(ys))
            else:
                found = f"{len(values)} numbers behind the class"
                expected = "4 (x, y, width, height), or the points of a polygon"
                reader.reject(place, f"{found}; expected {expected}")
                continue
            yield AnnotatedBox(f"{place} ({name})", name, corners)


# -- finding -------------------------------------------------------------------------------------


class _Survey:
    """The samples: from the lists or folders that the description names, or all pictures."""

    def __init__(self, index: FileIndex, config: _Config | None) -> None:
        self.entries: dict[str, _Entry] = {}
        self.splits: dict[str, str] = {}
        self._index = index
        self._folders = _folders(index)
        self._notices: list[str] = []
        self._twice: list[str] = []
        if config is not None:
            self._add_splits(config)
        elif lists := _lists(index):
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
        bare = sorted(e.picture for e in entries if e.labels is None and e.problem is None)
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
        is_elsewhere = plain.startswith("/") or _DRIVE.match(plain) is not None
        if not is_elsewhere:
            for base in config.bases:
                path = posixpath.normpath(posixpath.join(base, plain))
                if path in self._folders or path in self._index:
                    return path
        parts = [part for part in plain.split("/") if part not in ("", ".", "..")]
        for start in range(len(parts)):
            for base in config.bases:
                path = posixpath.normpath(posixpath.join(base, *parts[start:]))
                if path in self._folders or path in self._index:
                    told = f"{config.name}: {value} is not there, taken: {path}"
                    if told not in self._notices:
                        self._notices.append(told)
                    return path
        return None

    def _add_folder(self, split: str, folder: str) -> None:
        prefix = "" if folder == "." else f"{folder}/"
        for path in self._index.paths:
            if path.startswith(prefix) and has_picture_name(path):
                self._add(split, _Entry(path, self._labels_of(path)))

    def _add_list(self, split: str, path: str, bases: Sequence[str]) -> None:
        folders = list(dict.fromkeys([*bases, posixpath.dirname(path), *_above(path)]))
        for line, text in read_lines(self._index.full_path(path)):
            found = self._index.find_picture(text, folders, path)
            if isinstance(found, Found) and has_picture_name(found.path):
                where = f"{path}, line {line}: {text!r}, taken: {found.path}"
                notes = ((found.change, where),) if found.change else ()
                entry = _Entry(found.path, self._labels_of(found.path), notes)
            else:
                entry = _Entry(
                    f"{path}/{line}",
                    problem=f"{path}, line {line} names the picture {text!r}: {not_found(found)}",
                )
            self._add(split, entry)

    def _add_all(self) -> None:
        pictures = [path for path in self._index.paths if has_picture_name(path)]
        labelled = {path: labels for path in pictures if (labels := self._labels_of(path))}
        if labelled:
            self.entries = {path: _Entry(path, labelled.get(path)) for path in pictures}
            self.splits = splits_by_folder(pictures)

    def _add(self, split: str, entry: _Entry) -> None:
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


def _lists(index: FileIndex) -> dict[str, str]:
    """Lists of pictures at the root that are called like splits."""
    return {
        stem: path
        for path in index.paths
        if "/" not in path
        and path.lower().endswith(".txt")
        and (stem := posixpath.splitext(path)[0]).lower() in SPLIT_NAMES
    }
