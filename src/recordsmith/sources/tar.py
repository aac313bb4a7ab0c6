"""Tar archives: where each member lies, so that any can be read without unpacking.

Nothing is ever written under a member's name. An archive that is compressed with gzip is inflated
into a temporary file first.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.files import accessing, read_head
from recordsmith.sources.spool import RandomFile, inflated, is_gzip, temporary_copy
from recordsmith.wire import HEAD_BYTES, describe_foreign

_BLOCK_BYTES = 512
_SEARCHED_BYTES = 1 << 20


class Member(NamedTuple):
    """A regular file in an archive: its name as it is written there, and where its bytes lie."""

    name: str
    offset: int
    size: int


class TarFile:
    """One archive. Its members can be read from several threads."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            FileAccessError: it cannot be read.
            CorruptDataError: it is compressed, and that is damaged.
        """
        self.path = path
        is_compressed = is_gzip(path)
        self._file = temporary_copy(inflated(path)) if is_compressed else RandomFile.open(path)
        self.passed_over: list[str] = []

    def members(self) -> Iterator[Member]:
        """Its regular files, in order. Links and other special members are passed over.

        Raises:
            SourceError: it is no tar archive, or is damaged; after every member before that.
        """
        with self._file.stream() as stream, accessing(self.path):
            try:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    while (member := archive.next()) is not None:
                        archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
                        if member.isreg() and not member.issparse():
                            yield Member(member.name, member.offset_data, member.size)
                        elif not member.isdir():
                            self.passed_over.append(member.name)
                    end = archive.offset
            except (tarfile.TarError, ValueError, OverflowError) as error:  # sizes beyond a file's
                raise self._damaged(str(error)) from None
        self._check_end(end)

    def read(self, offset: int, size: int) -> bytes:
        """The bytes of a member."""
        return self._file.read_whole(offset, size)

    def _check_end(self, end: int) -> None:
        """tarfile takes a damaged header for the end: then there is something there."""
        head = self._file.read(end, _BLOCK_BYTES)
        if any(head):
            raise self._damaged(f"at byte {end} there is no header of a member")
        if any(self._file.read(end, _SEARCHED_BYTES)):
            self.passed_over.append("what lies behind the archive's end mark")

    def _damaged(self, reason: str) -> SourceError:
        foreign = describe_foreign(read_head(self.path, HEAD_BYTES))
        if foreign is not None and foreign.name not in (
            "a tar archive",
            "a gzip of something else",
        ):
            return SourceError(f"{self.path} is {foreign.name}, no tar archive. {foreign.advice}")
        return SourceError(
            f"{self.path} is no tar archive, or is damaged: {reason}. Fetch it again."
        )
