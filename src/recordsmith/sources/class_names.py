"""Classes in the names of images: `cat` in `cat.0.jpg`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.problems import join_names
from recordsmith.stores import Location


def compile_class_pattern(pattern: str | None) -> re.Pattern[str] | None:
    """Compile the option `class_pattern`."""
    try:
        return None if pattern is None else re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"{pattern!r} is not a regular expression: {error}",
            option="class_pattern",
            value=pattern,
        ) from None


def class_in_name(pattern: re.Pattern[str], name: str) -> str:
    """The class in a name: the first group of the match, or the whole match; empty without one."""
    match = pattern.search(name)
    if match is None:
        return ""
    return (match[1] or "") if pattern.groups else match[0]


def classes_in_names(
    pattern: re.Pattern[str], names: Iterable[str], root: Location | None
) -> tuple[str, ...]:
    """The classes in the names of images, sorted; every name must have one."""
    classes = set()
    unmatched = []
    name_count = 0
    for name_count, name in enumerate(names, 1):  # noqa: B007 - used after the loop
        text = class_in_name(pattern, name)
        classes.add(text)
        if not text:
            unmatched.append(name)
    if unmatched:
        raise SourceError(
            f"{len(unmatched):,} of {name_count:,} images have no class: "
            f"{pattern.pattern!r} does not match {join_names(unmatched)}",
            unmatched,
            path=root,
        )
    check_class_names(classes)
    return tuple(sorted(classes))
