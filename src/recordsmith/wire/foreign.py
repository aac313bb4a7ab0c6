"""What is this file, if it is no TFRecord? Answered from its first bytes.

A table of signatures, nothing more. The answer is a name and what to do about it, for the message
of the `not-a-tfrecord` defect.
"""

from __future__ import annotations

from typing import NamedTuple


class Foreign(NamedTuple):
    """What a file is instead of a TFRecord, with its article, what to do, and what tells it."""

    name: str
    advice: str
    evidence: str = "its first bytes are those of"


_PACK = "Pack pictures with `recordsmith pack FOLDER OUT`."
_FETCH = "Fetch the file itself; what lies here is not the data."
_PICKLE = "Opening one can run code, so recordsmith never does."
_OTHER_READER = "Open it with a reader for that format."

# signature at byte 0, name, advice
_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (
        b"version https://git-lfs.github.com/spec/",
        "a git-lfs pointer",
        "Run `git lfs pull` in the repository to get the real file.",
    ),
    (b"PAR1", "a Parquet file", _OTHER_READER),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _OTHER_READER),
    (b"\x93NUMPY", "a NumPy array", _OTHER_READER),
    (b"PK\x03\x04", "a zip archive", "Unpack it first."),
    (b"BZh", "a bzip2 file", "Unpack it first."),
    (b"\xfd7zXZ\x00", "an xz file", "Unpack it first."),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "Unpack it first."),
    (b"\xff\x06\x00\x00sNaPpY", "a snappy file", "Unpack it first."),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it first."),
    (b"\xff\xd8\xff", "a JPEG picture", _PACK),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", _PACK),
    (b"GIF8", "a GIF picture", _PACK),
    (b"%PDF-", "a PDF document", _OTHER_READER),
    (b"SQLite format 3\x00", "a SQLite database", _OTHER_READER),
    (b"\x80\x02", "a Python pickle", _PICKLE),
    (b"\x80\x03", "a Python pickle", _PICKLE),
    (b"\x80\x04\x95", "a Python pickle", _PICKLE),
    (b"\x80\x05\x95", "a Python pickle", _PICKLE),
    (b"\x1f\x8b", "a gzip of something else", "Unpack it and look at what is inside."),
)
# the block header of Riegeli, which ArrayRecord files are made of: a fixed first block
_RIEGELI = bytes.fromhex("83af70d10d884a3f00000000000000004000000000000000")


def describe_foreign(head: bytes) -> Foreign | None:
    """Name the format of a file that begins with `head`, or None if nothing known fits."""
    for signature, name, advice in _SIGNATURES:
        if head.startswith(signature):
            return Foreign(name, advice)
    if head.startswith(_RIEGELI):
        return Foreign("an ArrayRecord or Riegeli file", "Open it with the array_record package.")
    if head[257:262] == b"ustar":
        return Foreign("a tar archive", "Unpack it first.")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return Foreign("an HTML page", f"A download link answered with a page. {_FETCH}")
    if text.startswith((b"<?xml", b"<error")):
        return Foreign("an XML document", f"A server may have answered with an error. {_FETCH}")
    if text.startswith((b'{"', b"[{", b"{\n", b"[\n")):
        return Foreign("a JSON document", _FETCH)
    if head and not any(byte < 9 or 13 < byte < 32 or byte == 127 for byte in head):
        try:
            head.decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            if error.start < len(head) - 4:
                return None
        return Foreign("a text file", _FETCH)
    return None
