"""Patterns of the names of images and masks, such as `*_mask`, and of their folders: `*/masks`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from recordsmith.errors import OptionError
from recordsmith.sources.files.images import has_image_name
from recordsmith.stores import Location


@dataclass(frozen=True)
class NamePattern:
    """What the names of images or masks look like: `*` is what an image and its mask share.

    The suffix is left out, unless the pattern has one of images: `*_mask`, `mask_*`, `*.png`.
    """

    head: str
    tail: str
    has_suffix: bool = False

    def shared(self, path: str) -> str | None:
        """The part of a path that an image and its mask share; None if the name does not fit."""
        folder, slash, name = path.rpartition("/")
        if not self.has_suffix and has_image_name(name):
            name = name[: name.rindex(".")]
        if not (name.startswith(self.head) and name.endswith(self.tail)):
            return None
        core = name[len(self.head) : len(name) - len(self.tail)]
        return folder + slash + core if core else None


def parse_pattern(text: str, option: str) -> NamePattern:
    """Parse the pattern of an option.

    Raises:
        OptionError: the text does not have one `*`.
    """
    head, star, tail = text.partition("*")
    if not star or "*" in tail or "/" in text:
        raise OptionError(
            option=option, value=text, expected="a pattern of names with one *, such as *_mask"
        )
    return NamePattern(head, tail, has_image_name(text))


def expand_folders(root: Location, pattern: str) -> Iterator[tuple[tuple[str, ...], Location]]:
    """Yield the folders that a path with `*` means, and what each `*` stands for, in order.

    A `*` stands for the name of one folder or a part of it.
    """
    yield from _expand(root, tuple(part for part in pattern.split("/") if part not in ("", ".")))


def _expand(
    folder: Location, parts: tuple[str, ...], values: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Location]]:
    if not parts:
        yield values, folder
        return
    first, *rest = parts
    if "*" not in first:
        below = folder / first
        if below.is_folder() or not values:
            yield from _expand(below, tuple(rest), values)
        return
    fitting = re.compile(re.escape(first).replace(r"\*", "(.+)"), re.DOTALL)
    for entry in folder.list_entries():
        match = fitting.fullmatch(entry.name)
        if entry.kind == "folder" and match is not None and not entry.name.startswith("."):
            below = folder / entry.name
            if below.is_folder():
                yield from _expand(below, tuple(rest), (*values, *match.groups()))
