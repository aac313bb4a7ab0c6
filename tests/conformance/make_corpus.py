"""Writes the conformance corpus: small hostile files, and in JSON what each reader must find.

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
    notice      only for a file of 0 bytes: what a check reports of a file that is good
    payload     what the payloads are all together, as a schema has it
    decoded     what comes of its payloads, read as Examples or SequenceExamples: defect or null,
                and position of the first record that has it
    asked       only if one feature is asked for: its key, as what, and the defect and position
    commands    what each command says: null for nothing, the name of a defect, "refused" for what
                it was never made for, "nothing" where there is nothing to do

To add a command, or another job that reads files: a function in COLUMNS, and its line in RUNNERS of
test_corpus.py. datasets.json holds whole folders, as they are small: of each the files, what
opening says, and what a check says.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from reference import (
    FIXED32,
    VARINT,
    crc32c,
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
IMAGE = entry(b"image/encoded", delimited(1, delimited(1, b"\xff\xd8\xff\xe0" + bytes(20))))
EXAMPLES = [
    example(IMAGE, LABEL),
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
    """Collects files and the expected results."""

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
        notice: str | None = None,
        payload: str | None = None,
        decoded: tuple[str, int] | None = None,
        asked: tuple[str, str, str, int] | None = None,
        deep: tuple[str, int] | None = None,
        has_columns: bool = True,
    ) -> None:
        assert name not in self.files
        if payload is None:
            payload = "Example" if all(map(EXAMPLES.__contains__, payloads)) else "other"
        if payload == "other":
            decoded = ("not-an-example", 0)
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
        if notice is not None:
            self.cases[name]["notice"] = notice
        self.cases[name]["payload"] = payload
        self.cases[name]["decoded"] = dict(
            zip(("defect", "position"), decoded or (None, None), strict=True)
        )
        if asked is not None:
            self.cases[name]["asked"] = dict(
                zip(("key", "as", "defect", "position"), asked, strict=True)
            )
        if deep is not None:
            self.cases[name]["deep"] = dict(zip(("defect", "position"), deep, strict=True))
        self.cases[name]["commands"] = {
            command: say(self.cases[name]) for command, say in COLUMNS.items()
        }
        if not has_columns:
            self.cases[name]["commands"]["export"] = "refused"


# ---- what commands say -------------------------------------------------------------------------

Answer = str | None
_SHOWN = 5  # records that `head` shows


def _inspect(case: dict[str, Any]) -> Answer:
    return case["defect"]  # type: ignore[no-any-return]


def _verify(case: dict[str, Any]) -> Answer:
    return case["defect"] or case.get("lenient")


def _head(case: dict[str, Any]) -> Answer:
    """Any payload is shown; defects are found as far as the command reads."""
    return case["defect"] if case["records"] < _SHOWN else None


def _index(case: dict[str, Any]) -> Answer:
    """Reads only the headers of an uncompressed file."""
    if case["defect"] == "payload-crc-mismatch" and case["compression"] == "none":
        return None
    return _inspect(case)


def _export(case: dict[str, Any]) -> Answer:
    """Examples only, and all of them."""
    if case["defect"] is not None:
        return str(case["defect"])
    if not case["records"]:
        return "nothing"
    return None if case["payload"] == "Example" else "refused"


COLUMNS: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "inspect": _inspect,
    "verify": _verify,
    "head": _head,
    "index": _index,
    "export": _export,
}


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
    corpus.add("empty.tfrecord", b"", [], "a valid file without records", notice="empty-file")
    for name in ("gzip", "zlib"):
        corpus.add(
            f"{name}-empty.tfrecord",
            compress(b"", name),
            [],
            "a stream of 0 bytes, whole",
            compression=name,
        )


# ---- payloads ----------------------------------------------------------------------------------

GOOD = example(IMAGE, LABEL)
KEY = delimited(1, b"k")


def feature(kind: int, content: bytes) -> bytes:
    """An Example with one feature, k, whose list message holds the content."""
    return example(delimited(1, KEY + delimited(2, delimited(kind, content))))


def add_bad_payloads(corpus: Corpus) -> None:
    """Add malformed payloads with valid checksums."""
    broken = {
        "length-past-the-end": b"\x0a\x7f" + LABEL,
        "length-of-2-63": b"\x0a" + varint(2**63),
        "length-of-eleven-bytes": b"\x0a" + b"\x80" * 10 + b"\x01",
        "inner-length-past-the-end": example(b"\x0a\x7f\x0a\x01k"),
        "two-keys-in-an-entry": example(delimited(1, KEY + KEY + delimited(2, b""))),
        "floats-of-three-bytes": feature(2, delimited(1, bytes(3))),
        "a-number-cut-off": feature(3, delimited(1, b"\x80")),
        "a-number-of-eleven-bytes": feature(3, delimited(1, b"\x80" * 10 + b"\x01")),
        "a-group-without-its-end": example(LABEL) + b"\x7b",
        "groups-101-deep": example(LABEL) + b"\x7b" * 101 + b"\x7c" * 101,
        "field-number-0": example(LABEL) + b"\x00\x00",
    }
    for name, payload in broken.items():
        payloads = [GOOD, payload, GOOD]
        corpus.add(
            f"example-{name}.tfrecord",
            frames(payloads),
            payloads,
            "a payload that does not hold together, with its checksum",
            payload="mixed",
            decoded=(
                # a length that no memory holds is not the begin of an Example
                "not-an-example" if name.startswith("length-of") else "malformed-example",
                1,
            ),
        )
    fine = {
        "groups-100-deep": example(LABEL) + b"\x7b" * 100 + b"\x7c" * 100,
        "key-twice": example(LABEL, LABEL),
        "key-that-is-no-text": example(LABEL, entry(b"\xff\x00\x1b[2J", delimited(3, b""))),
        "in-two-pieces": example(LABEL) + example(IMAGE),
        "no-kind": example(LABEL, entry(b"k", b"")),
        "key-alone": example(delimited(1, KEY)),
        "unknown-field-alone": example() + delimited(15, b""),
    }
    for name, payload in fine.items():
        payloads = [GOOD, payload]
        corpus.add(
            f"example-{name}.tfrecord",
            frames(payloads),
            payloads,
            "odd, but good",
            payload="Example",
            has_columns=name != "key-that-is-no-text",
        )
    steps = delimited(2, entry(b"steps", delimited(1, delimited(3, delimited(1, b"\x05")))))
    other = [GOOD, tag(1, VARINT) + varint(1), GOOD]
    corpus.add(
        "other-among-examples.tfrecord",
        frames(other),
        other,
        "one payload is another message",
        payload="mixed",
        decoded=("not-an-example", 1),
        asked=("image/class/label", "Scalar", "not-an-example", 1),
    )
    corpus.add(
        "sequence-among-examples.tfrecord",
        frames([GOOD, steps]),
        [GOOD, steps],
        "a SequenceExample where Examples are asked for",
        payload="mixed",
        asked=("image/class/label", "Scalar", "missing-feature", 1),
    )


def png(height: int, width: int) -> bytes:
    """A grey image of one row of pixels, with any size in its header."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header_chunk = chunk(b"IHDR", struct.pack(">II5B", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(9)))
    return b"\x89PNG\r\n\x1a\n" + header_chunk + pixels + chunk(b"IEND", b"")


