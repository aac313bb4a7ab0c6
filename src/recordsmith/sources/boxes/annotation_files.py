"""Sources with files that each describe many images: the files, their splits, their images."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources.boxes.annotated import AnnotatedImages, Entry, Masks, path_notes
from recordsmith.sources.boxes.boxes import BoxPolicy
from recordsmith.sources.files.file_index import (
    FOUND_WITH_SUFFIX,
    FileIndex,
    Found,
    no_files,
    not_found,
)
from recordsmith.sources.files.images import has_image_name, stem_of
from recordsmith.sources.files.paths import inside, is_file
from recordsmith.sources.flaws import Check
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.stores import Location, PlaceLike, as_folder, as_location

_HEAD_BYTES = 1 << 16
_IMAGE_FOLDERS = frozenset(("images", "image", "imgs", "img", "jpegimages", "pictures", "data"))

Kept_co = TypeVar("Kept_co", covariant=True)


class DescribedImage(NamedTuple, Generic[Kept_co]):
    """One image in an annotation file.

    where: in the file: "image 17", "line 5".
    file_name: of the image, as the file has it.
    kept: what the listing keeps of its annotation.
    """

    where: str
    file_name: str
    kept: Kept_co


class AnnotationFile(Protocol[Kept_co]):
    """A file that describes many images; `name` is its path relative to the root."""

    name: str

    def described(self) -> Iterator[DescribedImage[Kept_co]]:
        """Yield the images in the order of the file."""
        ...


class FileAnnotatedImages(AnnotatedImages):
    """What the sources of such files share: the options `annotations` and `images`."""

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
                objects on top. Polygons are rasterized like in pycocotools.

        Raises:
            OptionError: `boxes` or `object_masks` is invalid, or `images` is not a folder inside
                the root.
        """
        super().__init__(root, label_map=label_map, boxes=boxes, object_masks=object_masks)
        if annotations is None and is_file(self.root):
            annotations, self.root = self.root, _dataset_folder(self.root)
        self._annotations = annotations
        self._images = None if images is None else _path_of_images(self.root, images)

    def describe(self) -> Mapping[str, Any]:
        files = self._annotations
        named: Any = None
        if isinstance(files, Mapping):
            named = {split: self._located(path)[1] for split, path in files.items()}
        elif files is not None:
            named = self._located(files)[1]
        return {**super().describe(), "annotations": named, "images": self._images}

    def _files(
        self, index: FileIndex, find: Callable[[FileIndex], Mapping[str, str]]
    ) -> dict[str, tuple[Location, str]]:
        """split -> (location, name for messages) of each file; `find` finds them."""
        if self._annotations is None:
            return {split: (index.root / path, path) for split, path in find(index).items()}
        given = self._annotations
        files = given if isinstance(given, Mapping) else {"": given}
        return {split: self._located(path) for split, path in files.items()}

    def _located(self, place: PlaceLike) -> tuple[Location, str]:
        """A file from the caller, and its name relative to the root."""
        file = as_location(place)
        if not is_file(file):
            below = inside(self.root, str(place))
            file = below if below is not None and is_file(below) else file
        return file, path_inside(self.root, file) or file.name

    def _places(self, paths: Mapping[str, tuple[Location, str]]) -> dict[str, dict[str, str]]:
        """What references have of each file: its name, and its location if it is not below."""
        return {
            name: {"place": name}
            | ({} if path_inside(self.root, place) else {"file": str(place.absolute())})
            for place, name in paths.values()
        }

    def _entries(
        self,
        index: FileIndex,
        files: Mapping[str, AnnotationFile[Kept_co]],
        mask_folders: Collection[str] = (),
    ) -> tuple[dict[str, Entry[Kept_co]], dict[str, str], list[str]]:
        """The entries of all files, the split of each, and notices on what is left out.

        Raises:
            SourceError: the files list no images.
        """
        entries: dict[str, Entry[Kept_co]] = {}
        splits: dict[str, str] = {}
        first: dict[str, str] = {}  # the file that lists an image first
        for split, file in files.items():
            folders = (
                _image_folders(index, file.name, split) if self._images is None else [self._images]
            )
            for described in file.described():
                entry = _make_entry(index, folders, file.name, described)
                name = entry.image
                if name in entries:
                    problem = f"{described.where}: {name} is already listed in {first[name]}"
                    entry = dataclasses.replace(entry, fault=Fault(problem, file.name))
                    name = f"{file.name}/{described.where.rpartition(' ')[2]}"
                if name in entries:  # ids may be missing or repeated
                    name = f"{name} ({len(entries)})"
                entries[name], splits[name] = entry, split
                first.setdefault(name, file.name)
        if not entries:
            names = join_names(file.name for file in files.values())
            raise SourceError(f"no images to pack: {names} list no images", path=self.root)
        used = {entry.image for entry in entries.values()}
        left = [
            path
            for path in index.paths
            if has_image_name(path)
            and path not in used
            and posixpath.dirname(path) not in mask_folders
        ]
        notices = count_notice(
            left,
            "image",
            "missing from annotation files skipped",
            check=Check.IMAGE_WITHOUT_ANNOTATION,
        )
        notices += count_notice(index.hidden, "hidden file", "skipped")
        return entries, splits, notices


