"""Sources with an annotation file for each image: the files, their images, and lists of splits.

`Annotations/` and `JPEGImages/` with lists in `ImageSets/`, `annotations/` and `images/`, or files
next to the images, with or without folders named like splits. An image without a file is a sample
only if a list names it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

import msgspec

from recordsmith.errors import RecordsmithError, SourceError
from recordsmith.sources.boxes.annotation import MAX_VALUE_BYTES, AnnotationFile, Entry
from recordsmith.sources.boxes.source import AnnotatedSource, ListedImages, path_notes, strength
from recordsmith.sources.classes import Classes, make_classes
from recordsmith.sources.files.file_index import (
    FileIndex,
    Found,
    name_key,
    no_files,
    not_found,
)
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import IMAGE_FOLDERS, has_image_name, stem_of
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import with_slashes
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import LayoutCandidate
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.splits import split_lists, splits_by_folder

_ANNOTATION_FOLDERS = frozenset(
    ("annotations", "annotation", "xml", "xmls", "json", "jsons", "labels")
)
_MASK_FOLDERS = frozenset(("segmentationclass", "segmentationobject", "segmentationclassaug"))
_ANNOTATIONS = re.compile(r"(?:^|(?<=/))annotations/", re.IGNORECASE)
_OTHER_NAME = "annotations name another image than their file name does"


class PerImageAnnotationSource(AnnotatedSource):
    """What the sources of such files share."""

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        if paths := cls._matching(tree):
            what = cls.box_format.what.format(paths[0])
            confidence = strength(tree, cls.box_format.suffix)
            yield LayoutCandidate(cls.box_format.name, what, confidence)

    def _list_images(self, index: FileIndex) -> ListedImages:
        suffix = self.box_format.suffix
        layout = _Layout(index, suffix)
        entries: dict[str, Entry] = {}
        class_names: set[str] = set()
        foreign: list[str] = []
        for document in layout.documents:
            entry = self._read(index, document, class_names)
            if entry is None:
                foreign.append(document)
                continue
            if entry.fault is None:
                _find_image(index, layout, entry, suffix)
            _add(entries, entry)
        splits = splits_by_folder(entries)
        if lists := _find_lists(index, layout.base):
            entries, splits, notices = _with_lists(index, layout, entries, lists)
        else:
            used = {entry.image for entry in entries.values()}
            left = [path for path in layout.image_paths if path not in used]
            what, check = "without an annotation file skipped", Check.IMAGE_WITHOUT_ANNOTATION
            notices = count_notice(left, "image", what, check=check)
        if not entries:
            raise no_files(index.root, self.box_format.expected, index)
        notices += count_notice(foreign, f"other {suffix[1:].upper()} file", "skipped")
        notices += count_notice(layout.masks, "segmentation mask", "skipped")
        return ListedImages(entries, splits, self._classes(index, class_names), notices)

    def _classes(self, index: FileIndex, names: set[str]) -> Classes:
        return make_classes(names, self._label_map)

    def _read(self, index: FileIndex, document: str, class_names: set[str]) -> Entry | None:
        """The entry of an annotation file, whose image is not known; None for other files."""
        notes: list[tuple[str, str]] = []
        location, version = index.root / document, index.version_of(document)
        file = AnnotationFile(location, document, version, note=lambda *note: notes.append(note))
        try:
            image = next(iter(self.box_format.parse(file)), None)
        except RecordsmithError as error:
            fault = Fault(str(error))
            if isinstance(error, SourceError):
                fault = Fault(error.problem, error.path, error.line, error.remedy)
            return Entry(document, document, version, fault=fault)
        if image is None:
            return None
        class_names.update(
            item.name for item in image.objects if item.name and "\n" not in item.name
        )
        try:
            content = msgspec.json.encode(image.objects)
        except ValueError:  # text with surrogates
            content = b""
        content = content if len(content) <= MAX_VALUE_BYTES else b""
        image = image._replace(objects=())
        return Entry(document, document, version, image, content, notes=tuple(notes))


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
        images = [by_lower[name] for name in IMAGE_FOLDERS if name in by_lower]
        has_own = self.annotations != self.base and bool(images)
        self.images = f"{self.base}{images[0]}/" if has_own else self.base
        self.documents = [path for path in documents if path.startswith(self.annotations)]
        pixels = [path for path in inside if has_image_name(path)]
        self.masks = [p for p in pixels if not _MASK_FOLDERS.isdisjoint(p.lower().split("/"))]
        masks = {*self.masks}
        self.image_paths = [p for p in pixels if p.startswith(self.images) and p not in masks]

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


def _find_image(index: FileIndex, layout: _Layout, entry: Entry, suffix: str) -> None:
    """Find the image by the name of the annotation file, else by the name in it."""
    document, filename = entry.place, entry.annotated.file_name
    entry.annotated = entry.annotated._replace(file_name="")
    folders, stem = layout.folders_for(document), stem_of(document)
    own_stem = stem_of(with_slashes(filename))
    is_own = own_stem == stem or name_key(own_stem) == name_key(stem)
    lookups = [(filename, True), (stem, False)] if is_own else [(stem, False), (filename, True)]
    candidates: list[str] = []
    for name, is_filename in lookups:
        match = index.find_image(name, folders, document) if name else []
        if isinstance(match, Found) and not match.path.lower().endswith(suffix):
            entry.image = match.path
            changes = [match.change] if is_filename else []
            changes += [_OTHER_NAME] if filename and not is_own else []
            for change in changes:
                entry.notes += path_notes(Found(match.path, change), filename, document)
            return
        candidates = candidates or (match if isinstance(match, list) else [])
    problem = not_found(candidates, filename or stem)
    entry.fault = Fault(problem, document, check=Check.ANNOTATION_WITHOUT_IMAGE)


def _add(entries: dict[str, Entry], entry: Entry) -> None:
    """Add an entry; a second one for an image is a fault."""
    if entry.fault is not None:
        entries[entry.place] = entry
        return
    earlier = entries.setdefault(entry.image, entry)
    if earlier is not entry:
        if stem_of(entry.place) == stem_of(entry.image):  # the better match
            entries[entry.image], earlier, entry = entry, entry, earlier
        problem = f"image {entry.image} already has the annotations {earlier.place}"
        entry.image, entry.fault = entry.place, Fault(problem, entry.place)
        entries[entry.place] = entry


def _find_lists(index: FileIndex, base: str) -> dict[str, str]:
    """The lists of splits, without those of one class (aeroplane_train.txt)."""
    for folder in ("imagesets/main", "imagesets"):
        known = base.lower() + folder
        paths = (path for path in index.paths if posixpath.dirname(path).lower() == known)
        if lists := split_lists(paths):
            return lists
    return {}


def _with_lists(
    index: FileIndex, layout: _Layout, annotated: Mapping[str, Entry], lists: Mapping[str, str]
) -> tuple[dict[str, Entry], dict[str, str], list[str]]:
    """The entries in the lists, the split of each, and notices."""
    by_stem: dict[str, str] = {}
    for name, entry in annotated.items():
        by_stem.setdefault(stem_of(entry.place), name)
        by_stem.setdefault(stem_of(name), name)
    entries: dict[str, Entry] = {}
    splits: dict[str, str] = {}
    twice: list[str] = []
    bare: list[str] = []
    folders = [layout.images.rstrip("/"), layout.base.rstrip("/")]
    for split, path in lists.items():
        for line, text in read_lines(index.root / path):
            first = text.split(maxsplit=1)[0]  # lists of one class have -1, 0 or 1 behind it
            stems = (posixpath.basename(text), stem_of(text), first)
            known = next((by_stem[stem] for stem in stems if stem in by_stem), None)
            entry = annotated[known] if known else _unannotated(index, folders, text, path, line)
            name = known or entry.image
            if name in entries:
                if splits[name] != split:
                    twice.append(f"{name} in {splits[name]} and {split}")
                continue
            if not entry.place and entry.fault is None:
                bare.append(name)
            entries[name], splits[name] = entry, split
    left = sorted({*annotated, *layout.image_paths} - entries.keys())
    what, check = "without an annotation file packed without boxes", Check.IMAGE_WITHOUT_ANNOTATION
    notices = [
        *count_notice(twice, "image", "in two splits packed in the first"),
        *count_notice(bare, "image", what, check=check),
        *count_notice(left, "file", "missing from the lists skipped"),
    ]
    return entries, splits, notices


def _unannotated(index: FileIndex, folders: list[str], name: str, path: str, line: int) -> Entry:
    """The entry of a listed image without an annotation file."""
    match = index.find_image(name, folders, path)
    if isinstance(match, Found) and has_image_name(match.path):
        return Entry(match.path)
    fault = Fault(not_found(match, name), path, line, check=Check.ANNOTATION_WITHOUT_IMAGE)
    return Entry(posixpath.join(folders[0], name), fault=fault)
