"""Writes the conformance corpus: small files, and cases.json, which says what a reader must find.

    python tests/conformance/make_corpus.py

Pure Python, zlib and the formats as tests/reference.py states them; recordsmith is not asked. The
files are the same at every run, but for what a newer zlib may compress better: the checked-in ones
count. For each file cases.json holds

    note        what it shows
    compression what it is recognised as
    records     how many records are intact, in order and before the defect
    sha256      of their payloads: of the length (8 bytes, little-endian) and bytes of each
    defect      what ends them, or null; position and offset of the record that it is about
    behind      only if records behind a damaged payload are intact: how many in all, and sha256
    lenient     only for a compressed stream without end mark: what a check reports in the end
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from reference import (
    FIXED32,
    VARINT,
    delimited,
    entry,
    example,
    frame,
    frames,
    header,
    masked_crc32c,
    tag,
    varint,
)

FOLDER = Path(__file__).parent

LABEL = entry(b"image/class/label", delimited(3, delimited(1, varint(3))))
PICTURE = entry(b"image/encoded", delimited(1, delimited(1, b"\xff\xd8\xff\xe0" + bytes(20))))
EXAMPLES = [
    example(PICTURE, LABEL),
    example(LABEL, entry(b"score", delimited(2, delimited(1, struct.pack("<2f", 0.5, -1.0))))),
    b"",
    example(entry(b"neg", delimited(3, tag(1, VARINT) + varint(-1) + tag(1, VARINT) + varint(2)))),
    example(entry(b"f", delimited(2, tag(1, FIXED32) + struct.pack("<f", 3.5))), LABEL, LABEL),
]
TEXTS = [b"first", b"", b"the third record", bytes(range(256))]


def digest(payloads: Iterable[bytes]) -> str:
    checksum = hashlib.sha256()
    for payload in payloads:
        checksum.update(struct.pack("<Q", len(payload)) + payload)
    return checksum.hexdigest()


def compress(data: bytes, name: str, flush: int = zlib.Z_FINISH) -> bytes:
    engine = zlib.compressobj(9, wbits={"gzip": 31, "zlib": 15}[name])
    return engine.compress(data) + engine.flush(flush)


def flip(data: bytes, at: int, mask: int = 1) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


class Corpus:
    """Collects files and what must be found in them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cases: dict[str, dict[str, Any]] = {}

    def add(
        self,
        name: str,
        data: bytes,
        payloads: list[bytes],
        note: str,
        *,
        compression: str = "none",
        defect: str | None = None,
        position: int | None = None,
        offset: int | None = None,
        behind: list[bytes] | None = None,
        lenient: str | None = None,
    ) -> None:
        assert name not in self.files
        self.files[name] = data
        self.cases[name] = {
            "note": note,
            "compression": compression,
            "records": len(payloads),
            "sha256": digest(payloads),
            "defect": defect,
            "position": position,
            "offset": offset,
        }
        if behind is not None:
            self.cases[name]["behind"] = {"records": len(behind), "sha256": digest(behind)}
        if lenient is not None:
            self.cases[name]["lenient"] = lenient


