"""Which files that were found by name are other images with the same name.

A folder often has a copy of each image of another one: smaller, or with its annotations drawn on
it. So the name of a missing image may lead to a file that is not it. The other names of the same
annotation file show where its images are.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from recordsmith.sources.files.file_index import FileIndex, Match, Namesake, name_key
from recordsmith.sources.files.paths import is_absolute, with_slashes
from recordsmith.support.words import common_prefix


class _Group(NamedTuple):
    """The names in one folder that lead to files in one folder.

    is_renamed: whether these files have another suffix or spelling.
    """

    named: str
    folder: str
    is_renamed: bool


def without_namesakes(
    index: FileIndex, found: Sequence[tuple[str, Match]], folders: Collection[str]
) -> list[Match]:
    """What was found for the names of one annotation file, with a `Namesake` for each wrong file.

    Where the folders in a name lead to its file, as `a/1.jpg` does, no name that begins in the same
    way leads elsewhere: `a/2.jpg` and `b/2.jpg` are in `a/` and `b/`. Names without such folders
    lead to `folders` if one of them does, and not to copies: to a folder that has the names of
    images that were found in another one.

    Args:
        found: each name, and what `FileIndex.find_image` returned.
        folders: where it looked first.
    """
    groups: dict[_Group, dict[int, str]] = {}
    for number, (name, match) in enumerate(found):
        if not isinstance(match, list):
            last = posixpath.basename(match.path)
            named, _, file = with_slashes(name).rpartition("/")
            group = _Group(named, posixpath.dirname(match.path), last != file)
            groups.setdefault(group, {})[number] = match.path
    matches = [match for _, match in found]
    if len(groups) < 2:  # as usual
        return matches
    starts = {group: _unmatched_start(group) for group in groups}
    known = {start for group, start in starts.items() if start != _parts(group.named)}
    wrong = {
        group: False
        for group, start in starts.items()
        if any(start[:length] in known for length in range(len(start)))
    }
    loose: dict[str, list[_Group]] = {}
    for group in groups.keys() - wrong:
        if starts[group] == _parts(group.named):
            loose.setdefault(group.named, []).append(group)
    for same in loose.values():
        paths = {group: groups[group].values() for group in same}
        wrong |= dict.fromkeys(_outside(same, folders), True)
        wrong |= dict.fromkeys(_copies(index, paths), False)
    for group, is_outside in wrong.items():
        for number, path in groups[group].items():
            matches[number] = Namesake(path, is_outside)
    return matches


def _outside(groups: Sequence[_Group], folders: Collection[str]) -> list[_Group]:
    """The groups outside of the likely folders, if others are in one."""
    likely = [f"{group.folder}/" for group in groups if group.folder in folders]
    if not likely or "/" in likely:
        return []
    return [group for group in groups if not f"{group.folder}/".startswith((*likely,))]


def _copies(index: FileIndex, paths: Mapping[_Group, Iterable[str]]) -> list[_Group]:
    """The groups in folders that have the names of files in the folder of another group."""
    copied: set[tuple[str, bool]] = set()
    for group in paths if len({group.folder for group in paths}) > 1 else ():
        for path in paths[group]:
            for is_renamed in (False, True):
                folders = map(posixpath.dirname, index.namesakes(path, any_suffix=is_renamed))
                copied.update((folder, is_renamed) for folder in folders if folder != group.folder)
    return [group for group in paths if (group.folder, group.is_renamed) in copied]


def _unmatched_start(group: _Group) -> tuple[str, ...]:
    """The first parts of the folder in names: those that are not in the folder of their files."""
    named, folder = _parts(group.named), _parts(group.folder)[1:]
    return named[: len(named) - len(common_prefix([named[::-1], folder[::-1]]))]


def _parts(folder: str) -> tuple[str, ...]:
    """The parts of a path, of which the first says what the others are relative to."""
    plain = name_key(posixpath.normpath(folder) if folder else "")
    parts = tuple(plain.split("/")) if plain not in ("", ".") else ()
    return parts if is_absolute(plain) else (".", *parts)
