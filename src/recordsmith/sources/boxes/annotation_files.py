"""Sources with files that each describe many images: the files, their splits, their images."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources.boxes.annotation import AnnotatedImage, AnnotationFile, Entry
from recordsmith.sources.boxes.placing import BoxPolicy
from recordsmith.sources.boxes.reader import Masks
from recordsmith.sources.boxes.source import AnnotatedSource, ListedImages, path_notes
from recordsmith.sources.classes import Classes
from recordsmith.sources.files.file_index import (
    FOUND_WITH_SUFFIX,
    FileIndex,
    Found,
    no_files,
    not_found,
)
from recordsmith.sources.files.file_tree import HEAD_BYTES, FileTree
from recordsmith.sources.files.images import IMAGE_FOLDERS, has_image_name, stem_of
from recordsmith.sources.files.paths import inside, is_file, size_and_version
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.stores import Location, PlaceLike, as_folder, as_location

_LIKELY_FOLDERS = frozenset((*IMAGE_FOLDERS, "data"))


class SharedAnnotationSource(AnnotatedSource):
    """What the sources of such files share: the options `annotations` and `images`."""

    option_names = ("annotations", "images", *AnnotatedSource.option_names)

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
        object_masks: Masks | None = None,
    ) -> None:
        """
        Args:
            root: the folder of images and annotations; or the annotation file, next to its images
                or in a folder `annotations` next to theirs.
            annotations: the annotation file, or a mapping from split to file; None to find them.
            images: the folder of the images, inside the root; None to find it.
            label_map: path of a `label_map.pbtxt`, which defines the labels.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`). With masks, an object with an invalid
                segmentation fails its sample, gets an empty mask (`clip`), or is dropped (`drop`).
            object_masks: `instance` adds `image/object/mask`, a PNG of 0 and 1 for each object;
                `class` adds `image/segmentation/class/encoded`, one PNG of labels with smaller
                objects on top. Polygons are rasterized like in pycocotools. Only for formats with
                outlines.
        """
        super().__init__(root, label_map=label_map, boxes=boxes, object_masks=object_masks)
        if annotations is None and is_file(self.root):
            annotations, folder = self.root, self.root.absolute().parent
            self.root = folder.parent if folder.name.lower() == "annotations" else folder
        self._annotations: Mapping[str, PlaceLike] | None = None
        if annotations is not None:
            named = annotations if isinstance(annotations, Mapping) else {"": annotations}
            self._annotations = named
        self._images = None if images is None else _path_of_images(self.root, images)

    def describe(self) -> Mapping[str, Any]:
        files = {split: self._located(path)[1] for split, path in (self._annotations or {}).items()}
        named = files.get("", files) if files else None
        return {**super().describe(), "annotations": named, "images": self._images}

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        if not (paths := cls._matching(tree)):
            return
        chosen = [path for path in paths if not cls._is_of_other_task(path)] or paths
        yield LayoutCandidate(
            cls.box_format.name,
            cls.box_format.what.format(join_names(chosen)),
            Confidence.ANNOTATED,
            left_out=tuple(f"{path} (another task)" for path in paths if path not in chosen),
            files=tuple(paths),
        )

    @staticmethod
    def _is_of_other_task(path: str) -> bool:  # noqa: ARG004 - most formats have none
        """Whether a file has no boxes of objects, by its name."""
        return False

    def _list_images(self, index: FileIndex) -> ListedImages:
        files = self._files(index)
        listed = self._parse(files)
        classes, notices = self._classes(index, files.values(), listed)
        entries, splits, left = self._find_images(index, listed, files.values())
        notices = [*notices, *left]
        notices += dict.fromkeys(text for file in files.values() for text in file.notices)
        contexts = {file.name: file.context for file in files.values()}
        return ListedImages(entries, splits, classes, notices, contexts)

    @abstractmethod
    def _classes(
        self,
        index: FileIndex,
        files: Collection[AnnotationFile],
        listed: Mapping[str, Sequence[Entry]],
    ) -> tuple[Classes, list[str]]:
        """The classes of all files together, and notices; may complete files and entries."""

    def _find(self, index: FileIndex) -> Sequence[str]:
        """The annotation files to read."""
        paths = [path for path in index.paths if self._matches(index, path)]
        if not paths:
            raise no_files(index.root, self.box_format.expected, index)
        return paths

    def _matches(self, index: FileIndex, path: str) -> bool:
        """Whether a file has the suffix of the format and begins like it."""
        known = self.box_format
        return path.lower().endswith(known.suffix) and known.matches(
            (index.root / path).read(0, HEAD_BYTES)
        )

    def _files(self, index: FileIndex) -> dict[str, AnnotationFile]:
        """The annotation file of each split; a single one may have the split ""."""
        if self._annotations is None:
            paths = _group_by_split(self._find(index))
            places = {split: (index.root / path, path) for split, path in paths.items()}
        else:
            places = {split: self._located(path) for split, path in self._annotations.items()}
        with_outlines = self._masks is not None
        return {
            split: AnnotationFile(
                *place, size_and_version(place[0])[1], with_outlines=with_outlines
            )
            for split, place in places.items()
        }

    def _located(self, place: PlaceLike) -> tuple[Location, str]:
        """A file from the caller, and its name relative to the root."""
        file = as_location(place)
        if not is_file(file):
            below = inside(self.root, str(place))
            file = below if below is not None and is_file(below) else file
        return file, _path_inside(self.root, file) or file.name

    def _parse(self, files: Mapping[str, AnnotationFile]) -> dict[str, list[Entry]]:
        """The images of each file by split; those of a single file may have splits in it."""
        entries: dict[str, list[Entry]] = {}
        for split, file in files.items():
            entries[split] = [_entry(image, file) for image in self.box_format.parse(file)]
        if len(files) == 1:
            ((split, listed),) = entries.items()
            if listed and all(entry.annotated.split for entry in listed):
                entries = {}
                for entry in sorted(listed, key=lambda entry: entry.annotated.split.lower()):
                    entries.setdefault(entry.annotated.split.lower(), []).append(entry)
        return entries

    def _find_images(
        self, index: FileIndex, listed: Mapping[str, list[Entry]], files: Iterable[AnnotationFile]
    ) -> tuple[dict[str, Entry], dict[str, str], list[str]]:
        """The entries of all images, the split of each, and notices on what is left out."""
        entries: dict[str, Entry] = {}
        splits: dict[str, str] = {}
        folders: dict[tuple[str, str], list[str]] = {}
        for split, unplaced in listed.items():
            unplaced.reverse()
            while unplaced:  # what is found takes the place of what is listed
                entry = unplaced.pop()
                file, where = entry.place, entry.annotated.where
                if (file, split) not in folders:
                    own = None if self._images is None else [self._images]
                    folders[file, split] = own or _image_folders(index, file, split)
                _place(index, folders[file, split], entry)
                name = entry.image
                if name in entries:
                    problem = f"{where}: {name} is already listed in {entries[name].place}"
                    entry = dataclasses.replace(entry, fault=Fault(problem, file))
                    name = f"{file}/{where.rpartition(' ')[2]}"
                if name in entries:  # ids may be missing or repeated
                    name = f"{name} ({len(entries)})"
                entries[name], splits[name] = entry, split
        if not entries:
            names = join_names(file.name for file in files)
            raise SourceError(f"no images to pack: {names} list no images", path=self.root)
        used = {entry.image for entry in entries.values()}
        left = [path for path in index.paths if has_image_name(path) and path not in used]
        what, check = "missing from annotation files skipped", Check.IMAGE_WITHOUT_ANNOTATION
        return entries, splits, count_notice(left, "image", what, check=check)


def _entry(image: AnnotatedImage, file: AnnotationFile) -> Entry:
    """What is kept of an image, whose file is not looked for yet."""
    content = b""
    if image.spans is None:  # its objects have no place of their own
        content = msgspec.json.encode(image.objects)
        image = image._replace(objects=())
    return Entry("", file.name, file.version, image, content, file)


def _path_of_images(root: Location, images: PlaceLike) -> str:
    """The folder of images, relative to the root."""
    for folder in (as_folder(images), inside(root, str(images))):
        if folder is not None and folder.is_folder():
            path = _path_inside(root, folder)
            if path is not None:
                return path
    raise OptionError(option="images", value=str(images), expected=f"a folder inside {root}")


def _path_inside(root: Location, place: Location) -> str | None:
    """The path of a file or folder relative to the root, which also links may lead to."""
    if not root.contains(place):
        return None
    return place.identity[len(root.identity) :].lstrip("/")


def _group_by_split(paths: Sequence[str]) -> dict[str, str]:
    """The split of each file, by its name; a single one may have the split ""."""
    if len(paths) == 1:
        words = _split_words(paths[0])
        return {words[0] if len(words) == 1 else "": paths[0]}
    for words_of in (_split_words, _split_words_with_years):
        splits = {tuple(words_of(path)): path for path in paths}
        if len(splits) == len(paths) and all(len(words) == 1 for words in splits):
            return {words[0]: path for words, path in splits.items()}
    raise SourceError(
        f"several annotation files without distinct splits in their names: {join_names(paths)}",
        remedy=f"Choose one with {option('annotations', paths[0])}, or map each split to its file.",
    )


def _split_words(path: str) -> list[str]:
    """Splits in the name of a file, or of its folder: instances_train2017 -> train."""
    folder, name = posixpath.split(path)
    for text in (posixpath.splitext(name)[0], posixpath.basename(folder)):
        if words := [word for word in re.findall(r"[A-Za-z]+", text) if is_split_name(word)]:
            return words
    return []


def _split_words_with_years(path: str) -> list[str]:
    words = re.findall(r"[A-Za-z]+\d+", stem_of(path))
    return [word for word in words if is_split_name(word.rstrip("0123456789"))]


def _image_folders(index: FileIndex, file: str, split: str) -> list[str]:
    """Where to look for images, best first: next to the file, folders named like it, images."""
    own = posixpath.dirname(file)
    words = {split.lower(), *map(str.lower, (*_split_words_with_years(file), *_split_words(file)))}
    folders = sorted({posixpath.dirname(path) for path in index.paths if has_image_name(path)})
    above = {posixpath.dirname(folder) for folder in folders}

    def rank(folder: str) -> tuple[int, str]:
        last = posixpath.basename(folder).lower()
        if folder == own:
            return 0, folder
        return (1 if last in words else 2 if last in _LIKELY_FOLDERS else 3), folder

    near = {own, posixpath.dirname(own), ""}
    likely = [folder for folder in {*folders, *above, *near} if rank(folder)[0] < 3]
    return list(dict.fromkeys([*sorted(likely, key=rank), *sorted(near)]))


def _place(index: FileIndex, folders: list[str], entry: Entry) -> None:
    """Find the image of an entry; `folders` are where to look for it, best first."""
    file, image = entry.place, entry.annotated
    name = image.file_name
    match = index.find_image(name, folders, file) if name else []
    if isinstance(match, Found) and has_image_name(match.path):
        entry.image = match.path
        entry.annotated = image._replace(file_name="", where="")
        if match.change != FOUND_WITH_SUFFIX or has_image_name(name):  # or names have no suffixes
            entry.notes = path_notes(match, name, f"{file}, {image.where}")
        return
    problem = not_found(match, name, join_names(folder or "." for folder in folders))
    entry.image = f"{file}/{image.where.rpartition(' ')[2]}"
    entry.fault = Fault(f"{image.where}: {problem}", file, check=Check.ANNOTATION_WITHOUT_IMAGE)