def add_good_files(corpus: Corpus) -> None:
    corpus.add("examples.tfrecord", frames(EXAMPLES), EXAMPLES, "Examples in several wire forms")
    corpus.add("texts.tfrecord", frames(TEXTS), TEXTS, "payloads that are no Examples")
    corpus.add("one-empty-record.tfrecord", frame(b""), [b""], "a record of no bytes")
    numbers = [str(number).encode() for number in range(1500)]
    corpus.add("many.tfrecord", frames(numbers), numbers, "more records than the first arrays hold")
    long = [bytes(range(256)) * 40, b"short"]
    corpus.add("long.tfrecord", frames(long), long, "a record longer than the head of a file")
    for name in ("gzip", "zlib"):
        packed = compress(frames(EXAMPLES), name)
        corpus.add(f"{name}.tfrecord", packed, EXAMPLES, "compressed whole", compression=name)
        half = len(frames(TEXTS)) // 2
        members = compress(frames(TEXTS)[:half], name) + compress(frames(TEXTS)[half:], name)
        corpus.add(
            f"{name}-members.tfrecord",
            members,
            TEXTS,
            "two members, the first ends inside a record",
            compression=name,
        )
        corpus.add(
            f"{name}-padded.tfrecord",
            compress(frames(TEXTS), name) + bytes(100),
            TEXTS,
            "zeros behind the end mark",
            compression=name,
        )
        flushed = compress(frames(TEXTS), name, zlib.Z_SYNC_FLUSH)
        corpus.add(
            f"{name}-no-end-mark.tfrecord",
            flushed,
            TEXTS,
            "flushed by a writer that was not closed: it reads, but a check says so",
            compression=name,
            lenient="truncated-compression",
        )
    corpus.add(
        "zlib-garbage-behind.tfrecord",
        compress(frames(TEXTS), "zlib") + b"garbage",
        TEXTS,
        "what follows a zlib stream is no part of it",
        compression="zlib",
    )
    corpus.add(
        "length-looks-like-gzip.tfrecord",
        header(0x088B1F) + bytes(50),
        [],
        "the first length begins with the magic bytes of gzip, and has its checksum",
        defect="truncated-payload",
        position=0,
        offset=0,
    )


def add_damaged_frames(corpus: Corpus) -> None:
    whole = frames(TEXTS)
    second, third = len(frames(TEXTS[:1])), len(frames(TEXTS[:2]))
    last = len(frames(TEXTS[:3]))
    corpus.add(
        "cut-in-header.tfrecord",
        whole[: third + 7],
        TEXTS[:2],
        "seven bytes of a header",
        defect="truncated-header",
        position=2,
        offset=third,
    )
    corpus.add(
        "cut-after-header.tfrecord",
        whole[: third + 12],
        TEXTS[:2],
        "a header and nothing more",
        defect="truncated-payload",
        position=2,
        offset=third,
    )
    corpus.add(
        "cut-in-payload.tfrecord",
        whole[: last + 100],
        TEXTS[:3],
        "half a payload",
        defect="truncated-payload",
        position=3,
        offset=last,
    )
    corpus.add(
        "cut-in-footer.tfrecord",
        whole[:-1],
        TEXTS[:3],
        "three bytes of the last checksum",
        defect="truncated-payload",
        position=3,
        offset=last,
    )
    corpus.add(
        "length-flipped.tfrecord",
        flip(whole, third + 1),
        TEXTS[:2],
        "a bit of a length",
        defect="length-crc-mismatch",
        position=2,
        offset=third,
    )
    corpus.add(
        "length-crc-flipped.tfrecord",
        flip(whole, second + 11, 128),
        TEXTS[:1],
        "a bit of a length's checksum",
        defect="length-crc-mismatch",
        position=1,
        offset=second,
    )
    corpus.add(
        "payload-flipped.tfrecord",
        flip(whole, third + 12),
        TEXTS[:2],
        "a bit of a payload",
        defect="payload-crc-mismatch",
        position=2,
        offset=third,
        behind=[*TEXTS[:2], TEXTS[3]],
    )
    corpus.add(
        "empty-payload-crc-flipped.tfrecord",
        flip(whole, second + 12),
        TEXTS[:1],
        "a bit of the checksum of no bytes",
        defect="payload-crc-mismatch",
        position=1,
        offset=second,
        behind=[TEXTS[0], *TEXTS[2:]],
    )
    corpus.add(
        "last-payload-flipped.tfrecord",
        flip(whole, len(whole) - 1),
        TEXTS[:3],
        "a bit of the last checksum",
        defect="payload-crc-mismatch",
        position=3,
        offset=last,
        behind=TEXTS[:3],
    )
    corpus.add(
        "zeros-behind.tfrecord",
        whole + bytes(64),
        TEXTS,
        "a file grown by zeros",
        defect="length-crc-mismatch",
        position=4,
        offset=len(whole),
    )
    corpus.add(
        "garbage-behind.tfrecord",
        whole + b"tail",
        TEXTS,
        "fewer bytes than a header",
        defect="truncated-header",
        position=4,
        offset=len(whole),
    )
    for exponent in (31, 32, 63, 64):
        length = 2**exponent - 1
        corpus.add(
            f"length-2-{exponent}.tfrecord",
            frame(b"good") + header(length) + bytes(40),
            [b"good"],
            "a length that lies, with its checksum",
            defect="truncated-payload",
            position=1,
            offset=20,
        )
        corpus.add(
            f"length-2-{exponent}-unchecked.tfrecord",
            frame(b"good") + flip(header(length), 8) + bytes(40),
            [b"good"],
            "a length that lies, without its checksum",
            defect="length-crc-mismatch",
            position=1,
            offset=20,
        )
    unmasked = struct.pack("<Q", 3) + masked_crc32c(b"wrong") + b"abc" + masked_crc32c(b"abc")
    corpus.add(
        "wrong-from-the-start.tfrecord",
        unmasked,
        [],
        "the first length is damaged",
        defect="length-crc-mismatch",
        position=0,
        offset=0,
    )


