"""Sources with an annotation file for each image: the files, their images, and lists of splits.

`Annotations/` and `JPEGImages/` with lists in `ImageSets/`, `annotations/` and `images/`, or files
next to the images, with or without folders named like splits. An image without a file is a sample
only if a list names it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from recordsmith.errors import RecordsmithError, SourceError
from recordsmith.sources.boxes.annotation import (
    MAX_VALUE_BYTES,
    Annotation,
    AnnotationFile,
    Entry,
)
from recordsmith.sources.boxes.source import (
    AnnotatedImages,
    ListedImages,
    path_notes,
    strength,
)
from recordsmith.sources.classes import Classes, make_classes
from recordsmith.sources.files.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import has_image_name, stem_of
from recordsmith.sources.files.name_files import Lines, read_lines
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import LayoutCandidate
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.splits import split_lists, splits_by_folder

_ANNOTATION_FOLDERS = frozenset(
    ("annotations", "annotation", "xml", "xmls", "json", "jsons", "labels")
)
_IMAGE_FOLDERS = ("jpegimages", "images", "image", "imgs", "img", "pictures", "photos")
_MASK_FOLDERS = frozenset(("segmentationclass", "segmentationobject", "segmentationclassaug"))
_ANNOTATIONS = re.compile(r"(?:^|(?<=/))annotations/", re.IGNORECASE)
_CLASS_MARKS = ("-1", "0", "1", "-0")  # after a name in a list of one class
_OTHER_NAME = "annotations name another image than their file name does"


class ImageAnnotationFiles(AnnotatedImages):
    """What the sources of such files share."""

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        if paths := cls._matching(tree):
            what = cls.box_format.what.format(paths[0])
            confidence = strength(tree, cls.box_format.suffix)
            yield LayoutCandidate(cls.box_format.name, what, confidence)

    def _list_images(self, index: FileIndex) -> ListedImages:
        found = _Annotations(self, index)
        if lists := _read_lists(index, found.layout):
            entries, splits, notices = _with_lists(index, found, lists)
        else:
            entries, splits = found.entries, splits_by_folder(found.entries)
            used = {entry.image for entry in entries.values()}
            left = [path for path in found.layout.image_paths if path not in used]
            what, check = "without an annotation file skipped", Check.IMAGE_WITHOUT_ANNOTATION
            notices = count_notice(left, "image", what, check=check)
        if not entries:
            raise no_files(index.root, self.box_format.expected, index)
        kind = self.box_format.suffix[1:].upper()
        notices += [
            *count_notice(found.foreign, f"other {kind} file", "skipped"),
            *count_notice(found.layout.masks, "segmentation mask", "skipped"),
            *count_notice(index.hidden, "hidden file", "skipped"),
        ]
        classes = self._classes(index, found.class_names)
        return ListedImages(entries, splits, classes, notices)

    def _classes(self, index: FileIndex, names: set[str]) -> Classes:
        return make_classes(names, self._label_map)


class _Layout:
    """The folders of annotations, images and lists; paths end in `/` or are empty."""

    def __init__(self, index: FileIndex, suffix: str) -> None:
        self.base = _base(index)
        inside = [path for path in index.paths if path.startswith(self.base)]
        folders = sorted({path[len(self.base) :].split("/")[0] for path in inside if "/" in path})
        documents = [path for path in inside if path.lower().endswith(suffix)]
        named = (f"{self.base}{n}/" for n in folders if n.lower() in _ANNOTATION_FOLDERS)
        self.annotations = next(
            (folder for folder in named if any(path.startswith(folder) for path in documents)),
            self.base,
        )
        by_lower = {name.lower(): name for name in folders}
        images = [by_lower[name] for name in _IMAGE_FOLDERS if name in by_lower]
        has_own = self.annotations != self.base and bool(images)
        self.images = f"{self.base}{images[0]}/" if has_own else self.base
        self.documents = [path for path in documents if path.startswith(self.annotations)]
        pixels = [path for path in inside if has_image_name(path)]
        self.masks = [path for path in pixels if _is_mask(path)]
        self.image_paths = [
            path for path in pixels if path.startswith(self.images) and not _is_mask(path)
        ]

    def folders_for(self, document: str) -> list[str]:
        """Where to look for the image of an annotation file, best first."""
        mirrored = self.images + posixpath.dirname(document[len(self.annotations) :])
        candidates = (mirrored, posixpath.dirname(document), self.images, self.base)
        return list(dict.fromkeys(folder.rstrip("/") for folder in candidates))


def _base(index: FileIndex) -> str:
    """The folder of the dataset: the root, or the only dataset below it, VOCdevkit/VOC2012/."""
    bases = {
        path[: match.start()]
        for path in index.paths
        if (match := _ANNOTATIONS.search(path)) and path.endswith(".xml")
    }
    if len(bases) > 1 and "" not in bases:
        paths = join_names(sorted(str(index.root / base[:-1]) for base in bases), "or")
        raise SourceError(
            f"the folder contains {len(bases)} datasets, each with its own Annotations/",
            path=index.root,
            remedy=f"Pack {paths}.",
        )
    return bases.pop() if len(bases) == 1 else ""


def _is_mask(path: str) -> bool:
    return not _MASK_FOLDERS.isdisjoint(path.lower().split("/"))


class _Annotations:
    """The samples and class names of all annotation files, which are read.

    entries: by sample name: the path of its image, or of its annotation file if the image is
        missing.
    foreign: files of another type.
    """

    def __init__(self, source: AnnotatedImages, index: FileIndex) -> None:
        self._format = source.box_format
        self._index = index
        self.layout = _Layout(index, self._format.suffix)
        self.entries: dict[str, Entry] = {}
        self.class_names: set[str] = set()
        self.foreign: list[str] = []
        self._stems = {stem_of(path) for path in self.layout.documents}
        for document in self.layout.documents:
            self._add(document)

    def _add(self, document: str) -> None:
        notes: list[tuple[str, str]] = []
        location, version = self._index.root / document, self._index.version_of(document)
        file = AnnotationFile(location, document, version, note=lambda *note: notes.append(note))
        try:
            images = [*self._format.parse(file)]
        except RecordsmithError as error:
            fault = Fault(str(error))
            if isinstance(error, SourceError):
                fault = Fault(error.problem, error.path, error.line, error.remedy)
            self.entries[document] = Entry(document, Annotation(document, version), fault=fault)
            return
        if not images:
            self.foreign.append(document)
            return
        image = images[0]
        names = {item.name for item in image.objects if item.name and "\n" not in item.name}
        self.class_names |= names
        try:
            content = msgspec.json.encode(image.objects)
        except ValueError:  # text with surrogates
            content = b""
        content = content if len(content) <= MAX_VALUE_BYTES else b""
        kept = image._replace(objects=(), file_name="", has_pixels=False)
        annotation = Annotation(document, version, kept, content)
        entry = self._entry(annotation, image.file_name)
        if entry.fault is not None and image.has_pixels:
            entry.fault, annotation.image = None, kept._replace(has_pixels=True)
        entry.notes += tuple(notes)
        if entry.fault is not None or entry.image == document:
            self.entries[document] = entry
            return
        earlier = self.entries.setdefault(entry.image, entry)
        if earlier is not entry:
            if stem_of(document) == stem_of(entry.image):  # the better match
                self.entries[entry.image], earlier, entry = entry, entry, earlier
            assert entry.annotation is not None
            assert earlier.annotation is not None
            path, other = entry.annotation.place, earlier.annotation.place
            fault = Fault(f"image {entry.image} already has the annotations {other}", path)
            self.entries[path] = Entry(path, entry.annotation, fault=fault)

    def _entry(self, annotation: Annotation, filename: str) -> Entry:
        """Find the image by the name in the annotation, else by the name of the annotation file."""
        document = annotation.place
        folders = self.layout.folders_for(document)
        stem = stem_of(document)
        named = self._index.find_image(filename, folders, document) if filename else []
        if isinstance(named, Found) and not self._is_image(named.path):
            named = []
        is_own = isinstance(named, Found) and stem_of(named.path) == stem
        own: Found | list[str] = []
        if not isinstance(named, Found) or (not is_own and stem_of(named.path) in self._stems):
            own = self._index.find_image(stem, folders, document)
        if isinstance(own, Found) and self._is_image(own.path):
            other = own._replace(change=_OTHER_NAME if filename else None)
            return Entry(own.path, annotation, path_notes(other, filename, document))
        if isinstance(named, Found):
            notes = path_notes(named, filename, document)
            if not is_own:
                notes += path_notes(named._replace(change=_OTHER_NAME), filename, document)
            return Entry(named.path, annotation, notes)
        problem = not_found(named or own, filename or stem)
        fault = Fault(problem, document, check=Check.ANNOTATION_WITHOUT_IMAGE)
        return Entry(document, annotation, fault=fault)

    def _is_image(self, path: str) -> bool:
        return not path.lower().endswith(self._format.suffix)


class _List(NamedTuple):
    """A list in ImageSets: its split, its path, and (line, name) of each image."""

    split: str
    path: str
    names: Lines


def _read_lists(index: FileIndex, layout: _Layout) -> list[_List]:
    """The lists of splits, without those of one class (aeroplane_train.txt)."""
    for folder in ("imagesets/main", "imagesets"):
        known = layout.base.lower() + folder
        paths = (path for path in index.paths if posixpath.dirname(path).lower() == known)
        if lists := split_lists(paths):
            return [_List(split, p, read_lines(index.root / p)) for split, p in lists.items()]
    return []


def _with_lists(
    index: FileIndex, found: _Annotations, lists: list[_List]
) -> tuple[dict[str, Entry], dict[str, str], list[str]]:
    """The entries in the lists, the split of each, and notices."""
    by_stem: dict[str, str] = {}
    for name, entry in found.entries.items():
        document = entry.annotation.place if entry.annotation else name
        by_stem.setdefault(stem_of(document), name)
        by_stem.setdefault(stem_of(name), name)
    entries: dict[str, Entry] = {}
    splits: dict[str, str] = {}
    twice: list[str] = []
    bare: list[str] = []
    folders = [found.layout.images.rstrip("/"), found.layout.base.rstrip("/")]
    for listed in lists:
        for line, text in listed.names:
            plain = _without_class_mark(text)
            known = by_stem.get(posixpath.basename(text)) or by_stem.get(stem_of(text))
            known = known or by_stem.get(plain)
            if known is None:
                entry = _unannotated(index, folders, listed, line, plain)
            else:
                entry = found.entries[known]
            name = known or entry.image
            if name in entries:
                if splits[name] != listed.split:
                    twice.append(f"{name} in {splits[name]} and {listed.split}")
                continue
            if entry.annotation is None and entry.fault is None:
                bare.append(name)
            entries[name], splits[name] = entry, listed.split
    left = sorted({*found.entries, *found.layout.image_paths} - entries.keys())
    what, check = "without an annotation file packed without boxes", Check.IMAGE_WITHOUT_ANNOTATION
    notices = [
        *count_notice(twice, "image", "in two splits packed in the first"),
        *count_notice(bare, "image", what, check=check),
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
) -> Entry:
    """The entry of a listed image without an annotation file."""
    found = index.find_image(name, folders, listed.path)
    if isinstance(found, Found) and has_image_name(found.path):
        return Entry(found.path)
    path = posixpath.join(folders[0], name)
    fault = Fault(not_found(found, name), listed.path, line, check=Check.ANNOTATION_WITHOUT_IMAGE)
    return Entry(path, fault=fault)
