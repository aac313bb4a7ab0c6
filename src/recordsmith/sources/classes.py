"""Names of classes <-> labels, for annotations that speak of classes by name.

From a label map that the caller gives, or made from the data. Names that differ in any letter, by
case too, are classes of their own.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from recordsmith.dataset import ClassNames, class_names_of, read_label_map
from recordsmith.errors import OptionError, SourceError
from recordsmith.files import PathLike, as_path
from recordsmith.sources.wording import in_full, some


class Classes:
    """The classes of a source: which label a name has, and what to say of one that has none."""

    def __init__(self, labels: Mapping[str, int], origin: str) -> None:
        """`origin` says where the names come from: "the label map x.pbtxt"."""
        self._labels = dict(labels)
        self._origin = origin

    def label_of(self, name: str) -> int | None:
        """The label of a class; None if there is no such class."""
        return self._labels.get(name)

    def names(self) -> ClassNames:
        """Index = label.

        Raises:
            SourceError: a label is negative, or larger than can be meant.
        """
        try:
            return class_names_of({label: name for name, label in self._labels.items()})
        except OptionError as error:
            raise SourceError(str(error)) from None

    def unknown(self, name: str) -> str:
        """What is wrong with a name that is none of the classes, and which may have been meant."""
        folded = {known.casefold(): known for known in self._labels}
        close = difflib.get_close_matches(name.casefold(), folded, 1)
        meant = f"; did you mean {folded[close[0]]!r}?" if close else ""
        known = "" if close else f", which has {some(sorted(self._labels)) or 'none'}"
        return f"class {name!r} is not in {self._origin}{meant}{known}"

    def notices(self) -> list[str]:
        """A sentence on classes that differ by nothing but case, if there are some."""
        groups: dict[str, list[str]] = {}
        for name in sorted(self._labels):
            groups.setdefault(name.casefold(), []).append(name)
        alike = [some(names) for names in groups.values() if len(names) > 1]
        if not alike:
            return []
        return [f"classes that differ only by case are kept apart: {'; '.join(alike)}"]


def check_class_names(names: Iterable[str], noun: str = "class") -> None:
    """See that `labels.txt` can hold the names of classes; `noun` says what they are names of.

    Raises:
        SourceError: one has a line break.
    """
    for name in names:
        if "\n" in name or "\r" in name:
            raise SourceError(
                f"the {noun} {name!r} has a line break in its name, which labels.txt cannot hold; "
                "rename it"
            )


def classes_of(names: Iterable[str], label_map: PathLike | None) -> Classes:
    """The classes of a label map; without one those of the data, sorted as text, from 1.

    Raises:
        OptionError: the label map is none.
        FileAccessError: it cannot be read.
    """
    if label_map is not None:
        return _from_label_map(as_path(label_map))
    labels = {name: label for label, name in enumerate(sorted(set(names)), 1)}
    return Classes(labels, "the data")


def classes_by_label(names: Mapping[int, str], label_map: PathLike | None, origin: str) -> Classes:
    """The classes of a label map; without one those that the data has under numbers of its own.

    Raises:
        OptionError: the label map is none.
        FileAccessError: it cannot be read.
        SourceError: a name has two numbers; `problems` has each.
    """
    if label_map is not None:
        return _from_label_map(as_path(label_map))
    labels: dict[str, int] = {}
    problems = []
    for label, name in sorted(names.items()):
        if name in labels:
            problems.append(f"class {name!r} has the numbers {labels[name]} and {label}")
        labels.setdefault(name, label)
    if problems:
        raise SourceError(
            f"{origin}: {in_full(problems)}; give each a name of its own, or with label_map= "
            "a file in which the name has one number",
            problems,
        )
    return Classes(labels, origin)


def _from_label_map(path: Path) -> Classes:
    names = read_label_map(path)
    labels = {name: label for label, name in enumerate(names) if name is not None}
    return Classes(labels, f"the label map {path.name}")
