"""Index tar archives, so that any member can be read without unpacking.

Nothing is ever written under a member's name. A gzip-compressed archive is first decompressed into
a temporary file.
"""

from __future__ import annotations

import io
import tarfile
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from recordsmith.errors import SourceError, accessing
from recordsmith.sources.files.text_file import inflated, is_gzip
from recordsmith.stores import Location, ObjectReader
from recordsmith.stores.local.scratch import ScratchFile
from recordsmith.wire import HEAD_BYTES, detect_other_format

_BLOCK_BYTES = 512
_SEARCHED_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 16
_EXPECTED_FORMATS = ("a tar archive", "a gzip of something else")


class Member(NamedTuple):
    """A regular file in an archive: its stored name, and the offset and size of its content."""

    name: str
    offset: int
    size: int


class TarFile:
    """One archive. Its members can be read from several threads."""

    def __init__(self, path: Location) -> None:
        self.path = path
        if is_gzip(path):
            self._file: ObjectReader = ScratchFile(inflated(path))
        else:
            self._file = path.open_read()
            weakref.finalize(self, self._file.close)
        self.skipped: list[str] = []

    def members(self) -> Iterator[Member]:
        """Yield the regular files in order. Links and other special members are skipped."""
        self._file.seek(0)
        stream = io.BufferedReader(self._file, _BUFFER_BYTES)
        with accessing(str(self.path)):
            try:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    while (member := archive.next()) is not None:
                        archive.members.clear()  # type: ignore[attr-defined]  # keeps memory constant
                        if member.isreg() and not member.issparse():
                            left = self._file.size_bytes - member.offset_data
                            if not 0 <= member.size <= left:  # PAX headers may state any number
                                raise ValueError(f"{member.name!r} has {member.size} bytes")
                            yield Member(member.name, member.offset_data, member.size)
                        elif not member.isdir():
                            self.skipped.append(member.name)
                    end = archive.offset
            except (tarfile.TarError, ValueError, OverflowError) as error:  # sizes beyond a file's
                raise self._damaged(str(error)) from None
            finally:
                stream.detach()
        self._check_end(end)

    def read(self, offset: int, size: int) -> bytes:
        """The bytes of a member."""
        data = self._file.read_at(offset, offset + size)
        if len(data) < size:
            raise SourceError(
                "the file was truncated since it was listed: it ends at byte "
                f"{offset + len(data)}, expected {offset + size} bytes",
                path=self.path,
            )
        return data

    def _check_end(self, end: int) -> None:
        """Check for data after the end, because tarfile takes a damaged header for the end."""
        head = self._file.read_at(end, end + _BLOCK_BYTES)
        if any(head):
            raise self._damaged(f"no member header at byte {end}")
        if any(self._file.read_at(end, end + _SEARCHED_BYTES)):
            self.skipped.append("data after the end of the archive")

    def _damaged(self, reason: str) -> SourceError:
        problem, remedy = f"not a tar archive, or damaged: {reason}", "Fetch the file again."
        foreign = detect_other_format(self.path.read(0, HEAD_BYTES))
        if foreign is not None and foreign.name not in _EXPECTED_FORMATS:
            problem, remedy = f"this is {foreign.name}, not a tar archive", foreign.advice
        return SourceError(problem, path=self.path, remedy=remedy)
