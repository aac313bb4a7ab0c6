"""Which files that were found by name are other images with the same name.

A folder often has a copy of each image of another one: smaller, or with its annotations drawn on
it. So the name of a missing image may lead to a file that is not it. The other names of the same
annotation file show where its images are.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from recordsmith.sources.files.file_index import (
    FOUND_OUTSIDE,
    FileIndex,
    Found,
    Match,
    Namesake,
    name_key,
)
from recordsmith.sources.files.images import stem_of
from recordsmith.sources.files.paths import with_slashes
from recordsmith.support.words import common_prefix


class _Place(NamedTuple):
    """A folder with files that were found.

    is_renamed: whether they have another suffix or spelling than in their annotation.
    """

    folder: str
    is_renamed: bool


def without_namesakes(
    index: FileIndex, found: Sequence[tuple[str, Match]], folders: Collection[str]
) -> list[Match]:
    """What was found for the names of one annotation file, with a `Namesake` for each wrong file.

    Names with one folder lead to the folders that have most of its parts: `a/1.jpg` is in `a/`, so
    `a/2.jpg` is not `b/2.jpg`. And they do not lead to copies: to a folder that has the names of
    images that were found in another one. A note says which other files are outside of `folders`
    if some are in them.

    Args:
        found: each name, and what `FileIndex.find_image` returned.
        folders: where it looked first.
    """
    groups: dict[str, dict[_Place, dict[int, str]]] = {}
    for number, (name, match) in enumerate(found):
        if not isinstance(match, list):
            named, _, last = with_slashes(name).rpartition("/")
            folder, _, file = match.path.rpartition("/")
            places = groups.setdefault(named, {})
            places.setdefault(_Place(folder, last != file), {})[number] = match.path
    matches = [match for _, match in found]
    for named, places in groups.items():
        if len(places) > 1:
            shared = {place: _shared_end(named, place.folder) for place in places}
            for place, paths in places.items():
                if shared[place] < max(shared.values()) or _are_copies(index, place, places):
                    for number, path in paths.items():
                        matches[number] = Namesake(path)
            for place in _outside(places, folders):
                for number in places[place]:
                    match = matches[number]
                    if isinstance(match, Found) and match.change is None:
                        matches[number] = match._replace(change=FOUND_OUTSIDE)
    return matches


def are_copies(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether the images of a folder are copies of others: most names of the fewer are in both."""
    own, known = set(names), set(others)
    return min(len(own), len(known)) < 2 * len(own & known)


def _are_copies(
    index: FileIndex, place: _Place, places: Mapping[_Place, Mapping[int, str]]
) -> bool:
    """Whether a folder has copies of the images that were found in one of the others."""
    key = _stem_key if place.is_renamed else posixpath.basename
    own = {key(path) for path in index.images_in(place.folder)}
    return any(
        are_copies(own, map(key, paths.values()))
        for other, paths in places.items()
        if other.folder != place.folder
    )


def _stem_key(path: str) -> str:
    return name_key(stem_of(path))


def _outside(places: Iterable[_Place], folders: Collection[str]) -> list[_Place]:
    """The places outside of the likely folders, if others are in one."""
    likely = tuple(f"{place.folder}/" for place in places if place.folder in folders)
    if not likely or "/" in likely:
        return []
    return [place for place in places if not f"{place.folder}/".startswith(likely)]


def _shared_end(named: str, folder: str) -> int:
    """How many of the last parts of two folders are the same."""
    return len(common_prefix([name_key(path).split("/")[::-1] for path in (named, folder)]))