def add_damaged_compression(corpus: Corpus) -> None:
    for name in ("gzip", "zlib"):
        packed = compress(frames(TEXTS), name) + compress(frame(b"more"), name)
        broken = packed + compress(b"", name)[:2] + b"\xff" * 30
        corpus.add(
            f"{name}-broken-member.tfrecord",
            broken,
            [*TEXTS, b"more"],
            "the last member is no deflate stream",
            compression=name,
            defect="broken-compression",
            position=5,
        )
        lying = compress(frame(b"good") + header(2**40) + bytes(3 << 20), name)
        corpus.add(
            f"{name}-record-too-long.tfrecord",
            lying,
            [b"good"],
            "a record that could not be held in memory",
            compression=name,
            defect="decompression-limit",
            position=1,
            offset=20,
        )
        inside = compress(flip(frames(TEXTS), len(frames(TEXTS[:2])) + 12), name)
        corpus.add(
            f"{name}-payload-flipped.tfrecord",
            inside,
            TEXTS[:2],
            "damaged before it was compressed",
            compression=name,
            defect="payload-crc-mismatch",
            position=2,
            offset=len(frames(TEXTS[:2])),
            behind=[*TEXTS[:2], TEXTS[3]],
        )
        cut = compress(frames(TEXTS)[: len(frames(TEXTS[:3])) + 5], name, zlib.Z_SYNC_FLUSH)
        corpus.add(
            f"{name}-cut-in-header.tfrecord",
            cut,
            TEXTS[:3],
            "ends inside a record",
            compression=name,
            defect="truncated-header",
            position=3,
            offset=len(frames(TEXTS[:3])),
        )
    corpus.add(
        "gzip-garbage-behind.tfrecord",
        compress(frames(TEXTS), "gzip") + b"garbage",
        TEXTS,
        "what follows a gzip member must be another",
        compression="gzip",
        defect="broken-compression",
        position=4,
    )


def add_foreign_files(corpus: Corpus) -> None:
    foreign = {
        "html": b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n",
        "git-lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 123456\n",
        "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(40),
        "text": b"not records at all\n" * 3,
    }
    for name, data in foreign.items():
        corpus.add(
            f"foreign-{name}.tfrecord",
            data,
            [],
            "a file of another format",
            defect="not-a-tfrecord",
            offset=0,
        )
    corpus.add(
        "foreign-gzip.tfrecord",
        compress(b"compressed text, no records", "gzip"),
        [],
        "a gzip that holds no records",
        compression="gzip",
        defect="not-a-tfrecord",
        offset=0,
    )
    corpus.add("empty.tfrecord", b"", [], "no bytes at all", lenient="empty-file")


def main() -> None:
    corpus = Corpus()
    add_good_files(corpus)
    add_damaged_frames(corpus)
    add_damaged_compression(corpus)
    add_foreign_files(corpus)
    folder = FOLDER / "files"
    folder.mkdir(exist_ok=True)
    for stale in folder.iterdir():
        stale.unlink()
    for name, data in corpus.files.items():
        (folder / name).write_bytes(data)
    document = json.dumps(dict(sorted(corpus.cases.items())), indent=1)
    (FOLDER / "cases.json").write_text(document + "\n")
    size = sum(map(len, corpus.files.values()))
    print(f"{len(corpus.files)} files, {size} bytes")


if __name__ == "__main__":
    main()
