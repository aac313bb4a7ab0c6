"""Which files that were found by name are other images with the same name.

A folder often has a copy of each image of another one: smaller, or with its annotations drawn on
it. So the name of a missing image may lead to a file that is not it. The other names of the same
annotation file show where its images are.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, product
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
            most = max(shared.values())
            elsewhere = [place for place in places if shared[place] < most]
            for place in {*elsewhere, *_copies(index, places)}:
                for number, path in places[place].items():
                    matches[number] = Namesake(path)
            for place in _outside(places, folders):
                for number in places[place]:
                    match = matches[number]
                    if isinstance(match, Found) and match.change is None:
                        matches[number] = match._replace(change=FOUND_OUTSIDE)
    return matches


def are_copies(own: int, others: int, shared: int) -> bool:
    """Whether a folder has copies of others: most names of the fewer images are in both."""
    return 2 * shared > min(own, others)


def _copies(index: FileIndex, places: Mapping[_Place, Mapping[int, str]]) -> list[_Place]:
    """The places in folders with copies of the images that were found in another one."""
    found: dict[tuple[bool, str], set[_Place]] = {}
    for place, paths in places.items():
        for is_renamed, path in product((False, True), paths.values()):
            found.setdefault((is_renamed, _key(path, is_renamed)), set()).add(place)
    copies = []
    for place in places:
        own = {(place.is_renamed, _key(p, place.is_renamed)) for p in index.images_in(place.folder)}
        shared = Counter(chain.from_iterable(found.get(name, ()) for name in own))
        if any(
            other.folder != place.folder and are_copies(len(own), len(places[other]), number)
            for other, number in shared.items()
        ):
            copies.append(place)
    return copies


def _key(path: str, is_renamed: bool) -> str:
    """What images with one name have in common, also with another suffix or spelling."""
    return name_key(stem_of(path)) if is_renamed else posixpath.basename(path)


def _outside(places: Iterable[_Place], folders: Collection[str]) -> list[_Place]:
    """The places outside of the likely folders, if others are in one."""
    likely = tuple(f"{place.folder}/" for place in places if place.folder in folders)
    if not likely or "/" in likely:
        return []
    return [place for place in places if not f"{place.folder}/".startswith(likely)]


def _shared_end(named: str, folder: str) -> int:
    """How many of the last parts of two folders are the same."""
    return len(common_prefix([name_key(path).split("/")[::-1] for path in (named, folder)]))
