"""Where images and their classes are: in class folders, in their names, or without classes."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from recordsmith.dataset import is_split_name, standard_name
from recordsmith.sources.files.account import Reason, are_few
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import is_image_word, is_mask_word
from recordsmith.sources.files.paths import join_path
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names
from recordsmith.sources.splits import (
    folder_splits,
    is_like_split,
    sort_splits,
    split_classes,
)
from recordsmith.support.errors import option
from recordsmith.support.words import count

_MAX_DEPTH = 8
_VERSIONS_TEXT = (
    "hr lr hi lo high low hq lq gt input output target noisy clean hazy clear blur blurred sharp "
    "rainy raw upsampled downsampled"
)
_VERSIONS = frozenset(_VERSIONS_TEXT.split())
_ANNOTATIONS_TEXT = (
    "annotation annotations annot annots label labels mask masks gt gts groundtruth ground_truth "
    "segmentation segmentations"
)
_ANNOTATIONS = frozenset(_ANNOTATIONS_TEXT.split())
"""Folders whose images are hardly those of a class."""
_ASIDE = frozenset(("docs", "doc", "figures", "figs", "assets", "screenshots", "logo", "logos"))
"""Folders of images that document a dataset."""
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

    splits: the folder with the class folders of each split.
    flat: the folder with the images of each split without class folders.
    named: the split and the class of each folder in `base`, if their names have both.
    """

    base: str = ""
    splits: Mapping[str, str] = field(default_factory=dict)
    flat: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def find_class_folders(tree: FileTree, *, descend: bool = True) -> ClassLayout:
    """Find the class folders; `descend`: also in folders that contain nothing else with images."""
    base = _only_folder(tree) if descend else ""
    split_of = splits_of_folders(tree, base)
    if not split_of:
        filled = _filled(tree, base)
        are_classes = all(tree.direct_count(join_path(base, name)) for name in filled)
        return ClassLayout(base, named=split_classes(filled) if are_classes else {})
    splits: dict[str, str] = {}
    flat: dict[str, str] = {}
    for name in sort_splits(split_of):
        path = _inner_folder(tree, join_path(base, name))
        images = _flat_folder(tree, path)
        (flat if images else splits)[split_of[name]] = images or path
    return ClassLayout(base, splits, flat)


def splits_of_folders(tree: FileTree, base: str = "") -> dict[str, str]:
    """The folders in a folder that are splits, if what is next to them is no class.

    They contain all images but single ones; or the only class folders; or, if they are different
    splits, most images.
    """
    filled = _filled(tree, base)
    split_of = folder_splits(filled)
    folders = [join_path(base, name) for name in split_of]
    others = [join_path(base, name) for name in filled if name not in split_of]
    if not folders or (not others and not tree.direct_count(base)):
        return split_of
    if not tree.is_complete or not tree.image_counts[""]:
        return {}
    total = tree.image_counts[base]
    inside = sum(tree.image_counts[path] for path in folders)
    is_like = not any(map(is_split_name, split_of))
    are_labelled = all(_has_class_folders(tree, path) for path in folders)
    are_others_labelled = any(_has_class_folders(tree, path) for path in others)
    are_apart = are_labelled and not are_others_labelled and not tree.direct_count(base)
    are_several = len({standard_name(split) for split in split_of.values()} - {None}) > 1
    are_most = 2 * inside >= total and (is_like or are_several)
    are_most &= are_few(tree.direct_count(base), total)
    return split_of if are_few(total - inside, total) or are_apart or are_most else {}


def _has_class_folders(tree: FileTree, folder: str) -> bool:
    """Whether a folder contains several folders with images."""
    inner = _inner_folder(tree, folder)
    return sum(tree.direct_count(join_path(inner, name)) > 0 for name in _filled(tree, inner)) > 1


def _only_folder(tree: FileTree) -> str:
    """The innermost folder that contains all images but single ones next to it."""
    base = ""
    for _ in range(_MAX_DEPTH):
        inner = [name for name in _filled(tree, base) if name.lower() not in _ASIDE]
        below = join_path(base, *inner[:1])
        is_inside = len(inner) == 1 and _are_few_beside(tree, base, [below])
        if not is_inside or _are_images_of(tree, below) or not _filled(tree, below):
            break
        base = below
    return base


def _inner_folder(tree: FileTree, split: str) -> str:
    """The folder in a split that repeats its name or groups its images: seg_train/seg_train/."""
    for _ in range(_MAX_DEPTH):
        inner = _filled(tree, split)
        if len(inner) != 1 or _are_images_of(tree, split):
            break
        below = join_path(split, inner[0])
        is_same = inner[0].lower() == posixpath.basename(split).lower() or is_like_split(inner[0])
        if not is_same and (not is_image_word(inner[0]) or _are_images_of(tree, below)):
            break
        split = below
    return split


