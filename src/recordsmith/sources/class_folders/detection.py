"""Detect images in class folders, with classes in their names, or without classes."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import option
from recordsmith.sources.class_folders.class_lists import class_of, split_line
from recordsmith.sources.class_folders.image_folder import NESTED
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import is_image_word, is_mask_word, without_suffix
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names
from recordsmith.sources.splits import is_like_split, sort_splits
from recordsmith.words import count

_MOST_DESCENDED = 8
_LEFT_OUT = 0.1  # a reading that leaves out a larger share of the images is not the only one
_LISTS_READ = 20
_CLASS_IN_NAME = r"([^/\d]+?)[ ._-]?\d+\.\w+$"
_CLASS_HINTS = (r"(?:^|/)(n\d{8})_\d+\.\w+$", r"\d[ ._-]([^/\d]+)\.\w+$")
"""Classes that are named without being certain: ImageNet's numbers, and words behind a number."""
_NO_CLASSES_TEXT = (
    "dsc dscn dscf pano scan screenshot vid mvimg pxl file page item sample untitled unnamed "
    "copy camera cam left right front back top bottom before after output target mask masks "
    "label labels depth patch tile crop slide"
)
_NO_CLASSES = frozenset(_NO_CLASSES_TEXT.split())
"""Words before numbers that are not classes, in addition to those for images and splits."""


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield how a folder can be read as images with or without classes."""
    if tree.image_counts[""]:
        yield from _Images(tree).readings()


class _Images:
    """The folders with images, below the only folders around them.

    base: the folder in which images, classes or splits are; "" for the root.
    """

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._counts = tree.image_counts
        base = ""
        for _ in range(_MOST_DESCENDED):
            inner = self._filled(base)
            if tree.folders[base].image_count or len(inner) != 1 or is_like_split(inner[0]):
                break
            below = _join(base, inner[0])
            if not self._filled(below):
                break
            base = below
        self.base = base
        self._total = self._counts[base]
        self._direct = tree.folders[base].image_count

    def readings(self) -> Iterator[LayoutCandidate]:
        filled = self._filled(self.base)
        if not self._direct and filled and all(map(is_like_split, filled)):
            yield from self._of_splits(filled)
        elif not filled:
            yield from self._flat(self.base, Confidence.STRUCTURE)
        elif not self._direct and len(filled) == 1:
            yield from self._flat(_join(self.base, filled[0]), Confidence.STRUCTURE)
            yield self._class_folders(Confidence.POSSIBLE)
        else:
            yield from self._of_folders(filled)

    # -- splits ------------------------------------------------------------------------------------

    def _of_splits(self, filled: list[str]) -> Iterator[LayoutCandidate]:
        flat = {name: place for name in filled if (place := self._flat_place(name)) is not None}
        with_classes = [name for name in sort_splits(filled) if name not in flat]
        if not with_classes:
            yield from self._flat_splits(flat)
            return
        if not any(map(is_split_name, with_classes)):
            yield from self._of_folders(filled)
            return
        classes = sorted(
            {
                name
                for split in with_classes
                for name in self._filled(_join(self.base, split))
                if self._tree.folders[_join(self.base, split, name)].image_count
            }
        )
        if not classes:
            yield from self._nested_classes(with_classes, flat)
            return
        options = self._images_option()
        left_out = []
        listed = ""
        found = self._class_list(flat, classes) if flat and classes else None
        if found is not None:
            options["labels"] = found
            listed = f", classes of {join_names(f'{name}/' for name in flat)} from {found}"
        else:
            for name, place in flat.items():
                number = count(self._tree.folders[place].image_count, "image")
                left_out.append(f"{_join(self.base, name)}/ ({number} without class folders)")
        where = join_names(f"{_join(self.base, name)}/" for name in with_classes)
        what = f"{_class_count(classes)} in {where}{listed}"
        reading = LayoutCandidate(
            "folder",
            what,
            Confidence.STRUCTURE if found is None else Confidence.ANNOTATED,
            options,
            left_out=tuple(left_out),
            files=() if found is None else (found,),
        )
        read = sum(
            self._tree.folders[_join(self.base, split, name)].image_count
            for split in with_classes
            for name in classes
            if _join(self.base, split, name) in self._tree.folders
        )
        inside = sum(self._counts[_join(self.base, split)] for split in with_classes)
        yield from self._or_all(reading, classes, inside - read)

    def _nested_classes(self, splits: list[str], flat: dict[str, str]) -> Iterator[LayoutCandidate]:
        """Splits with class folders in which images are deeper: train/<class>/images/."""
        for pattern, classes in (
            (r"([^/]+)/", "classes from the outer folders"),
            (r"(?:[^/]+/)*([^/]+)/[^/]+$", "classes from the innermost folders"),
        ):
            place = _join(self.base, splits[0]) if flat else self.base
            head = re.escape(f"{place}/") if place else ""
            between = "" if flat else "[^/]+/"
            options: dict[str, Any] = {"class_pattern": f"^{head}{between}{pattern}"}
            if place:
                options["images"] = place
            where = join_names(f"{_join(self.base, name)}/" for name in splits)
            outside = [*flat, *splits[1:]] if flat else []
            left_out = tuple(f"{_join(self.base, name)}/" for name in outside)
            what = f"images in {where}, {classes}"
            yield LayoutCandidate("files", what, Confidence.STRUCTURE, options, left_out=left_out)
            inner = [
                self._filled(_join(self.base, split, name))
                for split in splits
                for name in self._filled(_join(self.base, split))
            ]
            if all(len(names) == 1 and is_image_word(names[0]) for names in inner):
                return

    def _flat_place(self, split: str) -> str | None:
        """The folder of the images of a split without class folders."""
        path = _join(self.base, split)
        if self._tree.folders[path].image_count:
            return path
        inner = self._filled(path)
        if len(inner) == 1 and is_image_word(inner[0]):
            return _join(path, inner[0])
        return None

    def _flat_splits(self, flat: dict[str, str]) -> Iterator[LayoutCandidate]:
        """Splits without class folders: classes from the names, or none."""
        named = {name: self._classes_in_names(place) for name, place in flat.items()}
        with_names = [name for name in sort_splits(flat) if named[name]]
        if with_names and (len(with_names) == len(flat) or len(with_names) == 1):
            classes = sorted({each for name in with_names for each in named[name]})
            options: dict[str, Any] = {"class_pattern": _CLASS_IN_NAME}
            left_out = []
            if len(with_names) < len(flat):
                options["images"] = _join(self.base, with_names[0])
                for name in flat:
                    if name not in with_names:
                        number = count(self._counts[_join(self.base, name)], "image")
                        left_out.append(f"{_join(self.base, name)}/ ({number} without a class)")
            elif self.base:
                options["images"] = self.base
            where = join_names(f"{_join(self.base, name)}/" for name in with_names)
            what = f"images in {where}, {_class_count(classes, '')} from their names"
            yield LayoutCandidate(
                "files", what, Confidence.STRUCTURE, options, left_out=tuple(left_out)
            )
            yield self._all_files(Confidence.POSSIBLE)
            return
        yield self._all_files(Confidence.STRUCTURE)
        yield self._class_folders(Confidence.POSSIBLE)

    def _class_list(self, flat: dict[str, str], classes: Sequence[str]) -> str | None:
        """A list with the classes of the images in the only split without class folders."""
        named = {name for name in flat if not name.lower().startswith("test")}
        if len(named) != 1:
            return None
        folder = self._tree.folders[flat[named.pop()]]
        images = {without_suffix(name) for name in folder.images}
        known = set(classes)
        candidates = [
            path
            for path in self._tree.files(".txt", ".csv", depth=3)
            if "val" in path.rpartition("/")[2].lower()
        ]
        for path in candidates[:_LISTS_READ]:
            lines = self._tree.head(path).decode("utf-8-sig", "replace").splitlines()[:-1][:50]
            fields = [split_line(line) for line in lines if line.strip()]
            if len(fields) > 1 and class_of(fields[0], classes, known) is None:
                fields = fields[1:]  # without the heading
            if not fields or any(class_of(each, classes, known) is None for each in fields):
                continue
            is_complete = len(folder.images) == folder.image_count
            names = {
                without_suffix(posixpath.basename(each[0])) for each in fields if len(each) > 1
            }
            if not names or not is_complete or not names.isdisjoint(images):
                return path
        return None

    # -- class folders -----------------------------------------------------------------------------

    def _of_folders(self, filled: list[str]) -> Iterator[LayoutCandidate]:
        classes = [
            name for name in filled if self._tree.folders[_join(self.base, name)].image_count
        ]
        deep = [name for name in filled if name not in classes]
        if len(classes) >= 2:
            read = sum(self._tree.folders[_join(self.base, name)].image_count for name in classes)
            yield from self._or_all(
                self._class_folders(Confidence.STRUCTURE, classes), classes, self._total - read
            )
        elif classes or self._direct:
            yield self._all_files(Confidence.STRUCTURE)
            if classes:
                yield self._class_folders(Confidence.POSSIBLE, classes)
        elif all(
            len(inner := self._filled(_join(self.base, name))) == 1 and is_image_word(inner[0])
            for name in deep
        ):
            yield self._by_path(r"([^/]+)/", f"{_class_count(deep)} in {self._place()}")
            yield self._all_files(Confidence.POSSIBLE)
        else:
            shown = join_names(f"{_join(self.base, name)}/" for name in deep)
            yield self._by_path(r"([^/]+)/", f"classes from the outer folders {shown}")
            yield self._by_path(r"(?:[^/]+/)*([^/]+)/[^/]+$", "classes from the innermost folders")
            yield self._all_files(Confidence.POSSIBLE)

    def _or_all(
        self, reading: LayoutCandidate, classes: Sequence[str], skipped: int
    ) -> Iterator[LayoutCandidate]:
        """Class folders; and all images without classes, if these may not be class folders."""
        doubtful = [name for name in classes if is_image_word(name)]
        is_doubtful = bool(doubtful) or skipped > _LEFT_OUT * self._total
        yield reading
        if is_doubtful and skipped:
            number = count(self._total, "image")
            yield self._all_files(
                Confidence.STRUCTURE, f"all {number} in {self._place()}, without classes"
            )
        elif is_doubtful:
            for name in doubtful[:1]:
                place = _join(self.base, name)
                if place in self._tree.folders:
                    yield LayoutCandidate(
                        "files",
                        f"images in {place}/, without classes",
                        Confidence.STRUCTURE,
                        {"images": place},
                    )
                else:
                    yield self._all_files(Confidence.STRUCTURE)
        else:
            yield self._all_files(Confidence.POSSIBLE)

    def _class_folders(self, strength: Confidence, classes: Sequence[str] = ()) -> LayoutCandidate:
        what = f"{_class_count(classes)} in {self._place()}" if classes else "class folders"
        return LayoutCandidate("folder", what, strength, self._images_option())

    def _by_path(self, pattern: str, what: str) -> LayoutCandidate:
        head = re.escape(f"{self.base}/") if self.base else ""
        options = {"class_pattern": f"^{head}{pattern}", **self._files_option()}
        return LayoutCandidate("files", what, Confidence.STRUCTURE, options)

    # -- images without class folders --------------------------------------------------------------

    def _flat(self, place: str, strength: Confidence) -> Iterator[LayoutCandidate]:
        """Images in one folder: with classes in their names, or without."""
        classes = self._classes_in_names(place)
        options = {"images": place} if place else {}
        where = f"{place}/" if place else "the folder itself"
        if classes:
            what = f"images in {where}, {_class_count(classes, '')} from their names"
            with_pattern = {**options, "class_pattern": _CLASS_IN_NAME}
            yield LayoutCandidate("files", what, strength, with_pattern)
            strength = Confidence.POSSIBLE
        problem = remedy = ""
        if is_mask_word(place.rpartition("/")[2]):
            problem = f"{where} has masks, as its name says, but no images"
            remedy = (
                "Pack the folder that contains the images as well, or pass "
                f"{option('format', 'files')} to pack the masks as images."
            )
        what = f"images in {where}, without classes"
        hint = "" if classes or problem else self._class_hint(place)
        yield LayoutCandidate(
            "files", what, strength, options, problem=problem, remedy=remedy, hint=hint
        )

    def _all_files(self, strength: Confidence, what: str = "") -> LayoutCandidate:
        what = what or f"images in {self._place()}, without classes"
        return LayoutCandidate("files", what, strength, self._files_option())

    def _classes_in_names(self, place: str) -> list[str]:
        """The classes before the numbers in the names of images; empty if they show none."""
        names = self._tree.folders[place].images
        found: Counter[str] = Counter()
        for name in names:
            match = re.match(_CLASS_IN_NAME, name)
            if match is None or len(match[1]) < 2 or not match[1][0].isalpha():
                return []
            found[match[1]] += 1
        is_common = all(number > 1 for number in found.values())
        return sorted(found) if is_common and _may_be_classes(found) else []

    def _class_hint(self, place: str) -> str:
        """How to read classes in names that are not certain to be classes."""
        names = self._tree.folders[place].images
        for pattern in _CLASS_HINTS:
            found = [match[1] for name in names if (match := re.search(pattern, name)) is not None]
            classes = sorted(set(found))
            if len(found) == len(names) and _may_be_classes(classes):
                return (
                    f"names of images may have classes ({join_names(classes)}): pass "
                    f"{option('class_pattern', pattern)}"
                )
        return ""

    # -- places ------------------------------------------------------------------------------------

    def _filled(self, folder: str) -> list[str]:
        """The names of the folders in a folder that contain images at any depth."""
        inside = self._tree.inside(folder)
        return [name for name in inside if self._counts[_join(folder, name)]]

    def _place(self) -> str:
        return f"{self.base}/" if self.base else "the folder itself"

    def _files_option(self) -> dict[str, Any]:
        return {"images": self.base} if self.base else {}

    def _images_option(self) -> dict[str, Any]:
        """The option `images` of class folders, where they are not found without it."""
        if not self.base:
            return {}
        parts = self.base.split("/")
        above = ["/".join(parts[:depth]) for depth in range(len(parts))]
        is_found = len(parts) <= NESTED and all(len(self._tree.inside(each)) == 1 for each in above)
        return {} if is_found else {"images": self.base}


def _may_be_classes(names: Collection[str]) -> bool:
    """Whether there are several names, without a word that is known to mean something else."""
    words = {word for name in names for word in re.split(r"[_ -]", name.lower())}
    return len(names) > 1 and not any(
        word in _NO_CLASSES or is_image_word(word) or is_split_name(word) for word in words
    )


def _class_count(classes: Sequence[str], noun: str = " folder") -> str:
    number = count(len(classes), f"class{noun}", f"class{noun}s" if noun else "classes")
    return f"{number} ({join_names(classes)})"


def _join(*parts: str) -> str:
    return "/".join(filter(None, parts))
