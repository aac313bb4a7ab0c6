"""Where images and their classes are: in class folders, in their names, or without classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import option
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import is_image_word, is_mask_word
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names
from recordsmith.sources.splits import is_like_split, sort_splits
from recordsmith.words import count

_MAX_DEPTH = 8
_MAX_SKIPPED = 0.1  # a candidate that leaves out a larger share of the images is not the only one
_CLASS_IN_NAME = r"([^/\d]+?)[ ._-]?\d+\.\w+$"
_OUTER, _INNER = r"([^/]+)/", r"(?:[^/]+/)*([^/]+)/[^/]+$"
_NO_CLASSES_TEXT = (
    "dsc dscn dscf pano scan screenshot vid mvimg pxl file page item sample untitled unnamed "
    "copy camera cam left right front back top bottom before after output target mask masks "
    "label labels depth patch tile crop slide"
)
_NO_CLASSES = frozenset(_NO_CLASSES_TEXT.split())
"""Words before numbers that are not classes, in addition to those for images and splits."""


@dataclass(frozen=True)
class ClassLayout:
    """Where class folders are, relative to the root: in `base`, or in the folders of `splits`.

    `flat` has the folders of the images of splits without class folders.
    """

    base: str = ""
    splits: Mapping[str, str] = field(default_factory=dict)
    flat: Mapping[str, str] = field(default_factory=dict)


def find_class_folders(tree: FileTree, *, descend: bool = True) -> ClassLayout:
    """Find the class folders; `descend`: also in folders that contain nothing else with images."""
    base = ""
    for _ in range(_MAX_DEPTH if descend else 0):
        inner = _filled(tree, base)
        below = _join(base, *inner)
        if len(inner) != 1 or tree.direct_count(base) or tree.direct_count(below):
            break
        if not _filled(tree, below):
            break
        base = below
    filled = sort_splits(_filled(tree, base))
    if tree.direct_count(base) or not all(map(is_like_split, filled)):
        return ClassLayout(base)
    flat = {name: path for name in filled if (path := _flat_folder(tree, _join(base, name)))}
    splits = {name: _join(base, name) for name in filled if name not in flat}
    if splits and not any(map(is_split_name, splits)):
        return ClassLayout(base)  # classes of these names
    return ClassLayout(base, splits, flat)


def _flat_folder(tree: FileTree, split: str) -> str:
    """The folder of the images of a split without class folders; empty if there is none."""
    inner = _filled(tree, split)
    if tree.direct_count(split):
        return split
    return _join(split, inner[0]) if len(inner) == 1 and is_image_word(inner[0]) else ""


def _filled(tree: FileTree, folder: str) -> list[str]:
    """The folders in a folder that contain images at any depth, or files if none has a suffix."""
    if tree.image_counts[""] or not tree.is_complete:
        return tree.filled(folder)
    return [name for name in tree.inside(folder) if tree.file_counts[_join(folder, name)]]


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield how a folder can be read as images with or without classes."""
    if not tree.image_counts[""]:
        return
    images = _Images(tree)
    if images.layout.splits:
        yield from images.splits()
    elif images.layout.flat:
        yield from images.flat_splits()
    else:
        yield from images.folders()