def imaged(data: bytes) -> bytes:
    return example(entry(b"image/encoded", delimited(1, delimited(1, data))), LABEL)


def add_bad_features(corpus: Corpus) -> None:
    """Add valid Examples with other features than requested."""
    label, score = b"image/class/label", b"score"
    floats = delimited(2, delimited(1, struct.pack("<2f", 1, 2)))
    cases = {
        "feature-missing": (LABEL, b"", "image/class/label", "Scalar", "missing-feature"),
        "feature-of-another-kind": (
            LABEL,
            entry(label, floats),
            "image/class/label",
            "Scalar",
            "feature-kind-mismatch",
        ),
        "feature-of-another-length": (
            entry(score, floats),
            entry(score, delimited(2, delimited(1, bytes(4)))),
            "score",
            "Tensor",
            "feature-shape-mismatch",
        ),
        "text-that-is-no-text": (
            entry(b"name", delimited(1, delimited(1, b"text"))),
            entry(b"name", delimited(1, delimited(1, b"\xff\xfe"))),
            "name",
            "Text",
            "feature-value-mismatch",
        ),
    }
    for name, (good, bad, key, kind, defect) in cases.items():
        payloads = [example(good), example(good), example(bad, entry(b"k", b""))]
        corpus.add(
            f"{name}.tfrecord",
            frames(payloads),
            payloads,
            "an Example that is not as those before it",
            payload="Example",
            asked=(key, kind, defect, 2),
            has_columns=defect != "feature-kind-mismatch",
        )
    whole = png(1, 8)
    images = {
        "image-cut-off": whole[:-20],
        "image-with-rows-missing": png(100, 8),
        "image-bomb": png(2**31 - 1, 2**31 - 1),
        "image-of-no-pixels": png(0, 8),
        "image-that-is-text": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "image-that-is-a-program": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n",
        "image-of-nothing": b"",
    }
    for name, data in images.items():
        payloads = [imaged(whole), imaged(data)]
        corpus.add(
            f"{name}.tfrecord",
            frames(payloads),
            payloads,
            "the second image cannot be decoded",
            payload="Example",
            asked=("image/encoded", "Image", "unreadable-image", 1),
            deep=("unreadable-image", 1),
        )
    at = whole.index(b"IDAT") - 4
    comment = struct.pack(">I", 3) + b"tEXta\0b" + bytes(4)  # with a wrong checksum
    payloads = [imaged(whole), imaged(whole[:at] + comment + whole[at:])]
    corpus.add(
        "image-with-a-damaged-comment.tfrecord",
        frames(payloads),
        payloads,
        "the second image is damaged where it does not matter: decoders only warn",
        payload="Example",
        deep=("damaged-image", 1),
    )
    height = entry(b"image/height", delimited(3, delimited(1, varint(2))))
    wrong = entry(b"image/format", delimited(1, delimited(1, b"jpeg")))
    for name, declared, defect in (
        ("image-of-another-size", height, "image-size-mismatch"),
        ("image-of-another-format", wrong, "image-format-mismatch"),
    ):
        encoded = entry(b"image/encoded", delimited(1, delimited(1, whole)))
        payloads = [imaged(whole), example(encoded, LABEL, declared)]
        corpus.add(
            f"{name}.tfrecord",
            frames(payloads),
            payloads,
            "the second image is good, and not what its record says",
            payload="Example",
            deep=(defect, 1),
        )


