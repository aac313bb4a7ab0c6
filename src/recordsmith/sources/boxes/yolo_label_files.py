"""Finds YOLO's label files: in labels/ like the image in images/, next to it, or in labels/ nearby.

Suffixes and folders may be in other letter case; names also in another Unicode form or encoded as
in URLs.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from recordsmith.sources.files.file_index import FileIndex, Found, name_key
from recordsmith.sources.files.images import IMAGE_FOLDERS, stem_of

OTHER_SPELLING = "label files were found under another spelling than their image"


class LabelFiles:
    """Finds the label files of images in a folder."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index
        self._known: dict[str, list[str]] = {}

    def find(self, image: str) -> Found | list[str]:
        """The label file of an image; all candidates if there is not one."""
        folder, name = posixpath.split(posixpath.splitext(image)[0])
        if folder not in self._known:
            self._known[folder] = list(self._folders_for(folder))
        folders = self._known[folder]
        for labels in folders:
            if (path := f"{labels}{name}.txt") in self._index:
                return Found(path)
        key = name_key(name)
        for labels in folders:
            if paths := self._by_key.get(labels, {}).get(key):
                if len(paths) > 1:
                    return paths
                return Found(paths[0], None if stem_of(paths[0]) == name else OTHER_SPELLING)
        return []

    def _folders_for(self, folder: str) -> Iterator[str]:
        """Yield where the labels of a folder of images may be, best first, with / at the end."""
        parts = folder.split("/")
        likely = [
            "/".join([*parts[:place], "labels", *parts[place + 1 :]])
            for place in range(len(parts) - 1, -1, -1)
            if parts[place].lower() in IMAGE_FOLDERS
        ]
        for path in (*likely, folder, posixpath.join(posixpath.dirname(folder), "labels")):
            same = self._spellings.get(name_key(path), [])
            for known in sorted(same, key=lambda known: known != path):
                yield f"{known}/" if known else ""

    @cached_property
    def _spellings(self) -> dict[str, list[str]]:
        """The folders of text files by their keys."""
        folders: dict[str, list[str]] = {}
        for path in sorted({posixpath.dirname(path) for path in self._texts}):
            folders.setdefault(name_key(path), []).append(path)
        return folders

    @cached_property
    def _by_key(self) -> dict[str, dict[str, list[str]]]:
        """The text files of each folder by the keys of their names."""
        found: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
        for path in self._texts:
            folder = posixpath.dirname(path)
            of_folder = found[f"{folder}/" if folder else ""]
            of_folder.setdefault(name_key(stem_of(path)), []).append(path)
        return found

    @property
    def _texts(self) -> Iterator[str]:
        return (path for path in self._index.paths if path[-4:].lower() == ".txt")
