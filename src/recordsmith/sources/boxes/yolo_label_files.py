"""Finds YOLO's label files: in labels/ like the image in images/, next to it, or in labels/ nearby.

annotations/ may be there instead of labels/. Suffixes and folders may be in other letter case;
names also in another Unicode form or encoded as in URLs.
"""

from __future__ import annotations

import posixpath
from functools import cached_property, lru_cache

from recordsmith.sources.files.file_index import FileIndex, Found, name_key
from recordsmith.sources.files.images import IMAGE_FOLDERS, stem_of

OTHER_SPELLING = "label files were found under another spelling than their image"


class LabelFiles:
    """Finds the label files of images in a folder."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index

    def find(self, image: str) -> Found | list[str]:
        """The label file of an image; all candidates if there is not one."""
        folder, _, name = image.rpartition("/")
        name = posixpath.splitext(name)[0]
        starts = _folders_for(folder)
        for start in starts:
            if (path := f"{start}{name}.txt") in self._index:
                return Found(path)
        stems = (start + name for start in starts)
        paths = next(filter(None, (self._by_key.get(name_key(stem)) for stem in stems)), [])
        same = [path for path in paths if stem_of(path) == name]
        if len(same or paths) != 1:
            return same or paths
        return Found(same[0]) if same else Found(paths[0], OTHER_SPELLING)

    @cached_property
    def _by_key(self) -> dict[str, list[str]]:
        """The text files by the keys of their paths without suffix."""
        found: dict[str, list[str]] = {}
        for path in self._index.paths:
            if path[-4:].lower() == ".txt":
                found.setdefault(name_key(path[:-4]), []).append(path)
        return found


@lru_cache
def _folders_for(folder: str) -> list[str]:
    """Where the labels of a folder of images may be, best first, with `/` at the end."""
    parts = folder.split("/")
    likely = [
        "/".join([*parts[:place], name, *parts[place + 1 :]])
        for name in ("labels", "annotations")
        for place in range(len(parts) - 1, -1, -1)
        if parts[place].lower() in IMAGE_FOLDERS
    ]
    folders = [*likely, folder, posixpath.join(posixpath.dirname(folder), "labels")]
    return [f"{path}/" if path else "" for path in folders]
