"""Group the members of tar archives into samples, in arrays for millions of members.

The path up to the first dot of its last part is the key of the sample, the rest is the extension.
Members of a sample need not be adjacent.
"""

from __future__ import annotations

import bisect
import json
import re
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.documents import json_fault
from recordsmith.errors import SourceError
from recordsmith.example import Kind
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.sources.archives.tar import TarFile
from recordsmith.sources.files.paths import with_slashes
from recordsmith.sources.numbered import LazySequence
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.tables.json_values import KindSurvey, restore_base64
from recordsmith.words import count

EMPTY_KINDS = "recordsmith/empty"
"""A key in exported JSON with the kinds of empty lists of numbers, which do not show it."""

_MAX_EXTENSIONS = 10_000
_EMPTY_VALUES: dict[Kind, Any] = {"int64": 0, "float": 0.0}


class TarSamples(LazySequence[Mapping[str, Any]]):
    """References to the members of all samples, in arrays: 18 bytes per member and 8 per sample.

    extensions: and their codes.
    archives: by name.
    """

    def __init__(self) -> None:
        self.extensions: dict[str, int] = {}
        self.archives: dict[str, TarFile] = {}
        self._extension_names: list[str] = []  # by code
        self._archive_names: list[str] = []
        self._archive_ends = array("q")  # number of samples up to the end of each archive
        self._ends = array("q", [0])  # number of members up to the end of each sample
        self._codes = array("H")
        self._offsets = array("q")
        self._sizes = array("q")
        self._keys = bytearray()  # of samples, as stored in the archive, for messages
        self._key_ends = array("q", [0])
        self._skipped: list[str] = []
        self._replaced_count = 0

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, archive: TarFile, name: str, survey: KindSurvey) -> Iterator[str]:
        """Add the samples of one archive and yield a safe name for each."""
        samples: dict[str, dict[str, tuple[int, int]]] = {}  # key -> extension -> offset, size
        for member in archive.members():
            folder, _, last = member.name.rpartition("/")
            base, _, extension = last.partition(".")
            if not base or not extension:
                self._skipped.append(f"{archive.path}: {member.name}")
                continue
            parts = samples.setdefault(f"{folder}/{base}" if folder else base, {})
            self._replaced_count += extension.lower() in parts
            parts[extension.lower()] = (member.offset, member.size)
        self._skipped += [f"{archive.path}: {name}" for name in archive.skipped]
        self.archives[name] = archive
        self._archive_names.append(name)
        names = _SafeNames()
        for key, parts in samples.items():
            if "json" in parts:
                _survey_json(archive.read(*parts["json"]), survey, len(self))
            for extension, (offset, size) in parts.items():
                self._codes.append(self._code(extension))
                self._offsets.append(offset)
                self._sizes.append(size)
            self._ends.append(len(self._codes))
            self._keys += key.encode("utf-8", "surrogateescape")
            self._key_ends.append(len(self._keys))
            yield names.take(key)
        self._archive_ends.append(len(self))

    def _item(self, number: int) -> Mapping[str, Any]:
        members = range(self._ends[number], self._ends[number + 1])
        return {
            "file": self._archive_name(number),
            "key": self._key(number),
            "members": [
                [self._extension_names[self._codes[at]], self._offsets[at], self._sizes[at]]
                for at in members
            ],
        }

    def place(self, number: int, extension: str) -> str:
        """Archive and member name, for messages."""
        archive = self.archives[self._archive_name(number)]
        return f"{archive.path}: {self._key(number)}.{extension}"

    def sample_sizes(self) -> npt.NDArray[np.int64]:
        """int64, (samples,): the total size of each sample's members in bytes."""
        totals = np.concatenate([[0], np.cumsum(np.array(self._sizes, np.int64))])
        return np.diff(totals[np.array(self._ends, np.int64)])

    def notices(self) -> list[str]:
        """Notices on skipped and repeated members, and on extensions that some samples lack."""
        notices = count_notice(self._skipped, "member", "outside samples skipped")
        if self._replaced_count:
            notices.append(
                f"{count(self._replaced_count, 'repeated member')} replaced by the last of the name"
            )
        counts = np.bincount(np.array(self._codes, np.int64), minlength=len(self.extensions))
        lacking = [
            f"{len(self) - found:,} without .{extension}"
            for extension, found in zip(self.extensions, counts.tolist(), strict=True)
            if found < len(self)
        ]
        if lacking:
            notices.append(f"{count(len(self), 'sample')}, {join_names(lacking)}")
        return notices

    def check_folders(self) -> None:
        """Check that archives are not class folders, which no member of a sample names."""
        if not all(f".{each}" in IMAGE_SUFFIXES for each in self.extensions):
            return
        folders = {self._key(number).rpartition("/")[0] for number in range(len(self))}
        if len(folders) > 1:
            raise SourceError(
                f"the archives contain images in folders ({join_names(sorted(folders))}), not "
                "samples of the WebDataset format, so their classes would be lost",
                path=next(iter(self.archives.values())).path,
                remedy="Unpack them and pack the folder.",
            )

    def found(self) -> str:
        """What was found instead of samples, for a message."""
        return (
            f"found {summarize_paths(self._skipped)}" if self._skipped else "the archives are empty"
        )

    def _archive_name(self, number: int) -> str:
        return self._archive_names[bisect.bisect_right(self._archive_ends, number)]

    def _key(self, number: int) -> str:
        key = bytes(self._keys[self._key_ends[number] : self._key_ends[number + 1]])
        return key.decode("utf-8", "surrogateescape")

    def _code(self, extension: str) -> int:
        code = self.extensions.setdefault(extension, len(self.extensions))
        if code >= _MAX_EXTENSIONS:
            raise SourceError(
                f"more than {_MAX_EXTENSIONS:,} extensions, such as {extension!r}; expected "
                "member names of the form <key of the sample>.<extension>",
                path=self.archives[self._archive_names[-1]].path,
            )
        if code == len(self._extension_names):
            self._extension_names.append(extension)
        return code


