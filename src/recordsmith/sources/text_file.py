"""Text files in blocks that end with a line.

A file that is compressed, or whose encoding does not keep line breaks as single bytes (UTF-16 and
the like), is first copied into a temporary file as plain UTF-8.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from recordsmith.errors import OptionError, SourceError, option
from recordsmith.files import accessing, open_file, size_of
from recordsmith.sources.temporary_files import RandomFile, inflated, is_gzip, temporary_copy

_BLOCK_BYTES = 1 << 22
_LONGEST_LINE_BYTES = 1 << 26
_UTF8_MARK = b"\xef\xbb\xbf"
_BYTE_PER_CHARACTER = ("ascii", "utf-8", "iso8859", "cp125", "koi8", "mac-")


class TextFile:
    """A text file with reads at any offset.

    start: the offset of the first character.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        """
        Raises:
            OptionError: there is no such encoding.
            SourceError: it is empty.
            FileAccessError: it cannot be read.
        """
        self.path = path
        self.encoding = _known(encoding)
        if not size_of(path):
            raise SourceError("the file is empty; expected a table", path=path)
        is_plain = self.encoding.startswith(_BYTE_PER_CHARACTER) and not any(
            map(str.isascii, bytes(range(128, 256)).decode(self.encoding, "ignore"))
        )  # mac-arabic has a second comma and quote
        if is_plain and not is_gzip(path):
            self._file = RandomFile.open(path)
        else:
            pieces = inflated(path) if is_gzip(path) else _pieces(path)
            self._file = temporary_copy(pieces if is_plain else self._as_utf8(pieces))
            if not is_plain:
                self.encoding = "utf-8"
        begins_marked = self.encoding == "utf-8" and self._file.read(0, 3) == _UTF8_MARK
        self.start = len(_UTF8_MARK) if begins_marked else 0

    def read(self, start: int, size: int) -> bytes:
        """The bytes from `start` on, fewer than `size` only at the end of the file.

        Raises:
            SourceError: they contain zeros, so this is not a text file.
        """
        data = self._file.read(start, size)
        if b"\0" in data:
            raise self._zero_error(start + data.index(0))
        return data

    def lines(self) -> Iterator[tuple[int, int, bytes]]:
        r"""Yield blocks of whole lines: where one begins, the number of its first line, its bytes.

        A line ends with \n, \r\n or \r; the last may have no end.

        Raises:
            SourceError: the file contains zeros, or a line is too long.
        """
        offset, line, size = self.start, 1, _BLOCK_BYTES
        while data := self.read(offset, size):
            stop = len(data) if len(data) < size else last_line_end(data)
            if not stop:
                size = self.larger(size, line)
                continue
            yield offset, line, data[:stop]
            offset += stop
            line += line_count(data[:stop])
            size = _BLOCK_BYTES

    def larger(self, size: int, line: int) -> int:
        """The next size of a block that has no whole line of this size.

        Raises:
            SourceError: the line is too long.
        """
        if size >= _LONGEST_LINE_BYTES:
            raise SourceError(
                f"not a text table: a line exceeds {_LONGEST_LINE_BYTES:,} bytes",
                path=self.path,
                line=line,
            )
        return size * 2

    def decoded(self, data: bytes, offset: int, line: int) -> str:
        """Decode bytes that begin at a byte and line of the file.

        Raises:
            SourceError: they are not valid in the encoding.
        """
        try:
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            line += line_count(data[: error.start])
            raise self.wrong_encoding(error, line, offset + error.start) from None

    def wrong_encoding(self, error: UnicodeDecodeError, line: int, offset: int) -> SourceError:
        """The error for a line that cannot be decoded; `offset` is where the file breaks."""
        found = error.object[error.start : error.start + 1]
        likely = "cp1252"
        if error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            likely = "utf-16"
        return SourceError(
            f"byte {offset} ({found!r}) is not valid {self.encoding}",
            path=self.path,
            line=line,
            remedy=f"Pass the encoding of the file, such as {option('encoding', likely)}, or fix "
            "the line.",
        )

    def _as_utf8(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(self.encoding)()
        offset, line = 0, 1
        for piece in itertools.chain(pieces, (None,)):
            try:
                text = decoder.decode(piece or b"", final=piece is None)
            except UnicodeDecodeError as error:
                at = offset - (len(error.object) - len(piece or b"")) + error.start
                line += error.object[: error.start].decode(self.encoding, "ignore").count("\n")
                raise self.wrong_encoding(error, line, at) from None
            offset += len(piece or b"")
            line += text.count("\n")
            yield text.encode()

    def _zero_error(self, offset: int) -> SourceError:
        line = 1 + sum(map(line_count, self._before(offset)))
        remedy = ""
        every_second = self._file.read(offset, 200)[::2]
        if 2 * every_second.count(0) > len(every_second) > 3:
            remedy = f"If the file is UTF-16, pass {option('encoding', 'utf-16')}."
        return SourceError(
            "zero bytes, so not a text table or damaged", path=self.path, line=line, remedy=remedy
        )

    def _before(self, stop: int) -> Iterator[bytes]:
        for start in range(0, stop, _BLOCK_BYTES):
            yield self._file.read(start, min(_BLOCK_BYTES, stop - start))


def line_count(data: bytes) -> int:
    r"""The number of line ends: \n, \r\n or \r."""
    ends = data.count(b"\n")
    return ends + data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else ends


def last_line_end(data: bytes) -> int:
    """Where the last whole line of a block ends; 0 if there is none."""
    # what follows a final \r is not known yet
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


def _known(encoding: str) -> str:
    """The name of an encoding as Python has it; the mark of UTF-8 is always passed over."""
    try:
        "".encode(encoding)
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise OptionError(
            option="encoding", value=encoding, expected="a text encoding such as 'utf-8'"
        ) from None
    return "utf-8" if name == "utf-8-sig" else name


def _pieces(path: Path) -> Iterator[bytes]:
    with open_file(path) as file, accessing(path):
        while piece := file.read(_BLOCK_BYTES):
            yield piece