def add_bad_episodes(corpus: Corpus) -> None:
    """Add episodes whose steps are wrong: Examples with the values of all steps end to end."""

    def episode(*is_first: int) -> bytes:
        flags = b"".join(delimited(1, varint(flag)) for flag in is_first)
        rewards = delimited(1, struct.pack(f"<{len(is_first)}f", *range(len(is_first))))
        return example(
            entry(b"steps/is_first", delimited(3, flags)),
            entry(b"steps/reward", delimited(2, rewards)),
        )

    for name, bad, defect in (
        ("episode-of-no-steps", episode(), "empty-episode"),
        ("episode-with-two-first-steps", episode(1, 0, 1), "episode-flags-mismatch"),
    ):
        payloads = [episode(1, 0), bad, episode(1)]
        corpus.add(
            f"{name}.tfrecord",
            frames(payloads),
            payloads,
            "the second episode is wrong",
            payload="Example",
            deep=(defect, 1),
        )


# ---- datasets ----------------------------------------------------------------------------------


class Folder:
    """A packed dataset of two shards and their manifest, to be damaged."""

    def __init__(self) -> None:
        self.files = {
            f"train-0000{number}-of-00002.tfrecord": frames(EXAMPLES[number : 2 + 2 * number])
            for number in range(2)
        }
        self.first, self.second = self.files
        self.files["labels.txt"] = b"0:daisy\n1:rose\n"
        kind = {"kind": "int64", "shape": [], "min_length": 1, "max_length": 1, "present": 5}
        self.schema = {"payload": "Example", "records": 5, "features": {"image/class/label": kind}}
        self.document: dict[str, Any] = {
            "format": "recordsmith-dataset",
            "version": 2,
            "records": 5,
            "compression": "none",
            "splits": {
                "train": [
                    {
                        "file": name,
                        "records": 2 + number,
                        "size_bytes": len(self.files[name]),
                        "crc32c": f"{crc32c(self.files[name]):08x}",
                    }
                    for number, name in enumerate((self.first, self.second))
                ]
            },
            "class_names": ["daisy", "rose"],
            "schema": self.schema,
            "provenance": {},
        }

    @property
    def shards(self) -> list[dict[str, Any]]:
        shards: list[dict[str, Any]] = self.document["splits"]["train"]
        return shards

    def written(self, opened: str | None, verified: str | None, note: str) -> dict[str, Any]:
        if self.document:
            self.files["dataset.json"] = json.dumps(self.document).encode()
        files = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return {"note": note, "opened": opened, "verified": verified, "files": files}


