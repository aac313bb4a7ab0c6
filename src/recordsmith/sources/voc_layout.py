"""PASCAL VOC's files: which XML is of which picture, in any of the layouts that people have.

`Annotations/` and `JPEGImages/` with lists in `ImageSets/`, `annotations/` and `images/`, XML
beside the pictures, each with folders called like splits or without. A picture without XML is a
sample only if a list names it; what is left out is said.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import NamedTuple

from recordsmith.errors import RecordsmithError, SourceError
from recordsmith.sources.entries import Entry, notes_of
from recordsmith.sources.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.small_texts import Lines, read_lines
from recordsmith.sources.splits import split_lists, splits_by_folder
from recordsmith.sources.voc_xml import keep, read_voc_xml
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


class Annotated(NamedTuple):
    """An annotation file, and what `keep` made of it; empty if it cannot be read."""

    path: str
    content: bytes = b""


class FoundSamples(NamedTuple):
    """What is to be packed.

    entries: by the name of the sample: the path of its picture, or of its annotation file where
        there is no picture.
    splits: of the samples, by the same names, if there are several.
    class_names: of all objects, in all files that can be read.
    """

    entries: dict[str, Entry[Annotated]]
    splits: dict[str, str]
    class_names: set[str]
    notices: list[str]


def find_samples(index: FileIndex) -> FoundSamples:
    """Find annotation files and their pictures. Reads every XML file.

    Raises:
        SourceError: there are none, or several datasets; says what is there.
        FileAccessError: a list cannot be read.
    """
    survey = _Survey(index, _Layout(index))
    lists = _read_lists(index, survey.layout)
    if lists:
        entries, splits, notices = _with_lists(index, survey, lists)
    else:
        entries, splits = survey.entries, splits_by_folder(survey.entries)
        notices = survey.without_annotation()
    if not entries:
        raise no_files(index.root, _EXPECTED, index)
    return FoundSamples(entries, splits, survey.class_names, [*notices, *survey.notices()])


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
        self.entries: dict[str, Entry[Annotated]] = {}
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
            self.entries[document] = Entry(document, Annotated(document), problem=str(error))
            return
        if found is None:
            self._foreign.append(document)
            return
        names = (item.name for item in found.objects)
        self.class_names.update(name for name in names if name and "\n" not in name)
        entry = self._entry(Annotated(document, keep(found)), found.filename)
        if entry.problem is not None:
            self.entries[document] = entry
            return
        earlier = self.entries.setdefault(entry.picture, entry)
        if earlier is not entry:
            if _stem(document) == _stem(entry.picture):  # it has the better claim
                self.entries[entry.picture], earlier, entry = entry, entry, earlier
            assert entry.annotation is not None
            assert earlier.annotation is not None
            path = entry.annotation.path
            problem = (
                f"{path} is of the picture {entry.picture}, which {earlier.annotation.path} is of "
                "as well; expected one annotation file for each picture"
            )
            self.entries[path] = Entry(path, entry.annotation, problem=problem)

    def _entry(self, annotation: Annotated, filename: str) -> Entry[Annotated]:
        """The picture by the name that the annotation says, else by that of its own file."""
        document = annotation.path
        folders = self.layout.folders_for(document)
        stem = _stem(document)
        named = self._index.find_picture(filename, folders, document) if filename else []
        if isinstance(named, Found) and not self._is_picture(named.path):
            named = []
        is_own = isinstance(named, Found) and _stem(named.path) == stem
        if isinstance(named, Found) and (is_own or _stem(named.path) not in self._stems):
            notes = self._notes(document, filename, named, stem)
            return Entry(named.path, annotation, notes)
        own = self._index.find_picture(stem, folders, document)
        if isinstance(own, Found) and self._is_picture(own.path):
            other = own._replace(change=_OTHER_NAME if filename else None)
            return Entry(own.path, annotation, notes_of(other, filename, document))
        if isinstance(named, Found):
            return Entry(named.path, annotation, self._notes(document, filename, named, stem))
        why = not_found(named or own, f"nor one called {stem}")
        problem = f"{document}: there is no picture {filename!r}, {why}"
        return Entry(document, annotation, problem=problem)

    def _notes(
        self, document: str, filename: str, found: Found, stem: str
    ) -> tuple[tuple[str, str], ...]:
        notes = notes_of(found, filename, document)
        if _stem(found.path) != stem:
            notes += notes_of(found._replace(change=_OTHER_NAME), filename, document)
        return notes

    def _is_picture(self, path: str) -> bool:
        return not path.lower().endswith(".xml")


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


class _List(NamedTuple):
    """A list of ImageSets: its split, its path, and (line, name) of each picture."""

    split: str
    path: str
    names: Lines


def _read_lists(index: FileIndex, layout: _Layout) -> list[_List]:
    """The lists that are splits; those of one class (aeroplane_train.txt) are not."""
    for folder in (f"{layout.base}ImageSets/Main/", f"{layout.base}ImageSets/"):
        lists = split_lists(path for path in index.paths if posixpath.dirname(path) + "/" == folder)
        if lists:
            return [
                _List(split, path, read_lines(index.full_path(path)))
                for split, path in lists.items()
            ]
    return []


def _with_lists(
    index: FileIndex, survey: _Survey, lists: Iterable[_List]
) -> tuple[dict[str, Entry[Annotated]], dict[str, str], list[str]]:
    """The entries that the lists name, the split of each, and what there is to say."""
    by_stem: dict[str, str] = {}
    for name, entry in survey.entries.items():
        by_stem.setdefault(_stem(entry.annotation.path if entry.annotation else name), name)
        by_stem.setdefault(_stem(name), name)
    entries: dict[str, Entry[Annotated]] = {}
    splits: dict[str, str] = {}
    twice: list[str] = []
    bare: list[str] = []
    folders = [survey.layout.pictures.rstrip("/"), survey.layout.base.rstrip("/")]
    for listed in lists:
        for line, text in listed.names:
            known = by_stem.get(posixpath.basename(text)) or by_stem.get(_stem(text))
            if known is None and (short := _CLASS_MARK.sub("", text)) != text:
                known, text = by_stem.get(short), short  # noqa: PLW2901 - the mark is no name
            if known is None:
                entry = _unannotated(index, folders, listed, line, text)
            else:
                entry = survey.entries[known]
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
) -> Entry[Annotated]:
    """A picture that a list names and that has no annotation file."""
    found = index.find_picture(name, folders, listed.path)
    if isinstance(found, Found) and has_picture_name(found.path):
        return Entry(found.path)
    path = posixpath.join(folders[0], name)
    return Entry(
        path, problem=f"{listed.path}, line {line} names the picture {name!r}: {not_found(found)}"
    )
