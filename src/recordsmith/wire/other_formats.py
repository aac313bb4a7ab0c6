"""Identify a file that is not a TFRecord from its first bytes.

Gives the name of the format and a remedy, for the message of the `not-a-tfrecord` defect.
"""

from __future__ import annotations

import csv
import zlib
from typing import NamedTuple

from recordsmith.wire.framing import HEADER_BYTES, starts_with_frame
from recordsmith.wire.kernel import masked_crc32c


class OtherFormat(NamedTuple):
    """The format of a file that is not a TFRecord.

    name: with its article.
    advice: what to do.
    evidence: where the format was detected, as the beginning of a sentence.
    is_text: whether it is plain text, in any encoding.
    """

    name: str
    advice: str
    evidence: str = "its first bytes are those of"
    is_text: bool = False

    @property
    def sentences(self) -> str:
        """The format and the advice, as sentences."""
        return f"{self.evidence} {self.name}. {self.advice}"


_PACK = "Pack images with `recordsmith pack FOLDER OUT`."
_PACK_TABLE = "Pack its rows with `recordsmith pack TABLE.{} OUT`."
_FETCH = "Fetch the file itself; this is not the data."
_PICKLE = "Opening a pickle can run code, so recordsmith does not."
_OTHER_READER = "Open it with a reader for that format."
_UNPACK = "Unpack it first."
_FETCH_BINARY = (
    "Any line end in it may be changed, so it cannot be fixed: fetch it again in binary mode."
)

# signature at byte 0, name, advice
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs.github.com/spec/",
        "a git-lfs pointer",
        "Run `git lfs pull` in the repository to get the real file.",
    ),
    (
        b"RSINDEX",
        "a recordsmith index of another file",
        "Pass that file, in the folder above; an index contains no records.",
    ),
    (b"PAR1", "a Parquet file", "Pack its rows with `recordsmith pack FILE OUT --format table`."),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _OTHER_READER),
    (b"\x93NUMPY", "a NumPy array", _OTHER_READER),
    (b"ARROW1\0\0", "an Arrow or Feather file", "Open it with pyarrow."),
    (b"FEA1", "a Feather file of the first version", "Open it with pyarrow."),
    (b"Obj\x01", "an Avro file", _OTHER_READER),
    (b"ORC", "an ORC file", "Open it with pyarrow."),
    (b"SEQ\x06", "a Hadoop SequenceFile", _OTHER_READER),
    (b"CDF\x01", "a NetCDF file", _OTHER_READER),
    (b"CDF\x02", "a NetCDF file", _OTHER_READER),
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
    (b"II*\0", "a TIFF image", _PACK),
    (b"MM\0*", "a TIFF image", _PACK),
    (b"%PDF-", "a PDF document", _OTHER_READER),
    (b"SQLite format 3\x00", "a SQLite database", _OTHER_READER),
    (b"\x7fELF", "a program", _FETCH),
    (b"\x80\x02", "a Python pickle", _PICKLE),
    (b"\x80\x03", "a Python pickle", _PICKLE),
    (b"\x80\x04\x95", "a Python pickle", _PICKLE),
    (b"\x80\x05\x95", "a Python pickle", _PICKLE),
)
# the block header of Riegeli, which ArrayRecord files are made of: a fixed first block
_RIEGELI = bytes.fromhex("83af70d10d884a3f00000000000000004000000000000000")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RIFF_FORMS = {b"WEBP": "a WebP image", b"WAVE": "a sound file", b"AVI ": "a film"}
_BMP_HEADERS = tuple(size.to_bytes(4, "little") for size in (12, 40, 52, 56, 64, 108, 124))
_FTYP_IMAGES = (b"avif", b"avis", b"heic", b"heix", b"mif1")
_LEVELDB_LOG = 7  # bytes of a header: checksum, length, kind
_TABLE_END = bytes.fromhex("57fb808b247547db")  # leveldb/doc/table_format.md
_MAX_INFLATED = 1024


