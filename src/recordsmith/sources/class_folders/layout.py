"""Where images and their classes are: in class folders, in their names, or without classes."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError, option
from recordsmith.sources.class_folders.class_lists import parse_class_list
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import is_image_word, is_mask_word, without_suffix
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names
from recordsmith.sources.splits import is_like_split, sort_splits
from recordsmith.words import count

_MAX_DEPTH = 8
_MAX_SKIPPED = 0.1  # a candidate that leaves out a larger share of the images is not the only one
_MAX_LISTS = 20
_CLASS_IN_NAME = r"([^/\d]+?)[ ._-]?\d+\.\w+$"
_CLASS_HINTS = (r"(?:^|/)(n\d{8})_\d+\.\w+$", r"\d[ ._-]([^/\d]+)\.\w+$")
"""Classes that are named without being certain: ImageNet's numbers, and words behind a number."""
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
    """Where class folders are. All paths are relative to the root.

    base: the folder that contains the class folders or the splits.
    splits: the splits that contain class folders, with their folders.
    flat: the splits without class folders, with the folders of their images.
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
        self._place = f"{self._base}/" if self._base else "the folder itself"
        self._files_option = {"images": self._base} if self._base else {}

    def splits(self) -> Iterator[LayoutCandidate]:
        """Splits, of which some or all have class folders."""
        splits, flat = self.layout.splits, self.layout.flat
        folders = [(path, name) for path in splits.values() for name in _filled(self._tree, path)]
        classes = sorted({name for path, name in folders if self._direct_count(path, name)})
        if not classes:
            yield from self._nested_classes()
            return
        file = self._class_list(classes)
        listed, left_out = "", tuple(map(self._without_classes, flat.items()))
        if file is not None:
            listed, left_out = f", classes of {_paths(flat.values())} from {file}", ()
        what = f"{_class_count(classes)} in {_paths(splits.values())}{listed}"
        candidate = LayoutCandidate(
            "folder",
            what,
            Confidence.STRUCTURE if file is None else Confidence.ANNOTATED,
            {} if file is None else {"labels": file},
            left_out=left_out,
            files=() if file is None else (file,),
        )
        skipped_count = sum(map(self._count, splits.values())) - sum(
            self._direct_count(path, name) for path, name in folders
        )
        yield from self._or_all(candidate, classes, skipped_count)

    def _without_classes(self, split: tuple[str, str]) -> str:
        number = count(self._direct_count(split[1]), "image")
        return f"{_join(self._base, split[0])}/ ({number} without class folders)"

    def _nested_classes(self) -> Iterator[LayoutCandidate]:
        """Splits with class folders in which images are deeper: train/<class>/images/."""
        splits, flat = [*self.layout.splits.values()], self.layout.flat
        folder = splits[0] if flat else self._base  # without the splits that have no classes
        left_out = [_join(self._base, name) for name in flat] + splits[1:] if flat else []
        inner = [
            _filled(self._tree, _join(split, name))
            for split in splits
            for name in _filled(self._tree, split)
        ]
        is_outer = all(len(names) == 1 and is_image_word(names[0]) for names in inner)
        head = (re.escape(f"{folder}/") if folder else "") + ("" if flat else "[^/]+/")
        for pattern, which in ((_OUTER, "outer"), (_INNER, "innermost"))[: 1 if is_outer else 2]:
            yield LayoutCandidate(
                "files",
                f"images in {_paths(splits)}, classes from the {which} folders",
                Confidence.STRUCTURE,
                {"class_pattern": f"^{head}{pattern}", **({"images": folder} if folder else {})},
                left_out=tuple(f"{path}/" for path in left_out),
            )

    def flat_splits(self) -> Iterator[LayoutCandidate]:
        """Splits without class folders: classes from the names, or none."""
        flat = self.layout.flat
        named = {name: found for name in flat if (found := self._classes_in_names(flat[name]))}
        if len(named) not in (1, len(flat)):
            yield self._all_files(Confidence.STRUCTURE)
            yield self._class_folders(Confidence.POSSIBLE)
            return
        classes = sorted({text for found in named.values() for text in found})
        options = {"class_pattern": _CLASS_IN_NAME, **self._files_option}
        if len(named) < len(flat):
            options["images"] = _join(self._base, *named)
        left_out = [
            f"{path}/ ({count(self._count(path), 'image')} without a class)"
            for path in (_join(self._base, name) for name in flat if name not in named)
        ]
        where = _paths(_join(self._base, name) for name in named)
        what = f"images in {where}, {_class_count(classes, '')} from their names"
        yield LayoutCandidate(
            "files", what, Confidence.STRUCTURE, options, left_out=tuple(left_out)
        )
        yield self._all_files(Confidence.POSSIBLE)

    def _class_list(self, classes: Sequence[str]) -> str | None:
        """A list with the classes of the images in the only split without class folders."""
        flat = [
            path for name, path in self.layout.flat.items() if not name.lower().startswith("test")
        ]
        if len(flat) != 1:
            return None
        folder = self._tree.scan(flat[0])
        images = {without_suffix(name) for name in folder.images}
        is_complete = len(images) == folder.image_count
        files = self._tree.files(".txt", ".csv", depth=3)
        named = (path for path in files if "val" in path.rpartition("/")[2].lower())
        for path in itertools.islice(named, _MAX_LISTS):
            text = self._tree.head(path).decode("utf-8-sig", "replace")
            lines = [(number, line) for number, line in enumerate(text.splitlines()[:-1][:50], 1)]
            lines = [(number, line.strip()) for number, line in lines if line.strip()]
            try:
                listed = parse_class_list(lines, classes, self._tree.root / path)
            except SourceError:
                continue
            is_named = not isinstance(listed, Mapping) or not images.isdisjoint(listed)
            if listed and (is_named or not is_complete):
                return path
        return None

    # -- class folders -----------------------------------------------------------------------------

    def folders(self) -> Iterator[LayoutCandidate]:
        """Folders that are not splits: class folders, or folders around them, or of all images."""
        tree, base = self._tree, self._base
        filled = _filled(tree, base)
        direct = self._direct_count(base)
        classes = [name for name in filled if self._direct_count(base, name)]
        if not filled:
            yield from self._flat(base)
        elif len(filled) == 1 and not direct:
            yield from self._flat(_join(base, filled[0]))
            yield self._class_folders(Confidence.POSSIBLE)
        elif len(classes) >= 2:
            read_count = sum(self._direct_count(base, name) for name in classes)
            candidate = self._class_folders(Confidence.STRUCTURE, classes)
            yield from self._or_all(candidate, classes, self._count(base) - read_count)
        elif classes or direct:
            yield self._all_files(Confidence.STRUCTURE)
            if classes:
                yield self._class_folders(Confidence.POSSIBLE, classes)
        else:
            inner = [_filled(tree, _join(base, name)) for name in filled]
            if all(len(names) == 1 and is_image_word(names[0]) for names in inner):
                yield self._by_path(_OUTER, f"{_class_count(filled)} in {self._place}")
            else:
                outer = _paths(_join(base, name) for name in filled)
                yield self._by_path(_OUTER, f"classes from the outer folders {outer}")
                yield self._by_path(_INNER, "classes from the innermost folders")
            yield self._all_files(Confidence.POSSIBLE)

    def _or_all(
        self, candidate: LayoutCandidate, classes: Sequence[str], skipped_count: int
    ) -> Iterator[LayoutCandidate]:
        """Class folders; and all images without classes, if these may not be class folders."""
        yield candidate
        total = self._count(self._base)
        doubtful = [name for name in classes if is_image_word(name)]
        if not doubtful and skipped_count <= _MAX_SKIPPED * total:
            yield self._all_files(Confidence.POSSIBLE)
        elif skipped_count:
            number = count(total, "image")
            what = f"all {number} in {self._place}, without classes"
            yield self._all_files(Confidence.STRUCTURE, what)
        elif (folder := _join(self._base, doubtful[0])) in self._tree.folders:
            what = f"images in {folder}/, without classes"
            yield LayoutCandidate("files", what, Confidence.STRUCTURE, {"images": folder})
        else:
            yield self._all_files(Confidence.STRUCTURE)

    def _class_folders(
        self, confidence: Confidence, classes: Sequence[str] = ()
    ) -> LayoutCandidate:
        what = f"{_class_count(classes)} in {self._place}" if classes else "class folders"
        return LayoutCandidate("folder", what, confidence)

    def _by_path(self, pattern: str, what: str) -> LayoutCandidate:
        head = re.escape(f"{self._base}/") if self._base else ""
        options = {"class_pattern": f"^{head}{pattern}", **self._files_option}
        return LayoutCandidate("files", what, Confidence.STRUCTURE, options)

    # -- images without class folders --------------------------------------------------------------

    def _flat(self, folder: str) -> Iterator[LayoutCandidate]:
        """Images in one folder: with classes in their names, or without."""
        classes = self._classes_in_names(folder)
        options: dict[str, Any] = {"images": folder} if folder else {}
        where = f"{folder}/" if folder else "the folder itself"
        confidence = Confidence.STRUCTURE
        if classes:
            what = f"images in {where}, {_class_count(classes, '')} from their names"
            with_pattern = {**options, "class_pattern": _CLASS_IN_NAME}
            yield LayoutCandidate("files", what, confidence, with_pattern)
            confidence = Confidence.POSSIBLE
        problem = remedy = ""
        if is_mask_word(folder.rpartition("/")[2]):
            problem = f"{where} has masks, as its name says, but no images"
            remedy = (
                "Pack the folder that contains the images as well, or pass "
                f"{option('format', 'files')} to pack the masks as images."
            )
        what = f"images in {where}, without classes"
        hint = "" if classes or problem else self._class_hint(folder)
        yield LayoutCandidate(
            "files", what, confidence, options, problem=problem, remedy=remedy, hint=hint
        )

    def _all_files(self, confidence: Confidence, what: str = "") -> LayoutCandidate:
        what = what or f"images in {self._place}, without classes"
        return LayoutCandidate("files", what, confidence, self._files_option)

    def _classes_in_names(self, folder: str) -> list[str]:
        """The classes before the numbers in the names of images; empty if they show none."""
        numbers: Counter[str] = Counter()
        if self._direct_count(folder) < self._count(folder):
            return []  # others are in folders in it
        for name in self._tree.scan(folder).images:
            match = re.match(_CLASS_IN_NAME, name)
            if match is None or len(match[1]) < 2 or not match[1][0].isalpha():
                return []
            numbers[match[1]] += 1
        is_common = all(number > 1 for number in numbers.values())
        return sorted(numbers) if is_common and _may_be_classes(numbers) else []

    def _class_hint(self, folder: str) -> str:
        """How to read classes in names that are not certain to be classes."""
        names = self._tree.scan(folder).images
        for pattern in _CLASS_HINTS:
            found = [match[1] for name in names if (match := re.search(pattern, name)) is not None]
            classes = sorted(set(found))
            if len(found) == len(names) and _may_be_classes(classes):
                return (
                    f"names of images may have classes ({join_names(classes)}): pass "
                    f"{option('class_pattern', pattern)}"
                )
        return ""

    def _count(self, folder: str) -> int:
        return self._tree.image_counts.get(folder, 0)

    def _direct_count(self, *path: str) -> int:
        return self._tree.direct_count(_join(*path))


def _may_be_classes(names: Collection[str]) -> bool:
    """Whether there are several names, without a word that is known to mean something else."""
    words = {word for name in names for word in re.split(r"[_ -]", name.lower())}
    return len(names) > 1 and not any(
        word in _NO_CLASSES or is_image_word(word) or is_split_name(word) for word in words
    )


def _class_count(classes: Sequence[str], noun: str = " folder") -> str:
    number = count(len(classes), f"class{noun}", f"class{noun}s" if noun else "classes")
    return f"{number} ({join_names(classes)})"


def _paths(folders: Collection[str] | Iterator[str]) -> str:
    return join_names(f"{path}/" for path in folders)


def _join(*parts: str) -> str:
    return "/".join(filter(None, parts))
