"""Find COCO's JSON files, their splits, and the folders of their images.

Layouts: `annotations/instances_train2017.json` with `train2017/`, one folder per split with
`_annotations.coco.json` in it, or one JSON file next to or above its images.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotation_files import group_by_split
from recordsmith.sources.boxes.coco_json import looks_like_coco
from recordsmith.sources.files.file_index import FileIndex, no_files
from recordsmith.sources.files.images import stem_of
from recordsmith.sources.problems import join_names

_EXPECTED = (
    "annotations/instances_<split>.json with one folder of images per split, "
    "<split>/_annotations.coco.json next to the images, or one .json file next to or above them"
)
_SPLIT_FILE = "_annotations.coco.json"
_BOXED_TASKS = ("stuff_", "person_keypoints_", "panoptic_")
_BARE_TASKS = ("captions_", "image_info_")


def other_files(index: FileIndex, used: Collection[str]) -> list[str]:
    """The JSON files next to those that are used which are of other tasks."""
    return [
        path
        for path in index.paths
        if path.lower().endswith(".json")
        and path not in used
        and is_of_other_task(path)
        and looks_like_coco(index.root / path)
    ]


def panoptic_folder(index: FileIndex, file: str) -> str:
    """The folder of the PNG files of a panoptic JSON file, which has its name.

    Raises:
        SourceError: there is none.
    """
    name = stem_of(file)
    folders = {posixpath.dirname(path) for path in index.paths if path.lower().endswith(".png")}
    found = sorted(folder for folder in folders if posixpath.basename(folder) == name)
    if not found:
        raise SourceError(
            f"no masks of {file}: the folder {name} with their PNG files is missing",
            path=index.root,
            remedy=f"Unpack {name}.zip.",
        )
    return found[0]


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
        boxed = instances or [path for path in known if not is_of_other_task(path)]
        for task in _BOXED_TASKS:
            boxed = boxed or [path for path in known if posixpath.basename(path).startswith(task)]
        if boxed:
            return group_by_split(boxed)
        if known:
            raise SourceError(
                f"no boxes to pack: found only {join_names(known)}",
                path=index.root,
                remedy="Add the file with the instances of these images.",
            )
    if not documents:
        raise no_files(index.root, _EXPECTED, index)
    head = (index.root / documents[0]).read(0, 20)
    found = f"the file starts with {head!r}" if head else "the file is empty"
    raise SourceError(
        f"not a COCO annotation file: {found}; expected an object with the lists images, "
        "annotations and categories",
        path=documents[0],
    )


def is_of_other_task(path: str) -> bool:
    """Whether a file is named like those of captions, keypoints, stuff or panoptic segmentation."""
    return posixpath.basename(path).startswith((*_BOXED_TASKS, *_BARE_TASKS))
