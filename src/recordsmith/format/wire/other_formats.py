"""Identify a file that is not a TFRecord from its first bytes.

Gives the name of the format and a remedy, for the message of the `not-a-tfrecord` defect.
"""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

from recordsmith.format.wire.framing import HEADER_BYTES, starts_with_frame


class OtherFormat(NamedTuple):
    """The format of a file that is not a TFRecord.

    name: with its article.
    advice: what to do.
    evidence: where the format was detected, as the beginning of a sentence.
    is_text: whether it is plain text, in any encoding.
    is_pointer: whether it stands for a file that was not fetched.
    """

    name: str
    advice: str
    evidence: str = "its first bytes are those of"
    is_text: bool = False
    is_pointer: bool = False

    @property
    def sentences(self) -> str:
        """The format and the advice, as sentences."""
        return f"{self.evidence} {self.name}. {self.advice}"


_PACK = "Pack images with `recordsmith pack FOLDER OUT`."
_PACK_TABLE = "Pack its rows with `recordsmith pack TABLE.{} OUT`."
_FETCH = "Fetch the file itself; this is not the data."
_PICKLE = (
    "Opening a pickle can run code, so recordsmith does not. If you trust it, convert it with "
    "numpy.savez(path, images=..., labels=...)."
)
_HDF5 = "Convert it with h5py and numpy.savez(path, images=..., labels=...)."
_MATLAB = "Convert it with scipy.io.loadmat and numpy.savez(path, images=..., labels=...)."
_FILM = "Extract its frames with `ffmpeg -i FILE FOLDER/%06d.png`, and pack the folder."
_OTHER_READER = "Open it with a reader for that format."
_UNPACK = "Unpack it first."
_FETCH_BINARY = (
    "Any line end in it may be changed, so it cannot be fixed: fetch it again in binary mode."
)

_GIT_LFS = b"version https://git-lfs.github.com/spec/"

# signatures at byte 0, name, advice
_SIGNATURES: tuple[tuple[bytes | tuple[bytes, ...], str, str], ...] = (
    (
        b"RSINDEX",
        "a recordsmith index of another file",
        "Pass that file, in the folder above; an index contains no records.",
    ),
    (b"PAR1", "a Parquet file", "Pack its rows with `recordsmith pack FILE OUT --format table`."),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _HDF5),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file", _MATLAB),
    (b"\x93NUMPY", "a NumPy array", _OTHER_READER),
    (b"ARROW1\0\0", "an Arrow or Feather file", "Open it with pyarrow."),
    (b"FEA1", "a Feather file of the first version", "Open it with pyarrow."),
    (b"Obj\x01", "an Avro file", _OTHER_READER),
    (b"ORC", "an ORC file", "Open it with pyarrow."),
    (b"SEQ\x06", "a Hadoop SequenceFile", _OTHER_READER),
    ((b"CDF\x01", b"CDF\x02"), "a NetCDF file", _OTHER_READER),
    (b"BZh", "a bzip2 file", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz file", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"\x04\x22\x4d\x18", "an lz4 file", _UNPACK),
    (b"\xff\x06\x00\x00sNaPpY", "a snappy file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a rar archive", _UNPACK),
    (b"\xff\xd8\xff", "a JPEG image", _PACK),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _PACK),
    (b"GIF8", "a GIF image", _PACK),
    (b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL image", _PACK),
    ((b"II*\0", b"MM\0*"), "a TIFF image", _PACK),
    (b"%PDF-", "a PDF document", _OTHER_READER),
    (b"SQLite format 3\x00", "a SQLite database", _OTHER_READER),
    (b"\x7fELF", "a program", _FETCH),
    ((b"\x80\2", b"\x80\3", b"\x80\4\x95", b"\x80\5\x95"), "a Python pickle", _PICKLE),
)
# the block header of Riegeli, which ArrayRecord files are made of: a fixed first block
_RIEGELI = bytes.fromhex("83af70d10d884a3f00000000000000004000000000000000")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RIFF_FORMS = {
    b"WEBP": ("a WebP image", _PACK),
    b"WAVE": ("a sound file", _OTHER_READER),
    b"AVI ": ("a film", _FILM),
}
_BMP_HEADERS = tuple(size.to_bytes(4, "little") for size in (12, 40, 52, 56, 64, 108, 124))
_FTYP_IMAGES = (b"avif", b"avis", b"heic", b"heix", b"mif1")
_TABLE_END = bytes.fromhex("57fb808b247547db")  # leveldb/doc/table_format.md
# two messages in field 1, of at least 3 bytes, and a key of 1 to 127 bytes
_EXAMPLE = re.compile(rb"\n(?:[\x80-\xff]{1,4}[\x01-\x7f]|[\x03-\x7f])" * 2 + rb"\n([\x01-\x7f])")
_MAX_INFLATED = 1024


