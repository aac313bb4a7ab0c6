"""Map class names to labels, from a label map or from the data; classes in the names of images.

Names are case-sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import ClassNames, class_names_of, read_label_map
from recordsmith.sources.problems import join_names, join_problems
from recordsmith.stores import Location, PlaceLike, as_location
from recordsmith.support.errors import OptionError, SourceError, option


class Classes:
    """The classes of a source: labels by name, and messages about unknown names."""

    def __init__(self, labels: Mapping[str, int], origin: str) -> None:
        """`origin`: where the names come from, such as "the label map x.pbtxt"."""
        self._labels = dict(labels)
        self.origin = origin

    def label_of(self, name: str) -> int | None:
        """The label of a class; None for an unknown class."""
        return self._labels.get(name)

    def labels(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._labels.items())

    def names(self) -> ClassNames:
        """Index = label."""
        try:
            return class_names_of({label: name for name, label in self._labels.items()})
        except OptionError as error:
            raise SourceError(str(error)) from None

    def unknown(self, name: str) -> str:
        return f"class {name!r:.200} is not in {self.origin}; known classes: {self._known}"

    @cached_property
    def _known(self) -> str:
        return join_names(sorted(self._labels)) or "none"


def check_class_names(names: Iterable[str], noun: str = "class") -> None:
    """Check that `labels.txt` can store the class names; `noun` is what they name."""
    for name in names:
        found = "a line break" if "\n" in name or "\r" in name else ""
        try:
            name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            found = "surrogates"
        if found:
            raise SourceError(
                f"the name of {noun} {name!r} contains {found}, which labels.txt cannot store",
                remedy=f"Rename the {noun}.",
            )


def sort_classes(names: Iterable[str]) -> list[str]:
    """Class names in order: as text, or as numbers if all are whole numbers."""
    listed = list(names)
    if all(name.isascii() and name.isdecimal() for name in listed):
        return sorted(listed, key=lambda name: (len(name.lstrip("0")), name.lstrip("0"), name))
    return sorted(listed)


def numbered_classes_notice(names: Sequence[str | None] | None) -> list[str]:
    named = [(label, name) for label, name in enumerate(names or ()) if name is not None]
    if not all(name.isascii() and name.isdecimal() for _, name in named):
        return []
    other = [
        f"{name} has label {label}"
        for label, name in named
        if (name.lstrip("0") or "0") != str(label)
    ]
    if not other:
        return []
    return [f"classes are named by other numbers than their labels: {join_names(other)}"]


def class_folder_classes(names: Iterable[str], label_map: Location | None) -> Classes:
    """The classes of folders, from 0 in order of their names, or as in a label map."""
    if label_map is None:
        return Classes({name: label for label, name in enumerate(sort_classes(names))}, "the data")
    classes = _from_label_map(label_map)
    unknown = [name for name in sort_classes(names) if classes.label_of(name) is None]
    if unknown:
        raise SourceError(
            f"the label map {label_map.name} lacks the class folders {join_names(unknown)}",
            [classes.unknown(name) for name in unknown],
            remedy="Add them to the label map, or rename the folders.",
        )
    return classes


def make_classes(names: Iterable[str], label_map: PlaceLike | None) -> Classes:
    """The classes of a label map; without one, those of the data, sorted by name, from 1."""
    if label_map is not None:
        return _from_label_map(as_location(label_map))
    labels = {name: label for label, name in enumerate(sorted(set(names)), 1)}
    return Classes(labels, "the data")


def classes_by_label(names: Mapping[int, str], label_map: PlaceLike | None, origin: str) -> Classes:
    """The classes of a label map; without one, those of the data with its own numbers."""
    if label_map is not None:
        return _from_label_map(as_location(label_map))
    labels: dict[str, int] = {}
    problems = []
    for label, name in sorted(names.items()):
        if name in labels:
            problems.append(f"class {name!r} has the numbers {labels[name]} and {label}")
        labels.setdefault(name, label)
    if problems:
        raise SourceError(
            f"{origin}: {join_problems(problems)}",
            problems,
            remedy="Rename one of them, or pass a label map with "
            f"{option('label_map')} in which the name has one number.",
        )
    return Classes(labels, origin)


def _from_label_map(file: Location) -> Classes:
    names = read_label_map(file)
    if not names:
        raise OptionError(f"the label map {file} is empty", option="label_map", value=str(file))
    labels = {name: label for label, name in enumerate(names) if name is not None}
    return Classes(labels, f"the label map {file.name}")


def compile_pattern(pattern: str | None, argument: str) -> re.Pattern[str] | None:
    """Compile the regular expression of an option."""
    try:
        return None if pattern is None else re.compile(pattern)
    except (re.error, TypeError) as error:
        raise OptionError(
            f"{pattern!r} is not a regular expression: {error}", option=argument, value=pattern
        ) from None


def match_names(
    pattern: re.Pattern[str], names: Sequence[str], root: Location | None, noun: str
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """What a pattern finds in the names, and which of that in each; every name must have one.

    That is the group `group` of the match, its first group, or the whole match. `noun`: what it is.
    """
    numbers: dict[str, int] = {}
    which = pattern.groupindex.get("group", min(1, pattern.groups))

    def number(name: str) -> int:
        match = pattern.search(name)
        return numbers.setdefault((match[which] or "") if match else "", len(numbers))

    found = np.fromiter(map(number, names), np.int32)
    if "" in numbers:
        places = np.flatnonzero(found == numbers[""]).tolist()
        unmatched = [names[place] for place in places]
        raise SourceError(
            f"{len(unmatched):,} of {len(names):,} images have no {noun}: "
            f"{pattern.pattern!r} does not match {join_names(unmatched)}",
            unmatched,
            path=root,
            remedy=f"Change the pattern, or leave them out with {option('leave_out')}.",
        )
    return [*numbers], found


def classes_in_names(
    pattern: re.Pattern[str], names: Sequence[str], root: Location | None
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """The label of each name, and the classes, sorted; every name must have one."""
    found, numbers = match_names(pattern, names, root, "class")
    check_class_names(found)
    classes = tuple(sort_classes(found))
    sorted_labels = {name: label for label, name in enumerate(classes)}
    return np.array([sorted_labels[name] for name in found], np.int32)[numbers], classes