def _survey_json(data: bytes, survey: KindSurvey, number: int) -> None:
    try:
        parsed = parsed_json(data)
    except (ValueError, RecursionError):
        return  # reading the sample raises it
    if isinstance(parsed, dict):
        kinds = empty_kinds(parsed)
        survey.update(parsed, (0, number))
        survey.update({key: _EMPTY_VALUES[kind] for key, kind in kinds.items()}, (0, number))


def parsed_json(data: bytes) -> Any:
    """Parse a JSON member, with bytes for each {"base64": ...} among the values of its object."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {json_fault(error)}") from None
    if b"base64" in data and isinstance(parsed, dict):
        restore_base64(parsed)
    return parsed


def empty_kinds(row: dict[str, Any]) -> dict[str, Kind]:
    """Remove and return the kinds of empty lists, if an object has them."""
    kinds = row.get(EMPTY_KINDS)
    if not isinstance(kinds, dict) or not set(kinds.values()) <= _EMPTY_VALUES.keys():
        return {}
    return row.pop(EMPTY_KINDS)  # type: ignore[no-any-return]


class _SafeNames:
    """Unique names for an archive's samples: relative paths that stay inside."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # name -> the next number to try

    def take(self, key: str) -> str:
        """The name for a key; numbered if another sample has it."""
        parts = [part for part in with_slashes(key).split("/") if part not in ("", ".", "..")]
        name = "/".join(part for part in parts if not re.fullmatch(r"[A-Za-z]:", part)) or "_"
        unique = name = name.replace("\0", "_")
        number = self._next.get(name, 1)
        while unique in self._next:
            number += 1
            unique = f"{name}~{number}"
        self._next[name] = number
        self._next.setdefault(unique, 1)
        return unique
