"""Every reader finds in every file of the corpus exactly what cases.json lists.

A command or a job that is new: its column in make_corpus.py, and its line in RUNNERS here.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, cast

import pytest
from typer.testing import CliRunner

import recordsmith
import recordsmith.format.wire
from recordsmith.cli import app
from recordsmith.format.wire import read_blocks, read_records, scan
from recordsmith.format.wire.compression import HEAD_BYTES, detect_compression
from recordsmith.support.errors import DataError, Defect

FOLDER = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text())
DATASETS: dict[str, dict[str, Any]] = json.loads((FOLDER / "datasets.json").read_text())

# the arguments of each command; IN is the file, OUT a folder that does not exist
RUNNERS = {
    "inspect": ["inspect", "IN"],
    "verify": ["verify", "IN"],
    "head": ["head", "IN"],
    "index": ["index", "IN"],
    "export": ["export", "IN", "OUT", "--format", "csv"],
}
EXIT_CODES = {None: 0, "refused": 2}  # of all others 1

WITHOUT_A_CASE = {
    Defect.COLUMNS: "is of a file next to a shard that other readers do not use",
    Defect.UNREADABLE_SHARD: "no file is unreadable by what it holds",
    Defect.TRANSIENT_READ: "is what a disk or a page cache does, not a file",
    Defect.CHANGING_SHARD: "is what happens while a file is read",
    Defect.UNEXPECTED_FEATURE: "is against a schema file, which others write",
}

# those that the reader of a file or stream can meet
FRAMING = {
    Defect.TRUNCATED_HEADER,
    Defect.TRUNCATED_PAYLOAD,
    Defect.LENGTH_CRC,
    Defect.PAYLOAD_CRC,
    Defect.NOT_A_TFRECORD,
}
COMPRESSION = {Defect.BROKEN_COMPRESSION, Defect.TRUNCATED_COMPRESSION, Defect.DECOMPRESSION_LIMIT}

each_dataset = pytest.mark.parametrize(("name", "case"), DATASETS.items(), ids=DATASETS)
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


def check_defect(case: dict[str, Any], error: DataError | None) -> None:
    found = None if error is None else str(error.defect)
    assert found == case["defect"]
    if error is not None:
        assert (error.record, error.offset) == (case["position"], case["offset"])


def test_the_corpus_is_there() -> None:
    """Each case has a file and each file a case; the corpus stays small."""
    assert len(CASES) > 70
    assert len(DATASETS) > 20
    assert set(CASES) == {path.name for path in (FOLDER / "files").iterdir()}
    assert {case["compression"] for case in CASES.values()} == {"none", "gzip", "zlib"}
    assert {case["payload"] for case in CASES.values()} == {"Example", "other", "mixed"}
    corpus = [*FOLDER.glob("files/*"), *FOLDER.glob("*.json")]
    size = sum(path.stat().st_size for path in corpus)
    assert size < 200_000


def test_every_defect_has_a_case() -> None:
    told = {case["defect"] for case in CASES.values()}
    told |= {case.get("lenient") for case in CASES.values()}
    told |= {case.get("notice") for case in CASES.values()}
    told |= {case["decoded"]["defect"] for case in CASES.values()}
    told |= {case["asked"]["defect"] for case in CASES.values() if "asked" in case}
    told |= {case["deep"]["defect"] for case in CASES.values() if "deep" in case}
    told |= {case["verified"] for case in DATASETS.values()}
    without = {defect for defect in Defect if defect.value not in told}
    assert without == set(WITHOUT_A_CASE), "make a case, or say why there can be none"


def test_every_defect_of_the_readers_has_a_file() -> None:
    """Each defect that the wire layer reports needs a file."""
    sources = Path(recordsmith.format.wire.__file__).parent.glob("*.py")
    named = {
        name for path in sources for name in re.findall(r"Defect\.([A-Z_]+)", path.read_text())
    }
    assert len(named) > 5
    assert {Defect[name] for name in named} <= FRAMING | COMPRESSION


@each_case
def test_compression_is_detected(name: str, case: dict[str, Any]) -> None:
    head = path_of(name).read_bytes()[:HEAD_BYTES]
    assert detect_compression(head) == case["compression"]


@each_case
@pytest.mark.parametrize("kind", [io.BytesIO, ByteByByte])
def test_read_as_a_stream(kind: Any, name: str, case: dict[str, Any]) -> None:
    payloads: list[bytes] = []
    error = None
    try:
        stream = cast(BinaryIO, kind(path_of(name).read_bytes()))
        payloads.extend(read_records(stream))  # keeps the records before an exception
    except DataError as caught:
        error = caught
    assert digest(payloads) == expected(case)
    check_defect(case, error)


@each_case
@pytest.mark.parametrize("kind", [io.BytesIO, ByteByByte])
def test_read_past_damaged_payloads(kind: Any, name: str, case: dict[str, Any]) -> None:
    defects: list[DataError] = []
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
    if case["defect"] == "not-a-tfrecord":  # a scan in memory does not detect other formats
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
    except DataError as caught:
        error = caught
        assert error.path == str(path_of(name))
        assert str(error).startswith(str(path_of(name)))
    assert digest(payloads) == expected(case)
    check_defect(case, error)


@each_case
def test_opened_for_random_access(name: str, case: dict[str, Any]) -> None:
    """Every record by its position, if the frames of the file are intact."""
    shard = recordsmith.open(path_of(name)).shards[0]
    damaged = case["defect"] not in (None, "payload-crc-mismatch")
    if damaged or (case["compression"] != "none" and case["defect"] is not None):
        with pytest.raises(DataError) as caught:
            len(shard.index.offsets)
        check_defect(case, caught.value)
        return
    count = case["records"] if case["defect"] is None else case["behind"]["records"] + 1
    assert shard.record_count == count
    if case["compression"] == "none" and count:
        payloads = []
        for number in range(count):
            if case["defect"] is not None and number == case["position"]:
                with pytest.raises(DataError) as caught:
                    shard.read(number)
                check_defect(case, caught.value)
            else:
                payloads.append(bytes(shard.read(number)))
        assert digest(payloads) == case.get("behind", expected(case))


@each_case
def test_verified(name: str, case: dict[str, Any]) -> None:
    report = recordsmith.verify(path_of(name))
    assert report.record_count == case.get("behind", case)["records"]
    reported = [case["defect"]] if case["defect"] else []
    reported += [case["lenient"]] if case.get("lenient") else []
    assert [str(error.defect) for error in report.defects][: len(reported)] == reported
    assert report.is_good == (not reported)
    notices = [case["notice"]] if "notice" in case else []
    assert [str(error.defect) for error in report.notices] == notices
    assert all(error.path == str(path_of(name)) for error in report.defects)


@each_case
def test_commands(tmp_path: Path, name: str, case: dict[str, Any]) -> None:
    """Commands return the exit code and print the name of the defect."""
    path = tmp_path / name
    shutil.copy(path_of(name), path)
    for command, words in RUNNERS.items():
        said = case["commands"][command]
        places = {"IN": str(path), "OUT": str(tmp_path / "out")}
        result = CliRunner().invoke(app, [places.get(word, word) for word in words])
        assert result.exit_code == EXIT_CODES.get(said, 1), (command, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        if said in set(map(str, Defect)):
            assert f": {said}: " in result.output
            assert str(path) in result.output
        assert (tmp_path / "out").exists() == (command == "export" and said is None)


def test_every_command_of_the_corpus_is_run() -> None:
    assert all(case["commands"].keys() == RUNNERS.keys() for case in CASES.values())


@each_case
def test_decoded(name: str, case: dict[str, Any]) -> None:
    """Payloads one by one, in intact frames."""
    if case["defect"] is not None:
        return
    dataset = recordsmith.open(path_of(name))
    assert dataset.schema.payload == (case["payload"] if case["records"] else "none")
    examples, error = [], None
    try:
        examples.extend(dataset)
    except DataError as caught:
        error = caught
    found = (None, None) if error is None else (str(error.defect), error.record)
    assert found == (case["decoded"]["defect"], case["decoded"]["position"])
    assert len(examples) == (case["records"] if error is None else error.record)


FEATURES = {
    "Scalar": recordsmith.Scalar,
    "Tensor": lambda key: recordsmith.Tensor(key, (2,)),
    "Text": recordsmith.Text,
    "Image": lambda key: recordsmith.Image(key, size=(8, 8)),
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "asked" in case])
def test_asked_for_one_feature(name: str) -> None:
    """A loader reports the record, and skips it on request."""
    asked = CASES[name]["asked"]
    features = {"asked": FEATURES[asked["as"]](asked["key"])}
    dataset = recordsmith.open(path_of(name))
    loader = recordsmith.Loader(dataset, features, batch_size=1, threads=0, skip_errors=1)
    assert sum(len(batch["asked"]) for batch in loader) == CASES[name]["records"] - 1
    (error,) = loader.skipped
    assert (str(error.defect), error.record) == (asked["defect"], asked["position"])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "deep" in case])
def test_verified_deep(name: str) -> None:
    deep = CASES[name]["deep"]
    report = recordsmith.verify(path_of(name), deep=True)
    found = [(str(error.defect), error.record) for error in report.defects]
    assert found == [(deep["defect"], deep["position"])]
    assert recordsmith.verify(path_of(name)).is_good


@each_dataset
def test_datasets(tmp_path: Path, name: str, case: dict[str, Any]) -> None:
    for file, data in case["files"].items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(base64.b64decode(data))
    report = recordsmith.verify(tmp_path)
    expected = [] if case["verified"] is None else [case["verified"]]
    assert [str(error.defect) for error in report.defects] == expected
    for read in (recordsmith.open, recordsmith.inspect):
        error = None
        try:
            read(tmp_path)
        except DataError as caught:
            error = str(caught.defect)
        assert error == case["opened"]


def test_the_readers_test_in_the_readme_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as stream:
            try:
                yield from read_records(stream)
            except DataError as error:
                raise ValueError from error

    reader = ModuleType("my_reader")
    vars(reader)["read_records"] = read
    monkeypatch.setitem(sys.modules, "my_reader", reader)
    monkeypatch.chdir(FOLDER)
    text = (FOLDER / "README.md").read_text("utf-8")
    exec(text.partition("```python\n")[2].partition("```")[0], {})
    assert f"{len(CASES)} small files" in text
    assert f"{len(CASES)} files" in (FOLDER.parent.parent / "docs/reference/format.md").read_text()
