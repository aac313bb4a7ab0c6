"""Which members of tar archives make which sample? In arrays, as there may be millions.

Members belong together whose paths are alike up to the first dot of their last part: that is the
key, and the rest their extension. They need not stand together.
"""

from __future__ import annotations

import bisect
import json
import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.documents import json_fault
from recordsmith.errors import SourceError
from recordsmith.sources.json_values import KindSurvey
from recordsmith.sources.tar import TarFile
from recordsmith.sources.wording import some, tally

_MOST_EXTENSIONS = 10_000


class TarSamples:
    """The members of all samples, in arrays: 18 bytes for each, and 8 for each sample."""

    def __init__(self) -> None:
        self.extensions: dict[str, int] = {}  # and their numbers
        self._archives: list[TarFile] = []
        self._archive_names: list[str] = []
        self._archive_ends = array("q")  # how many samples there are up to its end
        self._ends = array("q", [0])  # how many members there are up to the end of each sample
        self._codes = array("H")
        self._offsets = array("q")
        self._sizes = array("q")
        self._keys = bytearray()  # of samples, as they are in the archive, for messages
        self._key_ends = array("q", [0])
        self._passed_over: list[str] = []
        self._replaced_count = 0

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, archive: TarFile, name: str, survey: KindSurvey) -> Iterator[str]:
        """Add the samples of one archive of that name; gives a safe name for each sample."""
        samples: dict[str, dict[str, tuple[int, int]]] = {}  # key -> extension -> offset, size
        for member in archive.members():
            folder, _, last = member.name.rpartition("/")
            base, _, extension = last.partition(".")
            if not base or not extension:
                self._passed_over.append(f"{archive.path}: {member.name}")
                continue
            parts = samples.setdefault(f"{folder}/{base}" if folder else base, {})
            self._replaced_count += extension.lower() in parts
            parts[extension.lower()] = (member.offset, member.size)
        self._passed_over += [f"{archive.path}: {name}" for name in archive.passed_over]
        self._archives.append(archive)
        self._archive_names.append(name)
        taken: set[str] = set()
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
            yield _safe(key, taken)
        self._archive_ends.append(len(self))

    def read(self, number: int) -> Iterator[tuple[str, bytes]]:
        """Extension and bytes of each member of a sample, in the order of the archive."""
        archive = self._archives[self._archive(number)]
        names = list(self.extensions)
        for place in range(self._ends[number], self._ends[number + 1]):
            data = archive.read(self._offsets[place], self._sizes[place])
            yield names[self._codes[place]], data

    def place(self, number: int, extension: str) -> str:
        """Archive and name of a member, for messages."""
        key = bytes(self._keys[self._key_ends[number] : self._key_ends[number + 1]])
        name = key.decode("utf-8", "surrogateescape")
        return f"{self._archives[self._archive(number)].path}: {name}.{extension}"

    def sample_sizes(self) -> npt.NDArray[np.int64]:
        """int64, (samples,): the bytes of all members of each."""
        totals = np.concatenate([[0], np.cumsum(np.array(self._sizes, np.int64))])
        return np.diff(totals[np.array(self._ends, np.int64)])

    def notices(self) -> list[str]:
        """What was passed over, and which extensions not all samples have."""
        notices = []
        if self._passed_over:
            notices.append(f"no members of samples: {tally(self._passed_over)}")
        if self._replaced_count:
            notices.append(
                f"members that are there twice: {self._replaced_count:,}; the last counts, as when "
                "an archive is unpacked"
            )
        counts = np.bincount(np.array(self._codes, np.int64), minlength=len(self.extensions))
        lacking = [
            f"{len(self) - count:,} without .{extension}"
            for extension, count in zip(self.extensions, counts.tolist(), strict=True)
            if count < len(self)
        ]
        if lacking:
            notices.append(f"of {len(self):,} samples, {some(lacking)}")
        return notices

    def found(self) -> str:
        """What is there instead of samples, in words."""
        return f"; found {tally(self._passed_over)}" if self._passed_over else ""

    def archive_name(self, number: int) -> str:
        """The name of the archive that a sample is in."""
        return self._archive_names[self._archive(number)]

    def _archive(self, number: int) -> int:
        """The number of that archive."""
        return bisect.bisect_right(self._archive_ends, number)

    def _code(self, extension: str) -> int:
        code = self.extensions.setdefault(extension, len(self.extensions))
        if code >= _MOST_EXTENSIONS:
            raise SourceError(
                f"{self._archives[-1].path}: there are more than {_MOST_EXTENSIONS:,} extensions "
                f"such as {extension!r}; what stands before the first dot of a name should be the "
                "key of its sample"
            )
        return code


def _survey_json(data: bytes, survey: KindSurvey, number: int) -> None:
    try:
        parsed = parsed_json(data)
    except (ValueError, RecursionError):
        return  # reading the sample will say so
    if isinstance(parsed, dict):
        survey.see(parsed, (0, number))


def parsed_json(data: bytes) -> Any:
    """
    Raises:
        ValueError: it is no JSON.
    """
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {json_fault(error)}") from None


def _safe(key: str, taken: set[str]) -> str:
    """A key as a relative path that leads nowhere else, and that no other sample has."""
    parts = [part for part in key.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    name = "/".join(part for part in parts if not re.fullmatch(r"[A-Za-z]:", part)) or "_"
    name = name.replace("\0", "_")
    unique, number = name, 2
    while unique in taken:
        unique, number = f"{name}~{number}", number + 1
    taken.add(unique)
    return unique
