"""Find COCO's JSON files, their splits, and the folders of their images.

Layouts: `annotations/instances_train2017.json` with `train2017/`, one folder per split with
`_annotations.coco.json` in it, or one JSON file next to or above its images.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError, option
from recordsmith.sources.boxes.coco_json import CocoFile, looks_like_coco
from recordsmith.sources.boxes.entries import Entry, path_notes
from recordsmith.sources.files.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.flaws import Check
from recordsmith.sources.problems import Fault, join_names

_EXPECTED = (
    "annotations/instances_<split>.json with one folder of images per split, "
    "<split>/_annotations.coco.json next to the images, or one .json file next to or above them"
)
_SPLIT_FILE = "_annotations.coco.json"
_OTHER_TASKS = ("captions_", "person_keypoints_", "stuff_", "panoptic_", "image_info_")
_IMAGE_FOLDERS = frozenset(("images", "image", "imgs", "img", "jpegimages", "pictures", "data"))


class Described(NamedTuple):
    """One image in a JSON file: the file, and the entry in it."""

    file: CocoFile
    image: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"{self.file.name}, image {self.image['id']}"


def find_files(index: FileIndex) -> dict[str, str]:
    """Find the JSON file of each split; a single file has the split "".

    Raises:
        SourceError: there are none, or they are ambiguous.
    """
    documents = [path for path in index.paths if path.lower().endswith(".json")]
    groups = (
        [path for path in documents if posixpath.basename(path) == _SPLIT_FILE],
        [path for path in documents if posixpath.dirname(path).lower() == "annotations"],
        [path for path in documents if "/" not in path],
        documents,
    )
    for group in groups:
        known = [path for path in group if looks_like_coco(index.root / path)]
        instances = [path for path in known if "instances" in posixpath.basename(path)]
        boxed = instances or [path for path in known if not _is_of_other_task(path)]
        if boxed:
            return _group_by_split(boxed)
    if not documents:
        raise no_files(index.root, _EXPECTED, index)
    head = (index.root / documents[0]).read(0, 20)
    found = f"the file starts with {head!r}" if head else "the file is empty"
    raise SourceError(
        f"not a COCO annotation file: {found}; expected an object with the lists images, "
        "annotations and categories",
        path=documents[0],
    )


def _is_of_other_task(path: str) -> bool:
    return posixpath.basename(path).startswith(_OTHER_TASKS)


def _group_by_split(paths: list[str]) -> dict[str, str]:
    if len(paths) == 1:
        return {"": paths[0]}
    for tokens_of in (_split_words, _split_words_with_years):
        splits = {tuple(tokens_of(path)): path for path in paths}
        if len(splits) == len(paths) and all(len(words) == 1 for words in splits):
            return {words[0]: path for words, path in splits.items()}
    raise SourceError(
        f"several annotation files without distinct splits in their names: {join_names(paths)}",
        remedy=f"Choose one with {option('annotations', paths[0])}, or map each split to its file.",
    )


def _split_words(path: str) -> list[str]:
    """Names of splits in the file's name, or that of its folder: instances_train2017 -> train."""
    folder, name = posixpath.split(path)
    source = posixpath.basename(folder) if name == _SPLIT_FILE else posixpath.splitext(name)[0]
    words = re.findall(r"[A-Za-z]+", source)
    return [word for word in words if is_split_name(word)]


def _split_words_with_years(path: str) -> list[str]:
    words = re.findall(r"[A-Za-z]+\d+", posixpath.splitext(posixpath.basename(path))[0])
    return [word for word in words if is_split_name(word.rstrip("0123456789"))]


def image_folders(index: FileIndex, file: CocoFile, split: str) -> list[str]:
    """Where to look for images, best first: next to the file, folders named like it, images."""
    own = posixpath.dirname(file.name)
    words = {split.lower(), *(word.lower() for word in _split_words_with_years(file.name))}
    words.update(word.lower() for word in _split_words(file.name))
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


def make_entry(index: FileIndex, folders: list[str], described: Described) -> Entry[Described]:
    """The entry of an image; `folders` are where to look for its file, best first."""
    name, place = described.image["file_name"], described.place
    found = index.find_image(name, folders, described.file.name) if name else []
    if isinstance(found, Found):
        return Entry(found.path, described, path_notes(found, name, place))
    image_id = described.image["id"]
    problem = not_found(found, name, join_names(folder or "." for folder in folders))
    fault = Fault(
        f"image {image_id}: {problem}",
        described.file.name,
        check=Check.ANNOTATION_WITHOUT_IMAGE,
    )
    return Entry(f"{described.file.name}/{image_id}", described, fault=fault)