def detect_other_format(head: bytes, tail: bytes = b"") -> OtherFormat | None:
    """Identify the format of a file; return None if it is unknown.

    Args:
        head: its first bytes.
        tail: its last bytes, if known: some formats have their signature there.
    """
    for signature, name, advice in _SIGNATURES:
        if head.startswith(signature):
            return OtherFormat(name, advice)
    if head.startswith(b"\x1f\x8b"):
        return _describe_gzip(head)
    return (
        _container(head)
        or _changed_by_transfer(head)
        or _text(head)
        or _leveldb(head, tail)
        or _unframed(head)
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
        name = _RIFF_FORMS[head[8:12]]
        return OtherFormat(name, _PACK if head[8:12] == b"WEBP" else _OTHER_READER)
    if head[4:8] == b"ftyp":
        is_image = head[8:12] in _FTYP_IMAGES
        name = "an AVIF or HEIF image" if is_image else "a film (MP4)"
        return OtherFormat(name, _PACK if is_image else _OTHER_READER)
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
    """Identify the contents of a gzip file."""
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
    """Detect a TFRecord that was transferred or rewritten as text."""
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
        for delimiter, name, ending in (
            (",", "CSV", "csv"),
            ("\t", "TSV", "tsv"),
            (";", "CSV", "csv"),
        ):
            if _is_table(text.decode("utf-8", "replace"), delimiter):
                return OtherFormat(
                    f"a table of text ({name})", _PACK_TABLE.format(ending), is_text=True
                )
        return OtherFormat("a text file", _FETCH, is_text=True)
    return None


def _is_table(text: str, delimiter: str) -> bool:
    """Return whether the first lines have equally many cells, two or more; the last may be cut."""
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


def _leveldb(head: bytes, tail: bytes) -> OtherFormat | None:
    """Detect a table by its end, or a log: masked CRC-32C of kind and data, length, kind."""
    if tail.endswith(_TABLE_END):
        return OtherFormat(
            "a LevelDB table (SSTable), such as the index of a TensorFlow checkpoint",
            "Open it with tf.train.load_checkpoint, or with a reader for LevelDB.",
            "its last bytes are those of",
        )
    length, kind = int.from_bytes(head[4:6], "little"), head[6] if len(head) > 6 else 0
    stop = _LEVELDB_LOG + length
    is_log = (
        1 <= kind <= 4
        and length > 0
        and stop <= len(head)
        and masked_crc32c(head[6:stop]) == int.from_bytes(head[:4], "little")
    )
    return (
        OtherFormat("a LevelDB log", "Open its folder with a reader for LevelDB.")
        if is_log
        else None
    )


def _unframed(head: bytes) -> OtherFormat | None:
    name = detect_unframed_messages(head)
    if name is None:
        return None
    return OtherFormat(
        name,
        "Its messages are not framed as records, with length and checksums: write each of them "
        "with recordsmith.ShardWriter.write.",
        "its first bytes are like those of",
    )


_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_FEWEST_FIELDS = 3  # of a message that is not an Example, and of messages with lengths
_HIGHEST_FIELD = 200  # that is plausible
_LONGEST_BYTES = 1 << 31  # of any message


def detect_unframed_messages(head: bytes) -> str | None:
    """Return the kind of protobuf that a file begins with, or None if it is not protobuf."""
    if _is_example(head, 0, None):
        return "a serialized tf.train.Example without the frame of a record"
    length, start = _read_varint(head, 0)
    if length is not None and 0 < length < _LONGEST_BYTES:
        if _is_example(head, start, length):
            return "tf.train.Examples with varint lengths in front, not framed records"
        if _count_delimited(head) >= _FEWEST_FIELDS:
            return "protobuf messages with varint lengths in front, not framed records"
    if _count_fields(head, 0, len(head)) >= _FEWEST_FIELDS:
        return "a serialized protobuf message without the frame of a record"
    return None


def _is_example(head: bytes, start: int, length: int | None) -> bool:
    """Features (1) { map entry (1) { key (1), Feature (2) { list of kind 1, 2 or 3 } } }."""
    at, stop = start, len(head)
    sizes = [] if length is None else [length]
    for _ in range(2):  # the features, and the first entry of them
        if at >= stop or head[at] != 0x0A:
            return False
        size, at = _read_varint(head, at + 1)
        if size is None or (sizes and size >= sizes[-1]):
            return False
        sizes.append(size)
    if length is not None and not length - 6 <= sizes[1] < length:
        return False
    entry_stop = at + sizes[-1]
    if at >= stop or head[at] != 0x0A:
        return False
    size, at = _read_varint(head, at + 1)
    if size is None or at + size >= min(entry_stop, stop):
        return False
    key = head[at : at + size]
    if not key or any(byte < 32 for byte in key):
        return False
    at += size
    if head[at] != 0x12:
        return False
    size, at = _read_varint(head, at + 1)
    return (
        size is not None
        and at + size == entry_stop
        and (size == 0 or (at < stop and head[at] in (0x0A, 0x12, 0x1A)))
    )


def _count_fields(head: bytes, at: int, stop: int) -> int:
    """Count the consecutive fields from `at`; 0 if the bytes are not a message.

    The last one may be cut off. Writers put fields in ascending order, unlike other data.
    """
    count, before = 0, 0
    while at < stop:
        tag, at = _read_varint(head, at)
        if tag is None:
            return count if at >= stop else 0
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= _HIGHEST_FIELD or number < before:
            return 0
        before = number
        if wire == _VARINT:
            value, at = _read_varint(head, at)
            if value is None:
                return count if at >= stop else 0
        elif wire == _DELIMITED:
            size, at = _read_varint(head, at)
            if size is None or size > _LONGEST_BYTES:
                return count if at >= stop and size is None else 0
            at += size
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            return 0
        count += 1
    return count


def _count_delimited(head: bytes) -> int:
    """Count the consecutive messages with lengths; 0 if one of them is not a message."""
    at = count = 0
    while at < len(head):
        length, at = _read_varint(head, at)
        if length is None or not 0 < length < _LONGEST_BYTES:
            return count if length is None and at >= len(head) else 0
        if not _count_fields(head, at, min(len(head), at + length)):
            return 0
        if at + length <= len(head) and _ends_late(head, at, at + length):
            return 0
        at += length
        count += 1
    return count


def _ends_late(head: bytes, at: int, stop: int) -> bool:
    """Return whether the last field of a complete message ends after the message."""
    while at < stop:
        tag, at = _read_varint(head, at)
        if tag is None:
            return True
        wire = tag & 7
        if wire == _VARINT:
            value, at = _read_varint(head, at)
            if value is None:
                return True
        elif wire == _DELIMITED:
            size, at = _read_varint(head, at)
            if size is None:
                return True
            at += size
        else:
            at += 8 if wire == _FIXED64 else 4
    return at != stop


def _read_varint(head: bytes, at: int) -> tuple[int | None, int]:
    """Read a varint and its end; None if it is cut off or longer than ten bytes."""
    value = shift = 0
    for place in range(at, min(at + 10, len(head))):
        value |= (head[place] & 127) << shift
        shift += 7
        if head[place] < 128:
            return value, place + 1
    return None, max(at, min(at + 10, len(head)))
