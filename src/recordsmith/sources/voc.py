"""PASCAL VOC: an XML file with boxes for each picture, in any of the layouts that people have.

`Annotations/` and `JPEGImages/` with lists in `ImageSets/`, `annotations/` and `images/`, XML
beside the pictures, each with folders called like splits or without. Listing reads every XML file,
for the names of classes and pictures, and keeps what is in it, as parsing it again would cost more
than the rest of its sample. A picture without XML is a sample only if a list names it; what is left
out is said.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from recordsmith.errors import RecordsmithError, SourceError
from recordsmith.example import Kind
from recordsmith.files import PathLike, as_path, read_file
from recordsmith.sources.boxes import (
    BOX_KINDS,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    PlacedBox,
    box_features,
    check_policy,
)
from recordsmith.sources.classes import Classes, classes_of
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
from recordsmith.sources.voc_xml import VocAnnotation, VocObject, keep, kept, read_voc_xml
from recordsmith.sources.wording import some, tally

_EXPECTED = (
    "Annotations/*.xml with JPEGImages/, annotations/*.xml with images/, or .xml files beside "
    "their pictures"
)
_ANNOTATION_FOLDERS = frozenset(("annotations", "annotation", "xml", "xmls", "labels"))
_PICTURE_FOLDERS = ("jpegimages", "images", "image", "imgs", "img", "pictures", "photos")
_MASK_FOLDERS = frozenset(("segmentationclass", "segmentationobject", "segmentationclassaug"))
_CLASS_MARK = re.compile(r"\s+-?[01]$")  # behind a name in a list of one class
_OTHER_NAME = "an annotation names another picture than its own file name does"


class _Entry(NamedTuple):
    """A sample: its picture, its annotation file and what is in that; or why it cannot be read."""

    picture: str
    annotation: str | None = None
    content: bytes = b""
    notes: tuple[tuple[str, str], ...] = ()
    problem: str | None = None


class Voc:
    """Pictures with boxes in PASCAL VOC's XML.

    Each sample has its picture untouched (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1 of the stored picture),
    `image/object/class/label` (from 1), `image/object/class/text`, `image/object/difficult`,
    `image/object/truncated` and `image/object/view`.

    Args:
        root: the folder of the dataset, such as `VOCdevkit/VOC2012`.
        label_map: path of a `label_map.pbtxt`; without one the classes are sorted by name.
        boxes: what a wrong box does: `stop` its sample, be made right (`clip`), or left out
            (`drop`).
    """

    def __init__(
        self, root: PathLike, *, label_map: PathLike | None = None, boxes: BoxPolicy = "stop"
    ) -> None:
        self.root = as_path(root)
        self._label_map = None if label_map is None else as_path(label_map)
        self._policy = check_policy(boxes)
        self._entries: dict[str, _Entry] = {}
        self._classes = Classes({}, "the data")

    def __repr__(self) -> str:
        return f"Voc({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find annotation files and their pictures; the order is that of their paths.

        Raises:
            SourceError: there are no annotation files; says what is there.
            OptionError: the label map is none.
            FileAccessError: a folder or the label map cannot be read.
        """
        index = FileIndex(self.root)
        survey = _Survey(index, _Layout(index))
        self._classes = classes_of(survey.class_names, self._label_map)
        lists = _read_lists(index, survey.layout)
        entries, splits, notices = (
            _with_lists(index, survey, lists)
            if lists
            else (
                survey.entries,
                splits_by_folder(survey.entries),
                survey.without_annotation(),
            )
        )
        if not entries:
            raise no_files(self.root, _EXPECTED, index)
        self._entries = entries
        samples = tuple(
            Sample(name, index.size_of(entry.picture), split=splits.get(name))
            for name, entry in sorted(entries.items())
        )
        return Listing(
            samples,
            self._classes.names(),
            (*notices, *survey.notices(), *self._classes.notices()),
            in_split_order(splits.values()),
            has_label_map=True,
        )

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture and its annotation file."""
        entry = self._entries[sample.name]
        if entry.problem is not None:
            raise SourceError(entry.problem, [entry.problem])
        for what, where in entry.notes:
            note(what, where)
        features = read_picture(os.path.join(self.root, entry.picture), entry.picture)
        features["image/source_id"] = posixpath.basename(features["image/filename"])
        placed: list[PlacedBox] = []
        if entry.annotation is not None:
            reader = BoxReader(features, self._policy, note)
            placed = self._place(kept(entry.content), entry.annotation, reader)
            reader.finish(entry.annotation)
        objects: list[VocObject] = [item.source.extra for item in placed]
        return (
            features
            | box_features(placed)
            | {
                "image/object/difficult": [item.difficult for item in objects],
                "image/object/truncated": [item.truncated for item in objects],
                "image/object/view": [item.view.encode() for item in objects],
            }
        )

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "Voc",
            "folder": self.root.resolve().name,
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
        }

    def kinds(self) -> Mapping[str, Kind]:
        return {
            **BOX_KINDS,
            "image/object/difficult": "int64",
            "image/object/truncated": "int64",
            "image/object/view": "bytes",
        }

    def _place(self, found: VocAnnotation, path: str, reader: BoxReader) -> list[PlacedBox]:
        boxes = []
        for item in found.objects:
            place = f"{path}, line {item.line}"
            if item.corners is None:
                reader.reject(place, f"the object {item.name!r} has no bndbox")
            elif not item.name or "\n" in item.name:
                reader.reject(place, f"the object has the name {item.name!r}; expected a class")
            else:
                where = f"{place} ({item.name})"
                boxes.append(AnnotatedBox(where, item.name, item.corners, item))
        frame = reader.frame_of(found.width, found.height, path)
        return reader.place(boxes, frame, self._classes)


class _Layout:
    """Where annotations, pictures and lists are below the root; paths end in `/`, or are empty."""

    def __init__(self, index: FileIndex) -> None:
        self.base = _base(index)
        inside = [path for path in index.paths if path.startswith(self.base)]
        folders = sorted({path[len(self.base) :].split("/")[0] for path in inside if "/" in path})
        documents = [path for path in inside if path.lower().endswith(".xml")]
        self.annotations = next(
            (
                f"{self.base}{name}/"
                for name in folders
                if name.lower() in _ANNOTATION_FOLDERS
                and any(path.startswith(f"{self.base}{name}/") for path in documents)
            ),
            self.base,
        )
        by_lower = {name.lower(): name for name in folders}
        named = [by_lower[name] for name in _PICTURE_FOLDERS if name in by_lower]
        has_own = self.annotations != self.base and bool(named)
        self.pictures = f"{self.base}{named[0]}/" if has_own else self.base
        self.documents = [path for path in documents if path.startswith(self.annotations)]
        self.picture_paths = [
            path
            for path in inside
            if path.startswith(self.pictures)
            and has_picture_name(path)
            and _MASK_FOLDERS.isdisjoint(path.lower().split("/"))
        ]

    def folders_for(self, document: str) -> list[str]:
        """Where the picture of an annotation file is looked for, best first."""
        mirrored = self.pictures + posixpath.dirname(document[len(self.annotations) :])
        candidates = (mirrored, posixpath.dirname(document), self.pictures, self.base)
        return list(dict.fromkeys(folder.rstrip("/") for folder in candidates))


def _base(index: FileIndex) -> str:
    """The folder that holds the dataset: the root, or the only folder in it, VOCdevkit/VOC2012/.

    Raises:
        SourceError: there are several datasets below.
    """
    bases = {
        path[: match.start()]
        for path in index.paths
        if (match := re.search(r"(?:^|(?<=/))Annotations/", path)) and path.endswith(".xml")
    }
    if len(bases) > 1 and "" not in bases:
        found = some(sorted(str(index.root / base) for base in bases), "or")
        raise SourceError(
            f"{index.root} holds {len(bases)} datasets, each with Annotations/ of its own; pack "
            f"one of them: {found}"
        )
    return bases.pop() if len(bases) == 1 else ""


class _Survey:
    """What listing learns of all annotation files.

    entries: by the name of the sample: the path of its picture, or of its annotation file where
        there is no picture.
    class_names: of all objects, in all files that can be read.
    """

    def __init__(self, index: FileIndex, layout: _Layout) -> None:
        self.layout = layout
        self.entries: dict[str, _Entry] = {}
        self.class_names: set[str] = set()
        self._index = index
        self._foreign: list[str] = []
        self._stems = {_stem(path) for path in layout.documents}
        for document in layout.documents:
            self._add(document)

    def without_annotation(self) -> list[str]:
        """A notice on the pictures that have no annotation file, which are left out."""
        taken = {entry.picture for entry in self.entries.values()}
        left = [path for path in self.layout.picture_paths if path not in taken]
        return [f"pictures without an annotation file: {tally(left)}"] if left else []

    def notices(self) -> list[str]:
        notices = []
        if self._foreign:
            notices.append(f"XML files that are no annotations: {tally(self._foreign)}")
        if self._index.hidden:
            notices.append(f"hidden: {some(self._index.hidden)}")
        return notices

    def _add(self, document: str) -> None:
        try:
            found = read_voc_xml(self._index.full_path(document), document)
        except RecordsmithError as error:
            self.entries[document] = _Entry(document, document, problem=str(error))
            return
        if found is None:
            self._foreign.append(document)
            return
        names = (item.name for item in found.objects)
        self.class_names.update(name for name in names if name and "\n" not in name)
        entry = self._entry(document, found.filename)._replace(content=keep(found))
        if entry.problem is not None:
            self.entries[document] = entry
            return
        earlier = self.entries.setdefault(entry.picture, entry)
        if earlier is not entry:
            if _stem(document) == _stem(entry.picture):  # it has the better claim
                self.entries[entry.picture], earlier, entry = entry, entry, earlier
            problem = (
                f"{entry.annotation} is of the picture {entry.picture}, which {earlier.annotation} "
                "is of as well; expected one annotation file for each picture"
            )
            other = str(entry.annotation)
            self.entries[other] = _Entry(other, other, problem=problem)

    def _entry(self, document: str, filename: str) -> _Entry:
        """The picture by the name that the annotation says, else by that of its own file."""
        folders = self.layout.folders_for(document)
        stem = posixpath.splitext(posixpath.basename(document))[0]
        named = self._index.find_picture(filename, folders, document) if filename else []
        if isinstance(named, Found) and not self._is_picture(named.path):
            named = []
        is_own = isinstance(named, Found) and _stem(named.path) == stem
        if isinstance(named, Found) and (is_own or _stem(named.path) not in self._stems):
            notes = self._notes(document, filename, named, stem)
            return _Entry(named.path, document, notes=notes)
        own = self._index.find_picture(stem, folders, document)
        if isinstance(own, Found) and self._is_picture(own.path):
            where = f"{document}: {filename!r}, taken: {own.path}"
            return _Entry(own.path, document, notes=((_OTHER_NAME, where),) if filename else ())
        if isinstance(named, Found):
            notes = self._notes(document, filename, named, stem)
            return _Entry(named.path, document, notes=notes)
        why = not_found(named or own, f"nor one called {stem}")
        problem = f"{document}: there is no picture {filename!r}, {why}"
        return _Entry(document, document, problem=problem)

    def _notes(
        self, document: str, filename: str, found: Found, stem: str
    ) -> tuple[tuple[str, str], ...]:
        where = f"{document}: {filename!r}, taken: {found.path}"
        notes = [] if found.change is None else [(found.change, where)]
        if _stem(found.path) != stem:
            notes.append((_OTHER_NAME, where))
        return tuple(notes)

    def _is_picture(self, path: str) -> bool:
        return not path.lower().endswith(".xml")


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


class _List(NamedTuple):
    """A list of ImageSets: its split, its path, and (line, name) of each picture."""

    split: str
    path: str
    names: Sequence[tuple[int, str]]


def _read_lists(index: FileIndex, layout: _Layout) -> list[_List]:
    """The lists that are splits; those of one class (aeroplane_train.txt) are not."""
    for folder in (f"{layout.base}ImageSets/Main/", f"{layout.base}ImageSets/"):
        paths = {
            _stem(path): path
            for path in index.paths
            if posixpath.dirname(path) + "/" == folder
            and path.endswith(".txt")
            and _stem(path).lower() in SPLIT_NAMES
        }
        if {"train", "val"} <= paths.keys():
            paths.pop("trainval", None)
        if paths:
            return [_read_list(index, split, paths[split]) for split in in_split_order(paths)]
    return []


def _read_list(index: FileIndex, split: str, path: str) -> _List:
    text = read_file(index.full_path(path)).decode("utf-8-sig", "surrogateescape")
    lines = enumerate(map(str.strip, text.split("\n")), 1)
    return _List(split, path, tuple((line, name) for line, name in lines if name))


def _with_lists(
    index: FileIndex, survey: _Survey, lists: Iterable[_List]
) -> tuple[dict[str, _Entry], dict[str, str], list[str]]:
    """The entries that the lists name, the split of each, and what there is to say."""
    by_stem: dict[str, str] = {}
    for name, entry in survey.entries.items():
        by_stem.setdefault(_stem(entry.annotation or name), name)
        by_stem.setdefault(_stem(name), name)
    entries: dict[str, _Entry] = {}
    splits: dict[str, str] = {}
    twice: list[str] = []
    bare: list[str] = []
    folders = [survey.layout.pictures.rstrip("/"), survey.layout.base.rstrip("/")]
    for listed in lists:
        for line, text in listed.names:
            known = by_stem.get(posixpath.basename(text)) or by_stem.get(_stem(text))
            if known is None and (short := _CLASS_MARK.sub("", text)) != text:
                known, text = by_stem.get(short), short  # noqa: PLW2901 - the mark is no name
            entry = (
                _unannotated(index, folders, listed, line, text)
                if known is None
                else (survey.entries[known])
            )
            name = known or entry.picture
            if name in entries:
                if splits[name] != listed.split:
                    twice.append(f"{name} in {splits[name]} and {listed.split}")
                continue
            if entry.annotation is None and entry.problem is None:
                bare.append(name)
            entries[name], splits[name] = entry, listed.split
    notices = []
    if twice:
        notices.append(f"named by two lists, of which the first counts: {some(twice)}")
    if bare:
        notices.append(f"in a list, without an annotation file, packed without boxes: {some(bare)}")
    left = sorted({*survey.entries, *survey.layout.picture_paths} - entries.keys())
    if left:
        notices.append(f"in none of the lists, not packed: {tally(left)}")
    if len(set(splits.values())) < 2:
        splits = {}
    return entries, splits, notices


def _unannotated(
    index: FileIndex, folders: list[str], listed: _List, line: int, name: str
) -> _Entry:
    """A picture that a list names and that has no annotation file."""
    found = index.find_picture(name, folders, listed.path)
    if isinstance(found, Found) and has_picture_name(found.path):
        return _Entry(found.path)
    path = posixpath.join(folders[0], name)
    return _Entry(
        path, problem=f"{listed.path}, line {line} names the picture {name!r}: {not_found(found)}"
    )
