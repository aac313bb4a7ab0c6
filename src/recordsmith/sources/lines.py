"""Text files by line: where each line begins, so that it can be read again on its own.

A file that is compressed, or whose encoding does not keep line breaks as single bytes (UTF-16 and
the like), is first copied into a temporary file as plain UTF-8.
"""

from __future__ import annotations

import codecs
import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.files import accessing, open_file, size_of
from recordsmith.sources.spool import RandomFile, inflated, is_gzip, temporary_copy

_BLOCK_BYTES = 1 << 20
_LONGEST_LINE_BYTES = 1 << 26
_UTF8_MARK = b"\xef\xbb\xbf"
_BYTE_PER_CHARACTER = ("ascii", "utf-8", "iso8859", "cp125", "koi8", "mac-")


class TextFile:
    """A text file with reads at any offset. Safe to read from several threads."""

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
        is_plain = self.encoding.startswith(_BYTE_PER_CHARACTER)
        if is_plain and not is_gzip(path):
            self._file = RandomFile.open(path)
        else:
            pieces = inflated(path) if is_gzip(path) else _pieces(path)
            self._file = temporary_copy(pieces if is_plain else self._as_utf8(pieces))
            if not is_plain:
                self.encoding = "utf-8"
        begins_marked = self.encoding == "utf-8" and self._file.read(0, 3) == _UTF8_MARK
        self._start = len(_UTF8_MARK) if begins_marked else 0

    def lines(self, start: int | None = None, number: int = 1) -> Lines:
        """The lines from byte `start`; the first has this number."""
        return Lines(self, self._start if start is None else start, number)

    def text(self, start: int, stop: int) -> str:
        """A part of it, which was read before."""
        return self._file.read_whole(start, stop - start).decode(self.encoding)

    def blocks(self, start: int) -> Iterator[bytes]:
        """Its bytes from `start` on."""
        while block := self._file.read(start, _BLOCK_BYTES):
            yield block
            start += len(block)

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


class TextRows:
    """The rows of one text file: where each begins, and on which line. Twelve bytes a row.

    Safe to read from several threads once all rows were added.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        """
        Raises:
            OptionError: there is no such encoding.
            SourceError: the file is empty.
            FileAccessError: it cannot be read.
        """
        self.path = path
        self.file = TextFile(path, encoding)
        self._starts = array("q")
        self._lines = array("I")

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, start: int, line: int) -> None:
        """The next row: its first byte, and its first line."""
        self._starts.append(start)
        self._lines.append(line)

    def end(self, stop: int) -> None:
        """There are no more rows; `stop` is where the last one ends."""
        self._starts.append(stop)

    def place(self, row: int) -> str:
        """File and line of a row, for messages."""
        return f"{self.path}, line {self.line(row)}"

    def line(self, row: int) -> int:
        """The first line of a row."""
        return self._lines[row]

    def text(self, row: int) -> str:
        """A row as it is written, with its line break."""
        return self.file.text(self._starts[row], self._starts[row + 1])

    def sizes(self) -> Int64Array:
        """int64, (rows,): how long each is, in bytes."""
        starts = np.array(self._starts, np.int64)
        return starts[1:] - starts[:-1]


_Rows = TypeVar("_Rows", bound=TextRows)


class TextTable(Generic[_Rows]):
    """The rows of several text files, by the number of the file and that of the row in it."""

    files: Sequence[_Rows]

    @property
    def counts(self) -> list[int]:
        """How many rows each file has."""
        return [len(file) for file in self.files]

    def sizes(self, number: int) -> Int64Array:
        """int64, (rows,): about how long the records of one file will be."""
        return self.files[number].sizes()

    def place(self, number: int, row: int) -> str:
        """File and line of a row."""
        return self.files[number].place(row)


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


class Lines:
    r"""Iterates over lines with their breaks, which may be \n, \r\n or \r.

    offset: of the line that comes next, in bytes.
    number: of the line that comes next, from 1.
    """

    def __init__(self, file: TextFile, start: int, number: int) -> None:
        self._file = file
        self._pieces = self._split(start)
        self._encoding = file.encoding
        self.offset = start
        self.number = number

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = next(self._pieces)
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError as error:
            offset = self.offset + error.start
            raise self._file.wrong_encoding(error, self.number, offset) from None
        self.offset += len(line)
        self.number += 1
        return text

    def _split(self, start: int) -> Iterator[bytes]:
        rest = b""
        for block in self._file.blocks(start):
            if b"\0" in block:
                self._refuse_zeros(rest + block)
            pieces = (rest + block).splitlines(keepends=True)
            rest = b""
            if not pieces[-1].endswith(b"\n"):  # cut in two, also one that ends with \r
                rest = pieces.pop()
            if len(rest) > _LONGEST_LINE_BYTES:
                raise SourceError(
                    f"not a text table: a line exceeds {_LONGEST_LINE_BYTES:,} bytes",
                    path=self._file.path,
                    line=self.number,
                )
            yield from pieces
        yield from rest.splitlines(keepends=True)

    def _refuse_zeros(self, data: bytes) -> None:
        at = data.index(0)
        line = self.number + len(data[:at].splitlines())
        remedy = ""
        every_second = data[at : at + 200 : 2]
        if 2 * every_second.count(0) > len(every_second) > 3:
            remedy = f"If the file is UTF-16, pass {option('encoding', 'utf-16')}."
        raise SourceError(
            "zero bytes, so not a text table or damaged",
            path=self._file.path,
            line=line,
            remedy=remedy,
        )