def detect_other_format(head: bytes, tail: bytes = b"") -> OtherFormat | None:
    """Identify the format of a file; return None if it is unknown.

    Args:
        head: its first bytes.
        tail: its last bytes, if known: some formats have their signature there.
    """
    if head.startswith(_GIT_LFS):
        advice = "Run `git lfs pull` in the repository to get the real file."
        return OtherFormat("a git-lfs pointer", advice, is_pointer=True)
    for signature, name, advice in _SIGNATURES:
        if head.startswith(signature):
            return OtherFormat(name, advice)
    if head.startswith(b"\x1f\x8b"):
        return _describe_gzip(head)
    return (
        _container(head)
        or _changed_by_transfer(head)
        or _text(head)
        or _leveldb(tail)
        or _example(head)
    )


def _container(head: bytes) -> OtherFormat | None:
    """Detect formats that need more than their first bytes."""
    if head.startswith(b"PK\x03\x04"):
        if b".npy" in head[:256]:
            return OtherFormat(
                "a .npz file of NumPy arrays (a zip archive)", "Open it with numpy.load."
            )
        return OtherFormat("a zip archive", _UNPACK)
    if head.startswith(_RIEGELI):
        return OtherFormat(
            "an ArrayRecord or Riegeli file", "Open it with the array_record package."
        )
    if head[257:262] == b"ustar":
        return OtherFormat("a tar archive", _UNPACK)
    if head.startswith(b"RIFF") and head[8:12] in _RIFF_FORMS:
        return OtherFormat(*_RIFF_FORMS[head[8:12]])
    if head[4:8] == b"ftyp":
        is_image = head[8:12] in _FTYP_IMAGES
        name = "an AVIF or HEIF image" if is_image else "a film (MP4)"
        return OtherFormat(name, _PACK if is_image else _FILM)
    # BMP: its size, four zeros, where pixels begin, the size of the next header
    if head.startswith(b"BM") and head[6:10] == bytes(4) and head[14:18] in _BMP_HEADERS:
        return OtherFormat("a BMP image", _PACK)
    # Arrow's stream: a mark, the size of the metadata, where its root begins
    if head.startswith(b"\xff\xff\xff\xff") and head[6:8] == bytes(2) and head[9:12] == bytes(3):
        return OtherFormat("an Arrow stream", "Open it with pyarrow.")
    # safetensors: the length of a JSON object, then that object
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 32:
        return OtherFormat("a safetensors file", "Open it with the safetensors package.")
    return None


def _describe_gzip(head: bytes) -> OtherFormat:
    try:
        inner = zlib.decompressobj(31).decompress(head, _MAX_INFLATED)
    except zlib.error:
        return OtherFormat("a damaged gzip file", "Fetch it again.")
    if inner.startswith(b"\x1f\x8b"):
        return OtherFormat("a gzip of a gzip", "It was compressed twice; unpack it once.")
    foreign = detect_other_format(inner) if inner else None
    if foreign is None:
        return OtherFormat("a gzip of an unknown format", "Unpack it to see its contents.")
    return OtherFormat(f"a gzip of {foreign.name}", f"{_UNPACK} {foreign.advice}")


