"""Find COCO's JSON files, their splits, and the folders of their images.

Layouts: `annotations/instances_train2017.json` with `train2017/`, one folder per split with
`_annotations.coco.json` in it, or one JSON file next to or above its images.
"""

from __future__ import annotations

import posixpath

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotation_files import group_by_split
from recordsmith.sources.boxes.coco_json import looks_like_coco
from recordsmith.sources.files.file_index import FileIndex, no_files

_EXPECTED = (
    "annotations/instances_<split>.json with one folder of images per split, "
    "<split>/_annotations.coco.json next to the images, or one .json file next to or above them"
)
_SPLIT_FILE = "_annotations.coco.json"
_OTHER_TASKS = ("captions_", "person_keypoints_", "stuff_", "panoptic_", "image_info_")
_IMAGE_FOLDERS = frozenset(("images", "image", "imgs", "img", "jpegimages", "pictures", "data"))


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
            return group_by_split(boxed)
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
