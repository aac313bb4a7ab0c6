"""Text files in blocks that end with a line, and files that are compressed with gzip.

A text that is compressed, or in another encoding than UTF-8, is first copied into a temporary file
as plain UTF-8.
"""

from __future__ import annotations

import codecs
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar, cast

from recordsmith.format.wire.compression import GZIP_MAGIC, Inflater
from recordsmith.stores import Location, ObjectReader, ScratchFile
from recordsmith.support.errors import (
    CorruptDataError,
    Defect,
    OptionError,
    SourceError,
    accessing,
    located,
    option,
)

_BLOCK_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 25
_Block = TypeVar("_Block")


class TextFile:
    """A text file with reads at any offset, as UTF-8.

    start: the offset of the first character.
    """

    def __init__(self, path: Location, encoding: str) -> None:
        self.path = path
        self._encoding = check_encoding(encoding)
        if not path.size():
            raise SourceError("the file is empty; expected a table", path=path)
        is_utf8 = self._encoding == "utf-8"
        if is_utf8 and not is_gzip(path):
            self._file: ObjectReader = path.open_read()
            weakref.finalize(self, self._file.close)
        else:
            pieces = inflated(path) if is_gzip(path) else _pieces(path)
            self._file = ScratchFile(pieces if is_utf8 else self._as_utf8(pieces))
        self.start = 3 * (self._file.read_at(0, 3) == codecs.BOM_UTF8)

    def read(self, start: int, size: int) -> bytes:
        """The bytes from `start` on, fewer than `size` only at the end of the file."""
        data = self._file.read_at(start, start + size)
        if b"\0" in data:
            at = start + data.index(0)
            before = (
                self._file.read_at(begin, min(begin + _BLOCK_BYTES, at))
                for begin in range(0, at, _BLOCK_BYTES)
            )
            raise SourceError(
                "zero bytes: not a text table, or damaged",
                path=self.path,
                line=1 + sum(map(line_count, before)),
                remedy="Save a workbook of a spreadsheet as CSV. If the file is UTF-16, pass "
                f"{option('encoding', 'utf-16')}.",
            )
        return data

    def lines(self) -> Iterator[tuple[int, int, bytes]]:
        r"""Yield blocks of whole lines: offset, number of the first line, bytes.

        A line ends with \n, \r\n or \r; the last may have no end.
        """

        def take(
            data: bytes, offset: int, line: int, is_last: bool
        ) -> tuple[tuple[int, int, bytes], int]:
            block = data if is_last else data[: last_line_end(data)]
            return (offset, line, block), len(block)

        return self.blocks(take, self.start, 1)

    def blocks(
        self, take: Callable[[bytes, int, int, bool], tuple[_Block, int]], offset: int, line: int
    ) -> Iterator[_Block]:
        """Yield what `take` makes of the file from an offset, which is in this line.

        `take` is called with bytes, their offset and line, and whether they are the last. It
        returns a block and the number of bytes that it used; 0 if it needs more.
        """
        size = _BLOCK_BYTES
        while data := self.read(offset, size):
            found, stop = take(data, offset, line, len(data) < size)
            if stop:
                yield found
                offset += stop
                line += line_count(data[:stop])
                size = _BLOCK_BYTES
                continue
            if size >= _MAX_LINE_BYTES:
                raise SourceError(
                    f"not a text table: a line exceeds {_MAX_LINE_BYTES:,} bytes",
                    path=self.path,
                    line=line,
                )
            size *= 2

    def decoded(self, data: bytes, offset: int, line: int) -> str:
        """Decode bytes that begin at a byte and line of the file."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line += line_count(data[: error.start])
            raise self._wrong_encoding(error, line, offset + error.start) from None

    def _wrong_encoding(self, error: UnicodeDecodeError, line: int, offset: int) -> SourceError:
        """The error for a line that cannot be decoded; `offset` is where the file breaks."""
        found = error.object[error.start : error.start + 1]
        likely = "cp1252"
        if error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            likely = "utf-16"
        return SourceError(
            f"byte {offset} ({found!r}) is not valid {self._encoding}",
            path=self.path,
            line=line,
            remedy=f"Pass the encoding of the file, such as {option('encoding', likely)}, or fix "
            "the line.",
        )

    def _as_utf8(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(self._encoding)()
        offset, line = 0, 1
        for piece in itertools.chain(pieces, (None,)):
            try:
                text = decoder.decode(piece or b"", final=piece is None)
            except UnicodeDecodeError as error:
                at = offset - (len(error.object) - len(piece or b"")) + error.start
                line += error.object[: error.start].decode(self._encoding, "ignore").count("\n")
                raise self._wrong_encoding(error, line, at) from None
            offset += len(piece or b"")
            line += text.count("\n")
            yield text.encode()


def line_count(data: bytes) -> int:
    r"""The number of line ends: \n, \r\n or \r."""
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else ends


def last_line_end(data: bytes) -> int:
    """Where the last whole line of a block ends; 0 if there is none."""
    # what follows a final \r is not known yet
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


def check_encoding(encoding: str) -> str:
    """The name of an encoding as Python has it; the byte order mark of UTF-8 is always skipped."""
    try:
        "".encode(encoding)
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise OptionError(
            option="encoding", value=encoding, expected="a text encoding such as 'utf-8'"
        ) from None
    return "utf-8" if name == "utf-8-sig" else name


def _pieces(path: Location) -> Iterator[bytes]:
    with path.open_read() as file, accessing(str(path)):
        while piece := file.read(_BLOCK_BYTES):
            yield piece


def is_gzip(location: Location) -> bool:
    """Whether a file is compressed with gzip, by its first bytes."""
    return location.read(0, len(GZIP_MAGIC)) == GZIP_MAGIC


def inflated(location: Location) -> Iterator[bytes]:
    name = str(location)
    with location.open_read() as file, located(name), accessing(name):
        inflater = Inflater(cast(BinaryIO, file), "gzip")
        while piece := inflater.read(_BLOCK_BYTES):
            yield piece
        if not inflater.is_complete:
            raise CorruptDataError(
                Defect.TRUNCATED_COMPRESSION,
                "the compressed file is truncated",
                remedy="Fetch the file again.",
            )