def _changed_by_transfer(head: bytes) -> OtherFormat | None:
    rest = head.removeprefix(_BYTE_ORDER_MARK)
    if rest != head and starts_with_frame(rest):
        return OtherFormat(
            "a TFRecord after a UTF-8 byte order mark (BOM)",
            "Remove its first three bytes, or fetch it again in binary mode.",
        )
    # LF became CR LF, or the reverse, in the first header: the length or its checksum has one
    for changed in (head.replace(b"\r\n", b"\n"), head.replace(b"\n", b"\r\n")):
        if changed[:HEADER_BYTES] != head[:HEADER_BYTES] and starts_with_frame(changed):
            return OtherFormat(
                "a TFRecord whose line ends were converted (text mode)", _FETCH_BINARY
            )
    # bytes from 128 on became two, as if they were Latin-1 and written as UTF-8
    try:
        latin = head[: 2 * HEADER_BYTES].decode("utf-8", "ignore").encode("latin-1")
    except UnicodeEncodeError:
        latin = head
    if latin[:HEADER_BYTES] != head[:HEADER_BYTES] and starts_with_frame(latin):
        return OtherFormat(
            "a TFRecord that was re-encoded as UTF-8 text",
            "Fetch it again in binary mode; the changes cannot be detected.",
        )
    if head.count(b"\xef\xbf\xbd") * 12 > len(head) > 100:
        return OtherFormat(
            "binary data that was read as UTF-8 text and written again",
            "Fetch it again in binary mode; bytes that were not UTF-8 are lost.",
        )
    return None


def _text(head: bytes) -> OtherFormat | None:
    text = head.lstrip(_BYTE_ORDER_MARK + b" \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return OtherFormat("an HTML page", f"The download link returned a page. {_FETCH}")
    if text.startswith((b"<?xml", b"<error")):
        return OtherFormat("an XML document", f"It may be the error message of a server. {_FETCH}")
    lines = text.splitlines()
    if len(lines) > 1 and lines[0].startswith(b'{"') and lines[0].rstrip().endswith(b"}"):
        return OtherFormat("a JSON Lines file", _PACK_TABLE.format("jsonl"), is_text=True)
    if text.startswith((b'{"', b"[{", b"{\n", b"[\n")):
        return OtherFormat("a JSON document", _FETCH, is_text=True)
    if head and not any(byte < 9 or 13 < byte < 32 or byte == 127 for byte in head):
        try:
            head.decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            if error.start < len(head) - 4:
                return None
        for delimiter, ending in ((",", "csv"), ("\t", "tsv"), (";", "csv")):
            if _is_table(text.decode("utf-8", "replace"), delimiter):
                name = f"a table of text ({ending.upper()})"
                return OtherFormat(name, _PACK_TABLE.format(ending), is_text=True)
        return OtherFormat("a text file", _FETCH, is_text=True)
    return None


def _is_table(text: str, delimiter: str) -> bool:
    """Return whether the first lines have equally many cells, two or more; the last may be cut."""
    import csv

    try:
        rows = list(csv.reader(text.splitlines(), delimiter=delimiter))
    except csv.Error:
        return False
    lengths = [len(row) for row in rows if row]
    if len(lengths) < 2 or lengths[0] < 2:
        return False
    last = lengths.pop()
    is_cut = not text.endswith("\n")
    return set(lengths) == {lengths[0]} and (last == lengths[0] or (is_cut and last < lengths[0]))


def _leveldb(tail: bytes) -> OtherFormat | None:
    """Detect a table by its end."""
    if not tail.endswith(_TABLE_END):
        return None
    return OtherFormat(
        "a LevelDB table (SSTable), such as the index of a TensorFlow checkpoint",
        "Open it with tf.train.load_checkpoint, or with a reader for LevelDB.",
        "its last bytes are those of",
    )


def _example(head: bytes) -> OtherFormat | None:
    """Detect Features (1) { map entry (1) { key (1), Feature (2) } } without a frame."""
    match = _EXAMPLE.match(head)
    if match is None:
        return None
    stop = match.end() + match[1][0]  # of the key
    key = head[match.end() : stop]
    if any(byte < 32 for byte in key) or head[stop : stop + 1] != b"\x12":
        return None
    return OtherFormat(
        "a serialized tf.train.Example without the frame of a record",
        "Its messages are not framed as records, with length and checksums: write each of them "
        "with recordsmith.ShardWriter.write.",
        "its first bytes are like those of",
    )
