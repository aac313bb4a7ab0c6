"""Find annotation files of one image each, their images and split lists, in the common layouts.

`Annotations/` and `JPEGImages/` with lists in `ImageSets/`, `annotations/` and `images/`, or files
next to the images, with or without folders named like splits. An image without a file is a sample
only if a list names it.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from recordsmith.errors import RecordsmithError, SourceError
from recordsmith.sources.boxes.annotated import Entry, path_notes
from recordsmith.sources.boxes.image_annotations import (
    Annotated,
    ImageAnnotation,
    dump_annotation,
)
from recordsmith.sources.files.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.files.images import has_image_name, stem_of
from recordsmith.sources.files.name_files import Lines, read_lines
from recordsmith.sources.flaws import Check
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.splits import split_lists, splits_by_folder
from recordsmith.stores import Location

_ANNOTATION_FOLDERS = frozenset(
    ("annotations", "annotation", "xml", "xmls", "json", "jsons", "labels")
)
_IMAGE_FOLDERS = ("jpegimages", "images", "image", "imgs", "img", "pictures", "photos")
_MASK_FOLDERS = frozenset(("segmentationclass", "segmentationobject", "segmentationclassaug"))
_ANNOTATIONS = re.compile(r"(?:^|(?<=/))annotations/", re.IGNORECASE)
_CLASS_MARKS = ("-1", "0", "1", "-0")  # after a name in a list of one class
_OTHER_NAME = "annotations name another image than their file name does"


class FileFormat(NamedTuple):
    """A format of annotation files.

    read: returns None for a file of another type.
    expected: for the error if there are none.
    """

    suffix: str
    read: Callable[[Location, str], ImageAnnotation | None]
    expected: str


class AnnotatedSamples(NamedTuple):
    """The samples to pack.

    entries: by sample name: the path of its image, or of its annotation file if the image is
        missing.
    splits: by sample name, if there are several.
    class_names: of all objects in all readable files.
    """

    entries: dict[str, Entry[Annotated]]
    splits: dict[str, str]
    class_names: set[str]
    notices: list[str]


def find_samples(index: FileIndex, files: FileFormat) -> AnnotatedSamples:
    """Find annotation files and their images. Reads every file of the format.

    Raises:
        SourceError: there are none, or several datasets.
        FileAccessError: a list cannot be read.
    """
    survey = _Survey(index, _Layout(index, files.suffix), files)
    lists = _read_lists(index, survey.layout)
    if lists:
        entries, splits, notices = _with_lists(index, survey, lists)
    else:
        entries, splits = survey.entries, splits_by_folder(survey.entries)
        notices = survey.without_annotation()
    if not entries:
        raise no_files(index.root, files.expected, index)
    return AnnotatedSamples(entries, splits, survey.class_names, [*notices, *survey.notices()])


class _Layout:
    """The folders of annotations, images and lists; paths end in `/` or are empty."""

    def __init__(self, index: FileIndex, suffix: str) -> None:
        self.base = _base(index)
        inside = [path for path in index.paths if path.startswith(self.base)]
        folders = sorted({path[len(self.base) :].split("/")[0] for path in inside if "/" in path})
        documents = [path for path in inside if path.lower().endswith(suffix)]
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
        named = [by_lower[name] for name in _IMAGE_FOLDERS if name in by_lower]
        has_own = self.annotations != self.base and bool(named)
        self.images = f"{self.base}{named[0]}/" if has_own else self.base
        self.documents = [path for path in documents if path.startswith(self.annotations)]
        self.image_paths = [
            path
            for path in inside
            if path.startswith(self.images) and has_image_name(path) and not _is_mask(path)
        ]
        self.masks = [path for path in inside if has_image_name(path) and _is_mask(path)]

    def folders_for(self, document: str) -> list[str]:
        """Where to look for the image of an annotation file, best first."""
        mirrored = self.images + posixpath.dirname(document[len(self.annotations) :])
        candidates = (mirrored, posixpath.dirname(document), self.images, self.base)
        return list(dict.fromkeys(folder.rstrip("/") for folder in candidates))


def _base(index: FileIndex) -> str:
    """The folder of the dataset: the root, or the only dataset below it, VOCdevkit/VOC2012/.

    Raises:
        SourceError: there are several datasets below the root.
    """
    bases = {
        path[: match.start()]
        for path in index.paths
        if (match := _ANNOTATIONS.search(path)) and path.endswith(".xml")
    }
    if len(bases) > 1 and "" not in bases:
        found = join_names(sorted(str(index.root / base[:-1]) for base in bases), "or")
        raise SourceError(
            f"the folder contains {len(bases)} datasets, each with its own Annotations/",
            path=index.root,
            remedy=f"Pack {found}.",
        )
    return bases.pop() if len(bases) == 1 else ""


class _Survey:
    """The samples and class names of all annotation files; see `AnnotatedSamples`."""

    def __init__(self, index: FileIndex, layout: _Layout, files: FileFormat) -> None:
        self._files = files
        self.layout = layout
        self.entries: dict[str, Entry[Annotated]] = {}
        self.class_names: set[str] = set()
        self._index = index
        self._foreign: list[str] = []
        self._stems = {stem_of(path) for path in layout.documents}
        for document in layout.documents:
            self._add(document)

    def without_annotation(self) -> list[str]:
        """A notice on skipped images without an annotation file."""
        used = {entry.image for entry in self.entries.values()}
        left = [path for path in self.layout.image_paths if path not in used]
        return count_notice(
            left,
            "image",
            "without an annotation file skipped",
            check=Check.IMAGE_WITHOUT_ANNOTATION,
        )

    def notices(self) -> list[str]:
        return [
            *count_notice(self._foreign, f"other {self._files.suffix[1:].upper()} file", "skipped"),
            *count_notice(self.layout.masks, "segmentation mask", "skipped"),
            *count_notice(self._index.hidden, "hidden file", "skipped"),
        ]

    def _add(self, document: str) -> None:
        try:
            found = self._files.read(self._index.root / document, document)
        except SourceError as error:
            fault = Fault(error.problem, error.path, error.line, error.remedy)
            self.entries[document] = Entry(document, Annotated(document), fault=fault)
            return
        except RecordsmithError as error:
            fault = Fault(str(error))
            self.entries[document] = Entry(document, Annotated(document), fault=fault)
            return
        if found is None:
            self._foreign.append(document)
            return
        self.class_names |= found.class_names()
        entry = self._entry(Annotated(document, dump_annotation(found)), found.filename)
        if entry.fault is not None and found.has_image:
            annotated = Annotated(document, dump_annotation(found), has_image=True)
            entry = Entry(document, annotated)
        if found.notes:
            entry = dataclasses.replace(entry, notes=(*entry.notes, *found.notes))
        if entry.fault is not None:
            self.entries[document] = entry
            return
        earlier = self.entries.setdefault(entry.image, entry)
        if earlier is not entry:
            if stem_of(document) == stem_of(entry.image):  # the better match
                self.entries[entry.image], earlier, entry = entry, entry, earlier
            assert entry.annotation is not None
            assert earlier.annotation is not None
            path = entry.annotation.path
            problem = f"image {entry.image} already has the annotations {earlier.annotation.path}"
            self.entries[path] = Entry(path, entry.annotation, fault=Fault(problem, path))

    def _entry(self, annotation: Annotated, filename: str) -> Entry[Annotated]:
        """Find the image by the name in the annotation, else by the name of the annotation file."""
        document = annotation.path
        folders = self.layout.folders_for(document)
        stem = stem_of(document)
        named = self._index.find_image(filename, folders, document) if filename else []
        if isinstance(named, Found) and not self._is_image(named.path):
            named = []
        is_own = isinstance(named, Found) and stem_of(named.path) == stem
        if isinstance(named, Found) and (is_own or stem_of(named.path) not in self._stems):
            notes = self._notes(document, filename, named, stem)
            return Entry(named.path, annotation, notes)
        own = self._index.find_image(stem, folders, document)
        if isinstance(own, Found) and self._is_image(own.path):
            other = own._replace(change=_OTHER_NAME if filename else None)
            return Entry(own.path, annotation, path_notes(other, filename, document))
        if isinstance(named, Found):
            return Entry(named.path, annotation, self._notes(document, filename, named, stem))
        fault = Fault(
            not_found(named or own, filename or stem),
            document,
            check=Check.ANNOTATION_WITHOUT_IMAGE,
        )
        return Entry(document, annotation, fault=fault)

    def _notes(
        self, document: str, filename: str, found: Found, stem: str
    ) -> tuple[tuple[str, str], ...]:
        notes = path_notes(found, filename, document)
        if stem_of(found.path) != stem:
            notes += path_notes(found._replace(change=_OTHER_NAME), filename, document)
        return notes

    def _is_image(self, path: str) -> bool:
        return not path.lower().endswith(self._files.suffix)


def _is_mask(path: str) -> bool:
    return not _MASK_FOLDERS.isdisjoint(path.lower().split("/"))


class _List(NamedTuple):
    """A list in ImageSets: its split, its path, and (line, name) of each image."""

    split: str
    path: str
    names: Lines


def _read_lists(index: FileIndex, layout: _Layout) -> list[_List]:
    """The lists of splits, without those of one class (aeroplane_train.txt)."""
    for folder in ("imagesets/main", "imagesets"):
        known = layout.base.lower() + folder
        lists = split_lists(
            path for path in index.paths if posixpath.dirname(path).lower() == known
        )
        if lists:
            return [
                _List(split, path, read_lines(index.root / path)) for split, path in lists.items()
            ]
    return []


def _with_lists(
    index: FileIndex, survey: _Survey, lists: Iterable[_List]
) -> tuple[dict[str, Entry[Annotated]], dict[str, str], list[str]]:
    """The entries in the lists, the split of each, and notices."""
    by_stem: dict[str, str] = {}
    for name, entry in survey.entries.items():
        by_stem.setdefault(stem_of(entry.annotation.path if entry.annotation else name), name)
        by_stem.setdefault(stem_of(name), name)
    entries: dict[str, Entry[Annotated]] = {}
    splits: dict[str, str] = {}
    twice: list[str] = []
    bare: list[str] = []
    folders = [survey.layout.images.rstrip("/"), survey.layout.base.rstrip("/")]
    for listed in lists:
        for line, text in listed.names:
            known = by_stem.get(posixpath.basename(text)) or by_stem.get(stem_of(text))
            if known is None and (short := _without_class_mark(text)) != text:
                known, text = by_stem.get(short), short  # noqa: PLW2901 - without the mark
            if known is None:
                entry = _unannotated(index, folders, listed, line, text)
            else:
                entry = survey.entries[known]
            name = known or entry.image
            if name in entries:
                if splits[name] != listed.split:
                    twice.append(f"{name} in {splits[name]} and {listed.split}")
                continue
            if entry.annotation is None and entry.fault is None:
                bare.append(name)
            entries[name], splits[name] = entry, listed.split
    left = sorted({*survey.entries, *survey.layout.image_paths} - entries.keys())
    notices = [
        *count_notice(twice, "image", "in two splits packed in the first"),
        *count_notice(
            bare,
            "image",
            "without an annotation file packed without boxes",
            check=Check.IMAGE_WITHOUT_ANNOTATION,
        ),
        *count_notice(left, "file", "missing from the lists skipped"),
    ]
    return entries, splits, notices


def _without_class_mark(text: str) -> str:
    """A line of a list of one class, without the -1, 0 or 1 after the name."""
    for mark in _CLASS_MARKS:
        name = text.removesuffix(mark)
        if name != text and name[-1:].isspace():
            return name.rstrip()
    return text


def _unannotated(
    index: FileIndex, folders: list[str], listed: _List, line: int, name: str
) -> Entry[Annotated]:
    """The entry of a listed image without an annotation file."""
    found = index.find_image(name, folders, listed.path)
    if isinstance(found, Found) and has_image_name(found.path):
        return Entry(found.path)
    path = posixpath.join(folders[0], name)
    fault = Fault(not_found(found, name), listed.path, line, check=Check.ANNOTATION_WITHOUT_IMAGE)
    return Entry(path, fault=fault)