def _dataset_folder(document: Location) -> Location:
    """The folder of the dataset that an annotation file belongs to."""
    folder = document.absolute().parent
    return folder.parent if folder.name.lower() == "annotations" else folder


def _path_of_images(root: Location, images: PlaceLike) -> str:
    """The folder of images, relative to the root."""
    for folder in (as_folder(images), inside(root, str(images))):
        if folder is not None and folder.is_folder():
            path = path_inside(root, folder)
            if path is not None:
                return path
    raise OptionError(option="images", value=str(images), expected=f"a folder inside {root}")


def path_inside(root: Location, place: Location) -> str | None:
    """The path of a file or folder relative to the root, which also links may lead to."""
    if not root.contains(place):
        return None
    return place.identity[len(root.identity) :].lstrip("/")


def find_by_content(
    index: FileIndex, suffix: str, fits: Callable[[bytes], bool], expected: str
) -> dict[str, str]:
    """Find the files that start as expected, and the split of each; a single one has the split "".

    Raises:
        SourceError: there are none, or they are ambiguous.
    """
    paths = [
        path
        for path in index.paths
        if path.lower().endswith(suffix) and fits((index.root / path).read(0, _HEAD_BYTES))
    ]
    if not paths:
        raise no_files(index.root, expected, index)
    return group_by_split(paths)


def group_by_split(paths: Sequence[str]) -> dict[str, str]:
    if len(paths) == 1:
        words = _split_words(paths[0])
        return {words[0] if len(words) == 1 else "": paths[0]}
    for tokens_of in (_split_words, _split_words_with_years):
        splits = {tuple(tokens_of(path)): path for path in paths}
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
    words = {split.lower(), *(word.lower() for word in _split_words_with_years(file))}
    words.update(word.lower() for word in _split_words(file))
    folders = sorted({posixpath.dirname(path) for path in index.paths if has_image_name(path)})
    above = {posixpath.dirname(folder) for folder in folders}

    def rank(folder: str) -> tuple[int, str]:
        last = posixpath.basename(folder).lower()
        if folder == own:
            return 0, folder
        if last in words:
            return 1, folder
        return (2 if last in _IMAGE_FOLDERS else 3), folder

    near = {own, posixpath.dirname(own), ""}
    wanted = [folder for folder in {*folders, *above, *near} if rank(folder)[0] < 3]
    return list(dict.fromkeys([*sorted(wanted, key=rank), *sorted(near)]))


def _make_entry(
    index: FileIndex, folders: list[str], file: str, described: DescribedImage[Kept_co]
) -> Entry[Kept_co]:
    """The entry of an image; `folders` are where to look for it, best first."""
    where, name, kept = described
    found = index.find_image(name, folders, file) if name else []
    if isinstance(found, Found) and has_image_name(found.path):
        if found.change == FOUND_WITH_SUFFIX and not has_image_name(name):
            found = Found(found.path)  # names without suffixes are usual
        return Entry(found.path, kept, path_notes(found, name, f"{file}, {where}"))
    problem = not_found(found, name, join_names(folder or "." for folder in folders))
    fault = Fault(f"{where}: {problem}", file, check=Check.ANNOTATION_WITHOUT_IMAGE)
    return Entry(f"{file}/{where.rpartition(' ')[2]}", kept, fault=fault)