def _flat_folder(tree: FileTree, split: str) -> str:
    """The folder of the images of a split without class folders; empty if there is none."""
    inner = _filled(tree, split)
    if _are_images_of(tree, split):
        return split
    return join_path(split, inner[0]) if len(inner) == 1 and is_image_word(inner[0]) else ""


def _are_images_of(tree: FileTree, folder: str) -> bool:
    """Whether a folder has images of its own, more than some next to its folders.

    Half of all, or a tenth if it has fewer than two class folders.
    """
    direct = tree.direct_count(folder)
    filled = _filled(tree, folder)
    if not direct or not filled:
        return direct > 0
    total = tree.image_counts.get(folder, direct)
    classes = sum(tree.direct_count(join_path(folder, name)) > 0 for name in filled)
    return 2 * direct >= total if classes > 1 else not are_few(direct, total)


def _are_few_beside(tree: FileTree, base: str, folders: Iterable[str]) -> bool:
    if not tree.is_complete or not tree.image_counts[""]:
        return not tree.direct_count(base)
    total = tree.image_counts[base]
    return are_few(total - sum(tree.image_counts[path] for path in folders), total)


def _filled(tree: FileTree, folder: str) -> list[str]:
    """The folders in a folder that contain images at any depth, or files if none has a suffix."""
    if tree.image_counts[""] or not tree.is_complete:
        return tree.filled(folder)
    return [name for name in tree.inside(folder) if tree.file_counts[join_path(folder, name)]]


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
        folders = [
            join_path(path, name) for path in splits.values() for name in _filled(tree, path)
        ]
        classes = sorted({posixpath.basename(path) for path in folders if tree.direct_count(path)})
        if not classes:  # images are deeper: train/<class>/images/
            depth = {path.count("/") + 1 for path in splits.values()}
            base = next(iter(splits.values())) if flat or len(depth) > 1 else self._base
            above = 0 if base else max(depth)
            head = re.escape(f"{base}/" if base else "") + "[^/]+/" * (0 if flat else above or 1)
            yield from self._by_path(folders, head, f"images in {_paths(splits.values())}", base)
            return
        candidate = self._class_folders(classes, _paths(splits.values()))
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
        where = _paths(flat[name] for name in named)
        what = f"images in {where}, {_class_count(classes, '')} from their names"
        images = flat[next(iter(named))] if len(named) < len(flat) else self._base
        left_out = {
            f"{path}/": (Reason.UNLABELLED_SPLIT, "in a split without classes in its names")
            for name, path in flat.items()
            if name not in named
        }
        yield self._files(Confidence.STRUCTURE, what, images, _CLASS_IN_NAME, left_out)
        yield self._files(Confidence.POSSIBLE)

    def folders(self) -> Iterator[LayoutCandidate]:
        """Folders that are not splits: class folders, or folders around them, or of all images."""
        tree, base = self._tree, self._base
        filled = [join_path(base, name) for name in _filled(tree, base)]
        direct = tree.direct_count(base)
        classes = [posixpath.basename(path) for path in filled if tree.direct_count(path)]
        if not filled:
            yield from self._flat(base)
        elif len(filled) == 1 and not direct:
            yield from self._flat(filled[0])
            yield self._class_folders()
        elif named := self.layout.named:
            names = sorted({name for _, name in named.values()})
            yield self._class_folders(names, f"{self._place}, with their splits")
            if _are_named_as_versions(names):
                yield self._files(Confidence.STRUCTURE)
        elif len(classes) >= 2:
            skipped_count = self._count(base) - sum(map(tree.direct_count, filled))
            candidate = self._class_folders(classes, self._place)
            yield from self._or_all(candidate, classes, skipped_count)
            others = [path for path in filled if not _has_annotations(path)]
            if 0 < len(others) < len(filled):
                images = others[0] if len(others) == 1 else None
                what = f"images in {_paths(others)}" if images else ""
                yield self._files(Confidence.STRUCTURE, what, images)
            elif _are_samples(tree, filled) or _are_named_as_versions(classes):
                yield self._files(Confidence.STRUCTURE)
        elif (classes or direct) and (inner := self._labelled(filled)):
            for path in inner:
                names = _filled(tree, path)
                candidate = self._class_folders(names, f"{path}/")
                yield replace(candidate, options={"images": path})
            what = f"all {count(self._count(base), 'image')} in {self._place}"
            yield self._files(Confidence.STRUCTURE, what)
        elif classes or not are_few(direct, self._count(base)):
            yield self._files(Confidence.STRUCTURE)
            if classes:
                yield replace(
                    self._class_folders(classes, self._place), confidence=Confidence.POSSIBLE
                )
        else:
            head = re.escape(f"{base}/") if base else ""
            yield from self._by_path(filled, head, f"images in {_paths(filled)}", base)
            yield self._files(Confidence.POSSIBLE)

    def _labelled(self, folders: Iterable[str]) -> list[str]:
        tree = self._tree
        labelled = filter(partial(_has_class_folders, tree), folders)
        return [_inner_folder(tree, path) for path in labelled]

    def _by_path(
        self, folders: Sequence[str], head: str, what: str, base: str
    ) -> Iterator[LayoutCandidate]:
        """Images below folders, with classes of the outer or of the innermost ones."""
        inner = [_filled(self._tree, path) for path in folders]
        is_outer = all(len(names) == 1 and is_image_word(names[0]) for names in inner)
        ways = ((_OUTER, "outer"), (_INNER, "innermost"))[: 1 if is_outer else 2]
        for pattern, which in ways:
            way = f"{what}, classes from the {which} folders"
            yield self._files(Confidence.STRUCTURE, way, base, f"^{head}{pattern}")

    def _or_all(
        self, candidate: LayoutCandidate, classes: Sequence[str], skipped_count: int
    ) -> Iterator[LayoutCandidate]:
        """Class folders; and all images without classes, if these may not be class folders."""
        yield candidate
        total = self._count(self._base)
        doubtful = [name for name in classes if is_image_word(name)]
        if not doubtful and are_few(skipped_count, total):
            yield self._files(Confidence.POSSIBLE)
        elif skipped_count:
            what = f"all {count(total, 'image')} in {self._place}"
            yield self._files(Confidence.STRUCTURE, what)
        elif (folder := join_path(self._base, doubtful[0])) in self._tree.folders:
            yield self._files(Confidence.STRUCTURE, f"images in {folder}/", folder)
        else:
            yield self._files(Confidence.STRUCTURE)

    def _class_folders(self, classes: Sequence[str] = (), where: str = "") -> LayoutCandidate:
        """Class folders; without known classes only if they are asked for."""
        what = f"{_class_count(classes)} in {where}" if classes else "class folders"
        confidence = Confidence.STRUCTURE if classes else Confidence.POSSIBLE
        return LayoutCandidate("folder", what, confidence, classes=tuple(classes))

    def _flat(self, folder: str) -> Iterator[LayoutCandidate]:
        """Images in one folder: with classes in their names, or without."""
        where = f"{folder}/" if folder else "the folder itself"
        confidence = Confidence.STRUCTURE
        if classes := self._classes_in_names(folder):
            what = f"images in {where}, {_class_count(classes, '')} from their names"
            yield self._files(confidence, what, folder, _CLASS_IN_NAME)
            confidence = Confidence.POSSIBLE
        candidate = self._files(confidence, f"images in {where}", folder)
        if is_mask_word(posixpath.basename(folder)):
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
        left_out: Mapping[str, tuple[Reason, str]] = MappingProxyType({}),
    ) -> LayoutCandidate:
        """Images in a folder, by default all of them; the pattern finds their classes."""
        images = self._base if images is None else images
        options: dict[str, Any] = {"images": images} if images else {}
        if pattern:
            options["class_pattern"] = pattern
        clauses = {} if pattern else {"class_pattern": "without classes"}
        what = what or f"images in {self._place}"
        return LayoutCandidate(
            "files", what, confidence, options, clauses=clauses, left_out=left_out
        )

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


def _are_named_as_versions(classes: Collection[str]) -> bool:
    """Whether folders are named like versions of the same images: HR and LR, hazy and clear."""
    words = [{*re.split(r"[_ -]", name.lower())} for name in classes]
    return len(words) > 1 and not any(map(_VERSIONS.isdisjoint, words))


def _has_annotations(folder: str) -> bool:
    """Whether a folder is named like one of masks or other annotations."""
    return posixpath.basename(folder).lower() in _ANNOTATIONS


def _are_samples(tree: FileTree, folders: Sequence[str]) -> bool:
    """Whether each folder is one sample, whose files have its name and the same endings."""
    endings = set()
    for folder in folders:
        names = tree.scan(folder).images
        head = posixpath.basename(folder)
        if len(names) < 2 or not all(name.startswith(head) for name in names):
            return False
        rests = [name.removeprefix(head).rpartition(".")[0] for name in names]
        if all(rest.strip("0123456789 _-().") == "" for rest in rests):
            return False  # numbered files of a class
        endings.add(tuple(rests))
    return len(endings) == 1


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