class _Images:
    """The folders with images, and the candidates to read them."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self.layout = find_class_folders(tree)
        self._base = self.layout.base

    def splits(self) -> Iterator[LayoutCandidate]:
        """Splits, of which some or all have class folders."""
        tree, splits, flat = self._tree, self.layout.splits, self.layout.flat
        folders = [_join(path, name) for path in splits.values() for name in _filled(tree, path)]
        classes = sorted({_last(path) for path in folders if tree.direct_count(path)})
        if not classes:  # images are deeper: train/<class>/images/
            base = next(iter(splits.values())) if flat else self._base
            left_out = [*(_join(self._base, name) for name in flat), *[*splits.values()][1:]]
            head = re.escape(f"{base}/" if base else "") + ("" if flat else "[^/]+/")
            what = f"images in {_paths(splits.values())}"
            left_out = [f"{path}/" for path in left_out] if flat else []
            yield from self._by_path(folders, head, what, base, left_out)
            return
        left_out = [
            f"{_join(self._base, name)}/ ({count(tree.direct_count(path), 'image')} without class "
            "folders)"
            for name, path in flat.items()
        ]
        candidate = self._class_folders(classes, _paths(splits.values()), left_out)
        total = sum(map(self._count, splits.values()))
        yield from self._or_all(candidate, classes, total - sum(map(tree.direct_count, folders)))

    def flat_splits(self) -> Iterator[LayoutCandidate]:
        """Splits without class folders: classes from the names, or none."""
        flat = self.layout.flat
        named = {name: found for name in flat if (found := self._classes_in_names(flat[name]))}
        if len(named) not in (1, len(flat)):
            yield self._files(Confidence.STRUCTURE)
            yield self._class_folders()
            return
        classes = sorted({text for found in named.values() for text in found})
        left_out = [
            f"{path}/ ({count(self._count(path), 'image')} without a class)"
            for path in (_join(self._base, name) for name in flat if name not in named)
        ]
        where = _paths(_join(self._base, name) for name in named)
        what = f"images in {where}, {_class_count(classes, '')} from their names"
        images = _join(self._base, *named) if len(named) < len(flat) else self._base
        yield self._files(Confidence.STRUCTURE, what, images, _CLASS_IN_NAME, left_out)
        yield self._files(Confidence.POSSIBLE)

    def folders(self) -> Iterator[LayoutCandidate]:
        """Folders that are not splits: class folders, or folders around them, or of all images."""
        tree, base = self._tree, self._base
        filled = [_join(base, name) for name in _filled(tree, base)]
        direct = tree.direct_count(base)
        classes = [_last(path) for path in filled if tree.direct_count(path)]
        if not filled:
            yield from self._flat(base)
        elif len(filled) == 1 and not direct:
            yield from self._flat(filled[0])
            yield self._class_folders()
        elif len(classes) >= 2:
            skipped_count = self._count(base) - sum(map(tree.direct_count, filled))
            candidate = self._class_folders(classes, self._place)
            yield from self._or_all(candidate, classes, skipped_count)
        elif classes or direct:
            yield self._files(Confidence.STRUCTURE)
            if classes:
                yield replace(
                    self._class_folders(classes, self._place), confidence=Confidence.POSSIBLE
                )
        else:
            head = re.escape(f"{base}/") if base else ""
            yield from self._by_path(filled, head, f"images in {_paths(filled)}", base)
            yield self._files(Confidence.POSSIBLE)

    def _by_path(
        self, folders: Sequence[str], head: str, what: str, base: str, left_out: Iterable[str] = ()
    ) -> Iterator[LayoutCandidate]:
        """Images below folders, with classes of the outer or of the innermost ones."""
        inner = [_filled(self._tree, path) for path in folders]
        is_outer = all(len(names) == 1 and is_image_word(names[0]) for names in inner)
        ways = ((_OUTER, "outer"), (_INNER, "innermost"))[: 1 if is_outer else 2]
        for pattern, which in ways:
            way = f"{what}, classes from the {which} folders"
            yield self._files(Confidence.STRUCTURE, way, base, f"^{head}{pattern}", left_out)

    def _or_all(
        self, candidate: LayoutCandidate, classes: Sequence[str], skipped_count: int
    ) -> Iterator[LayoutCandidate]:
        """Class folders; and all images without classes, if these may not be class folders."""
        yield candidate
        total = self._count(self._base)
        doubtful = [name for name in classes if is_image_word(name)]
        if not doubtful and skipped_count <= _MAX_SKIPPED * total:
            yield self._files(Confidence.POSSIBLE)
        elif skipped_count:
            what = f"all {count(total, 'image')} in {self._place}, without classes"
            yield self._files(Confidence.STRUCTURE, what)
        elif (folder := _join(self._base, doubtful[0])) in self._tree.folders:
            yield self._files(Confidence.STRUCTURE, f"images in {folder}/, without classes", folder)
        else:
            yield self._files(Confidence.STRUCTURE)

    def _class_folders(
        self, classes: Sequence[str] = (), where: str = "", left_out: Iterable[str] = ()
    ) -> LayoutCandidate:
        """Class folders; without known classes only if they are asked for."""
        what = f"{_class_count(classes)} in {where}" if classes else "class folders"
        confidence = Confidence.STRUCTURE if classes else Confidence.POSSIBLE
        return LayoutCandidate("folder", what, confidence, left_out=tuple(left_out))

    def _flat(self, folder: str) -> Iterator[LayoutCandidate]:
        """Images in one folder: with classes in their names, or without."""
        where = f"{folder}/" if folder else "the folder itself"
        confidence = Confidence.STRUCTURE
        if classes := self._classes_in_names(folder):
            what = f"images in {where}, {_class_count(classes, '')} from their names"
            yield self._files(confidence, what, folder, _CLASS_IN_NAME)
            confidence = Confidence.POSSIBLE
        candidate = self._files(confidence, f"images in {where}, without classes", folder)
        if is_mask_word(_last(folder)):
            candidate = replace(
                candidate,
                problem=f"{where} has masks, as its name says, but no images",
                remedy="Pack the folder that contains the images as well, or pass "
                f"{option('format', 'files')} to pack the masks as images.",
            )
        yield candidate

    def _files(
        self,
        confidence: Confidence,
        what: str = "",
        images: str | None = None,
        pattern: str = "",
        left_out: Iterable[str] = (),
    ) -> LayoutCandidate:
        """Images in a folder, by default all of them; the pattern finds their classes."""
        images = self._base if images is None else images
        options: dict[str, Any] = {"images": images} if images else {}
        if pattern:
            options["class_pattern"] = pattern
        what = what or f"images in {self._place}, without classes"
        return LayoutCandidate("files", what, confidence, options, left_out=tuple(left_out))

    def _classes_in_names(self, folder: str) -> list[str]:
        """The classes before the numbers in the names of images; empty if they show none."""
        if self._tree.direct_count(folder) < self._count(folder):
            return []  # others are in folders in it
        matches = [re.match(_CLASS_IN_NAME, name) for name in self._tree.scan(folder).images]
        numbers = Counter(match[1] if match else "" for match in matches)
        are_shared = all(number > 1 for number in numbers.values())
        return sorted(numbers) if are_shared and _may_be_classes(numbers) else []

    @property
    def _place(self) -> str:
        return f"{self._base}/" if self._base else "the folder itself"

    def _count(self, folder: str) -> int:
        return self._tree.image_counts.get(folder, 0)


def _may_be_classes(names: Collection[str]) -> bool:
    """Whether there are several names, without a word that is known to mean something else."""
    words = {word for name in names for word in re.split(r"[_ -]", name.lower())}
    is_known = any(
        word in _NO_CLASSES or is_image_word(word) or is_split_name(word) for word in words
    )
    are_words = all(len(name) > 1 and name[0].isalpha() for name in names)
    return are_words and not is_known and len(names) > 1


def _class_count(classes: Sequence[str], noun: str = " folder") -> str:
    number = count(len(classes), f"class{noun}", f"class{noun}s" if noun else "classes")
    return f"{number} ({join_names(classes)})"


def _paths(folders: Iterable[str]) -> str:
    return join_names(f"{path}/" for path in folders)


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _join(*parts: str) -> str:
    return "/".join(filter(None, parts))
