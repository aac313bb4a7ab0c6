"""Every reader finds in every file of the corpus what cases.json says, and nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

import recordsmith
import recordsmith.wire
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.wire import read_blocks, read_records, scan
from recordsmith.wire.compression import HEAD_BYTES, detect_compression

FOLDER = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text())

# those that the reader of a file or stream can meet
FRAMING = {
    Defect.TRUNCATED_HEADER,
    Defect.TRUNCATED_PAYLOAD,
    Defect.LENGTH_CRC,
    Defect.PAYLOAD_CRC,
    Defect.NOT_A_TFRECORD,
    Defect.EMPTY_FILE,
}
COMPRESSION = {Defect.BROKEN_COMPRESSION, Defect.TRUNCATED_COMPRESSION, Defect.DECOMPRESSION_LIMIT}

each_case = pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)


class ByteByByte(io.RawIOBase):
    """A stream that gives one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._rest = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        return self._rest.readinto(memoryview(target)[:1])


def path_of(name: str) -> Path:
    return FOLDER / "files" / name


def digest(payloads: Iterable[bytes]) -> dict[str, Any]:
    checksum, count = hashlib.sha256(), 0
    for payload in payloads:
        checksum.update(len(payload).to_bytes(8, "little") + payload)
        count += 1
    return {"records": count, "sha256": checksum.hexdigest()}


def expected(case: dict[str, Any]) -> dict[str, Any]:
    return {"records": case["records"], "sha256": case["sha256"]}


def check_defect(case: dict[str, Any], error: CorruptDataError | None) -> None:
    found = None if error is None else str(error.defect)
    assert found == case["defect"]
    if error is not None:
        assert (error.position, error.offset) == (case["position"], case["offset"])


def test_the_corpus_is_there() -> None:
    """No case without its file, no file without its case, and each defect at least once."""
    assert len(CASES) > 40
    assert set(CASES) == {path.name for path in (FOLDER / "files").iterdir()}
    told = {case["defect"] for case in CASES.values()}
    told |= {case.get("lenient") for case in CASES.values()}
    assert {defect.value for defect in FRAMING | COMPRESSION} <= told
    assert {case["compression"] for case in CASES.values()} == {"none", "gzip", "zlib"}
    size = sum(path.stat().st_size for path in (FOLDER / "files").iterdir())
    assert size < 100_000


def test_every_defect_of_the_readers_is_known_here() -> None:
    """A defect that the wire layer learns to tell needs a file."""
    sources = Path(recordsmith.wire.__file__).parent.glob("*.py")
    named = {
        name for path in sources for name in re.findall(r"Defect\.([A-Z_]+)", path.read_text())
    }
    assert len(named) > 5
    assert {Defect[name] for name in named} <= FRAMING | COMPRESSION


@each_case
def test_compression_is_recognised(name: str, case: dict[str, Any]) -> None:
    head = path_of(name).read_bytes()[:HEAD_BYTES]
    assert detect_compression(head) == case["compression"]


@each_case
@pytest.mark.parametrize("kind", [io.BytesIO, ByteByByte])
def test_read_as_a_stream(kind: Any, name: str, case: dict[str, Any]) -> None:
    payloads: list[bytes] = []
    error = None
    try:
        stream = cast(BinaryIO, kind(path_of(name).read_bytes()))
        payloads.extend(read_records(stream))  # keeps what came before an exception
    except CorruptDataError as caught:
        error = caught
    assert digest(payloads) == expected(case)
    check_defect(case, error)


@each_case
@pytest.mark.parametrize("kind", [io.BytesIO, ByteByByte])
def test_read_past_damaged_payloads(kind: Any, name: str, case: dict[str, Any]) -> None:
    defects: list[CorruptDataError] = []
    stream = cast(BinaryIO, kind(path_of(name).read_bytes()))
    blocks = read_blocks(stream, on_defect=defects.append)
    payloads = [bytes(payload) for block in blocks for payload in block.payloads()]
    assert digest(payloads) == case.get("behind", expected(case))
    if case["defect"] is not None:
        check_defect(case, defects[0])
    elif case.get("lenient") == "truncated-compression":
        assert [str(error.defect) for error in defects] == ["truncated-compression"]
    else:
        assert defects == []


@each_case
def test_scanned_in_memory(name: str, case: dict[str, Any]) -> None:
    if case["compression"] != "none":
        return
    data = path_of(name).read_bytes()
    frames = scan(data)
    spans = zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)
    assert digest(data[start : start + length] for start, length in spans) == expected(case)
    found = None if frames.defect is None else str(frames.defect)
    if case["defect"] == "not-a-tfrecord":  # bytes in memory have no beginning that would tell
        assert found in ("length-crc-mismatch", "truncated-header")
    else:
        assert found == case["defect"]
    if case["offset"] is not None:
        assert frames.stop == case["offset"]


@each_case
def test_opened_as_a_dataset(name: str, case: dict[str, Any]) -> None:
    """The same records, and the defect with the path of the file."""
    payloads, error = [], None
    try:
        dataset = recordsmith.open(path_of(name))
        (shard,) = dataset.shards
        for block in shard.blocks():
            payloads += [bytes(payload) for payload in block.payloads()]
    except CorruptDataError as caught:
        error = caught
        assert error.path == str(path_of(name))
        assert str(error).startswith(str(path_of(name)))
    assert digest(payloads) == expected(case)
    check_defect(case, error)


@each_case
def test_opened_for_random_access(name: str, case: dict[str, Any]) -> None:
    """Every record by its position, where the frames of the file hold together."""
    shard = recordsmith.open(path_of(name)).shards[0]
    damaged = case["defect"] not in (None, "payload-crc-mismatch")
    if damaged or (case["compression"] != "none" and case["defect"] is not None):
        with pytest.raises(CorruptDataError) as caught:
            len(shard.index.offsets)
        check_defect(case, caught.value)
        return
    count = case["records"] if case["defect"] is None else case["behind"]["records"] + 1
    assert shard.record_count == count
    if case["compression"] == "none" and count:
        payloads = []
        for number in range(count):
            if case["defect"] is not None and number == case["position"]:
                with pytest.raises(CorruptDataError) as caught:
                    shard.read(number)
                check_defect(case, caught.value)
            else:
                payloads.append(bytes(shard.read(number)))
        assert digest(payloads) == case.get("behind", expected(case))


@each_case
def test_verified(name: str, case: dict[str, Any]) -> None:
    report = recordsmith.verify(path_of(name))
    assert report.record_count == case.get("behind", case)["records"]
    told = [case["defect"]] if case["defect"] else []
    told += [case["lenient"]] if case.get("lenient") else []
    assert [str(error.defect) for error in report.defects][: len(told)] == told
    assert report.is_good == (not told)
    assert all(error.path == str(path_of(name)) for error in report.defects)
