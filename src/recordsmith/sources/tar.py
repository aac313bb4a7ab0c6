"""Index tar archives, so that any member can be read without unpacking.

Nothing is ever written under a member's name. A gzip-compressed archive is first decompressed into
a temporary file.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.files import accessing, read_head
from recordsmith.sources.temporary_files import RandomFile, inflated, is_gzip, temporary_copy
from recordsmith.wire import HEAD_BYTES, detect_other_format

_BLOCK_BYTES = 512
_SEARCHED_BYTES = 1 << 20


class Member(NamedTuple):
    """A regular file in an archive: its stored name, and the offset and size of its content."""

    name: str
    offset: int
    size: int


class TarFile:
    """One archive. Its members can be read from several threads."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            FileAccessError: the archive cannot be read.
            CorruptDataError: its compression is damaged.
        """
        self.path = path
        is_compressed = is_gzip(path)
        self._file = temporary_copy(inflated(path)) if is_compressed else RandomFile.open(path)
        self.skipped: list[str] = []

    def members(self) -> Iterator[Member]:
        """Yield the regular files in order. Links and other special members are skipped.

        Raises:
            SourceError: not a tar archive, or damaged; raised after the members before the damage.
        """
        with self._file.stream() as stream, accessing(self.path):
            try:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    while (member := archive.next()) is not None:
                        archive.members.clear()  # type: ignore[attr-defined]  # keeps memory constant
                        if member.isreg() and not member.issparse():
                            yield Member(member.name, member.offset_data, member.size)
                        elif not member.isdir():
                            self.skipped.append(member.name)
                    end = archive.offset
            except (tarfile.TarError, ValueError, OverflowError) as error:  # sizes beyond a file's
                raise self._damaged(str(error)) from None
        self._check_end(end)

    def read(self, offset: int, size: int) -> bytes:
        """The bytes of a member."""
        return self._file.read_whole(offset, size)

    def _check_end(self, end: int) -> None:
        """Check for data after the end, because tarfile takes a damaged header for the end."""
        head = self._file.read(end, _BLOCK_BYTES)
        if any(head):
            raise self._damaged(f"no member header at byte {end}")
        if any(self._file.read(end, _SEARCHED_BYTES)):
            self.skipped.append("data after the end of the archive")

    def _damaged(self, reason: str) -> SourceError:
        foreign = detect_other_format(read_head(self.path, HEAD_BYTES))
        if foreign is not None and foreign.name not in (
            "a tar archive",
            "a gzip of something else",
        ):
            return SourceError(
                f"this is {foreign.name}, not a tar archive",
                path=self.path,
                remedy=foreign.advice,
            )
        return SourceError(
            f"not a tar archive, or damaged: {reason}",
            path=self.path,
            remedy="Fetch the file again.",
        )