def make_datasets() -> dict[str, Any]:
    made: dict[str, Any] = {}

    def add(
        name: str, defect: str | None, note: str, spoil: Callable[[Folder], object], **said: Any
    ) -> None:
        folder = Folder()
        spoil(folder)
        made[name] = folder.written(said.get("opened", defect), defect, note)

    def other_record(folder: Folder) -> None:
        folder.files[folder.first] = frames([EXAMPLES[0][::-1], EXAMPLES[1]])

    add("good", None, "as it should be", lambda _: None)
    add(
        "not-finished",
        "unfinished-dataset",
        "a note that naming has begun, and no manifest",
        lambda f: (
            f.files.update({".recordsmith/begun.json": b'{"fingerprint": "x"'}),
            f.document.clear(),
        ),
    )
    add("shard-gone", "missing-shard", "a shard is not there", lambda f: f.files.pop(f.second))
    add(
        "shard-gone-by-number",
        "missing-shard",
        "the same, told by the names alone",
        lambda f: (f.files.pop(f.first), f.document.clear()),
    )
    add(
        "shard-cut-between-records",
        "shard-size-mismatch",
        "the last record is gone, and nothing shows it but the manifest",
        lambda f: f.files.update({f.second: frames(EXAMPLES[1:3])}),
    )
    add(
        "shard-twice",
        "swapped-shard",
        "the second shard is a copy of the first",
        lambda f: f.files.update({f.second: f.files[f.first]}),
        opened="shard-size-mismatch",
    )
    add(
        "shard-too-many",
        "extra-shard",
        "a shard that the manifest does not list",
        lambda f: f.files.update({"train-00002-of-00003.tfrecord": f.files[f.first]}),
        opened=None,
    )
    add(
        "shard-of-another-dataset",
        "shard-checksum-mismatch",
        "good records of the same size, other ones",
        other_record,
        opened=None,
    )
    add(
        "count-that-lies",
        "record-count-mismatch",
        "one more than there are",
        lambda f: f.shards[0].update(records=3),
        opened=None,
    )
    add(
        "count-that-cannot-be",
        "record-count-mismatch",
        "more than the file could hold",
        lambda f: f.shards[0].update(records=2**40),
    )
    add(
        "labels-of-others",
        "labels-mismatch",
        "labels.txt names other classes",
        lambda f: f.files.update({"labels.txt": b"0:rose\n1:daisy\n"}),
        opened=None,
    )
    manifests: dict[str, Callable[[Folder], object]] = {
        "name-that-leads-out": lambda f: f.shards[0].update(file="../x.tfrecord"),
        "name-that-is-absolute": lambda f: f.shards[0].update(file="/etc/passwd"),
        "name-of-the-manifest": lambda f: f.shards[0].update(file="dataset.json"),
        "shard-listed-twice": lambda f: f.shards.append(f.shards[0]),
        "count-below-zero": lambda f: f.shards[0].update(records=-1),
        "count-of-2-63": lambda f: f.shards[0].update(records=2**63),
        "version-to-come": lambda f: f.document.update(version=3),
        "version-before": lambda f: f.document.update(version=1),
        "format-of-others": lambda f: f.document.update(format="dataset"),
        "schema-missing": lambda f: f.document.pop("schema"),
        "shape-below-zero": lambda f: f.schema["features"]["image/class/label"].update(shape=[-1]),  # type: ignore[index]
        "compression-unknown": lambda f: f.document.update(compression="lz4"),
    }
    for name, spoil in manifests.items():
        add(f"manifest-{name}", "broken-manifest", "a manifest that cannot be", spoil)
    for name, data in (("cut", b'{"format": "recordsmith-'), ("deep", b"[" * 3000), ("empty", b"")):
        add(
            f"manifest-{name}",
            "broken-manifest",
            "no JSON",
            lambda f, data=data: (f.files.update({"dataset.json": data}), f.document.clear()),
        )
    return made


def main() -> None:
    corpus = Corpus()
    add_good_files(corpus)
    add_damaged_frames(corpus)
    add_damaged_compression(corpus)
    add_foreign_files(corpus)
    add_bad_payloads(corpus)
    add_bad_features(corpus)
    add_bad_episodes(corpus)
    folder = FOLDER / "files"
    folder.mkdir(exist_ok=True)
    for stale in folder.iterdir():
        stale.unlink()
    for name, data in corpus.files.items():
        (folder / name).write_bytes(data)
    document = json.dumps(dict(sorted(corpus.cases.items())), indent=1)
    (FOLDER / "cases.json").write_text(document + "\n")
    datasets = make_datasets()
    (FOLDER / "datasets.json").write_text(json.dumps(datasets, indent=1) + "\n")
    size = sum(map(len, corpus.files.values()))
    print(f"{len(corpus.files)} files, {size} bytes; {len(datasets)} datasets")


if __name__ == "__main__":
    main()
