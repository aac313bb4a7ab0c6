"""COCO's files: which JSON files there are, of which splits, and where their pictures are.

`annotations/instances_train2017.json` with `train2017/`, a folder for each split with
`_annotations.coco.json` in it, or one JSON file beside or above its pictures.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError
from recordsmith.files import read_head
from recordsmith.sources.coco_json import CocoFile, looks_like_coco
from recordsmith.sources.entries import Entry, notes_of
from recordsmith.sources.file_index import FileIndex, Found, no_files, not_found
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.wording import some

_EXPECTED = (
    "annotations/instances_<split>.json with a folder of pictures for each split, "
    "<split>/_annotations.coco.json beside the pictures, or one .json file beside or above them"
)
_SPLIT_FILE = "_annotations.coco.json"
_OTHER_TASKS = ("captions_", "person_keypoints_", "stuff_", "panoptic_", "image_info_")
_PICTURE_FOLDERS = frozenset(("images", "image", "imgs", "img", "jpegimages", "pictures", "data"))


class Described(NamedTuple):
    """What is said of one picture: its JSON file, and its entry there."""

    file: CocoFile
    image: Mapping[str, Any]

    @property
    def place(self) -> str:
        return f"{self.file.name}, picture {self.image['id']}"


def find_files(index: FileIndex) -> dict[str, str]:
    """split -> JSON file; one file alone is no split.

    Raises:
        SourceError: there is none, or it is not clear which are meant.
    """
    documents = [path for path in index.paths if path.lower().endswith(".json")]
    groups = (
        [path for path in documents if posixpath.basename(path) == _SPLIT_FILE],
        [path for path in documents if posixpath.dirname(path).lower() == "annotations"],
        [path for path in documents if "/" not in path],
        documents,
    )
    for group in groups:
        known = [path for path in group if looks_like_coco(index.full_path(path))]
        instances = [path for path in known if "instances" in posixpath.basename(path)]
        boxed = instances or [path for path in known if not _is_of_other_task(path)]
        if boxed:
            return _by_split(boxed)
    nothing = no_files(index.root, _EXPECTED, index)
    if not documents:
        raise nothing
    raise SourceError(
        f"{nothing}. {documents[0]} {_beginning(index.full_path(documents[0]))}; expected an "
        "object with the lists images, annotations and categories"
    )


def _beginning(path: str) -> str:
    head = read_head(path, 20)
    return f"begins with {head!r}" if head else "is empty"


def _is_of_other_task(path: str) -> bool:
    return posixpath.basename(path).startswith(_OTHER_TASKS)


def _by_split(paths: list[str]) -> dict[str, str]:
    if len(paths) == 1:
        return {"": paths[0]}
    for tokens_of in (_split_words, _split_words_with_years):
        splits = {tuple(tokens_of(path)): path for path in paths}
        if len(splits) == len(paths) and all(len(words) == 1 for words in splits):
            return {words[0]: path for words, path in splits.items()}
    raise SourceError(
        f"there are {len(paths)} annotation files, and their names do not tell one split each: "
        f"{some(paths)}; say which: annotations='{paths[0]}', or one for each split: "
        f"annotations={{'train': '{paths[0]}', ...}}"
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


def picture_folders(index: FileIndex, file: CocoFile, split: str) -> list[str]:
    """Where pictures are looked for, best first: beside the file, folders named like it, images."""
    own = posixpath.dirname(file.name)
    words = {split.lower(), *(word.lower() for word in _split_words_with_years(file.name))}
    words.update(word.lower() for word in _split_words(file.name))
    folders = sorted({posixpath.dirname(path) for path in index.paths if has_picture_name(path)})
    above = {posixpath.dirname(folder) for folder in folders}

    def rank(folder: str) -> tuple[int, str]:
        last = posixpath.basename(folder).lower()
        if folder == own:
            return 0, folder
        if last in words:
            return 1, folder
        return (2 if last in _PICTURE_FOLDERS else 3), folder

    near = {own, posixpath.dirname(own), ""}
    wanted = [folder for folder in {*folders, *above, *near} if rank(folder)[0] < 3]
    return list(dict.fromkeys([*sorted(wanted, key=rank), *sorted(near)]))


def entry_of(index: FileIndex, folders: list[str], described: Described) -> Entry[Described]:
    """The sample of a picture; `folders` are where its file is looked for, best first."""
    name, place = described.image["file_name"], described.place
    found = index.find_picture(name, folders, described.file.name) if name else []
    if isinstance(found, Found):
        return Entry(found.path, described, notes_of(found, name, place))
    why = not_found(found, f"looked in {some(folder or '.' for folder in folders)}")
    problem = f"{place}: there is no file {name!r}; {why}"
    return Entry(f"{described.file.name}/{described.image['id']}", described, problem=problem)
