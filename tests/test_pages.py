"""The pages of formats, limits and security are correct: vectors, layouts, limits, names."""

from __future__ import annotations

import ast
import importlib
import io
import json
import re
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import BegunNote, ShardEntry
from recordsmith.dataset.shard_index import index_locations, load_index
from recordsmith.format.wire import crc32c, encode_record
from recordsmith.format.wire.kernel import masked_crc32c
from recordsmith.stores import EXPORT_NOTE, as_folder
from recordsmith.writing import ShardResult
from recordsmith.writing.building.shards import Occurrences, done_location, save_result

REPOSITORY = Path(__file__).parent.parent
REFERENCE = REPOSITORY / "docs" / "reference"
FORMAT = "".join((REFERENCE / f"{name}.md").read_text("utf-8") for name in ("format", "dataset"))
STABILITY = (REPOSITORY / "docs" / "stability.md").read_text("utf-8")
SECURITY = (REPOSITORY / "docs" / "security.md").read_text("utf-8")
PACKAGE = Path(rs.__file__).parent

LIMIT_NAME = re.compile(r"_?(MAX|MOST|LARGEST|LONGEST)_|\w+_(LIMIT|DEPTH)$")
LAYERS = ("stores", "format", "jpeg", "image", "dataset", "writing/building", "checking")


def index_paths(shard: Path) -> list[Path]:
    """The possible paths of an index."""
    return [*map(Path, index_locations(shard))]


def tables(page: str) -> list[list[list[str]]]:
    """The tables of a page, each a list of rows of cells; without header and separator rows."""
    found, rows = [], []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            found.append(rows[2:])
            rows = []
    return found


def table_with(page: str, head: str) -> list[list[str]]:
    """The table with this header row."""
    _, _, rest = page.partition(head)
    assert rest, head
    return tables(head + rest)[0]


def get_bytes(cell: str) -> bytes:
    if cell == "(none)":
        return b""
    times, digits = re.fullmatch(r"(?:(\d+) times )?`([0-9a-f]+)`", cell).groups()  # type: ignore[union-attr]
    return bytes.fromhex(digits) * int(times or 1)


def test_checksums_match_the_page(reference: Any) -> None:
    rows = table_with(FORMAT, "| bytes, hexadecimal | CRC-32C | masked |")
    assert len(rows) == 5
    for data, plain, masked in rows:
        expected = int(plain.strip("`"), 16), int(masked.strip("`"), 16)
        assert (crc32c(get_bytes(data)), masked_crc32c(get_bytes(data))) == expected
        stored = int.from_bytes(reference.masked_crc32c(get_bytes(data)), "little")
        assert (reference.crc32c(get_bytes(data)), stored) == expected
        rotated = (expected[0] >> 15 | expected[0] << 17) % 2**32
        assert (rotated + 0xA282EAD8) % 2**32 == expected[1]  # the formula of the page
    assert "masked = ((crc >> 15) | (crc << 17)) + 0xA282EAD8" in FORMAT


def test_frames_match_the_page(reference: Any) -> None:
    rows = table_with(FORMAT, "| payload, hexadecimal | frame, hexadecimal |")
    assert len(rows) == 2
    for payload, frame in rows:
        assert encode_record(get_bytes(payload)) == get_bytes(frame)
        assert reference.frame(get_bytes(payload)) == get_bytes(frame)


def test_the_steps_to_a_frame_match_the_page() -> None:
    rows = table_with(
        FORMAT, "| step | of the length, `0300000000000000` | of the payload, `616263` |"
    )
    for data, column in (((3).to_bytes(8, "little"), 1), (b"abc", 2)):
        crc, rotated, added, stored = (get_bytes(row[column]) for row in rows)
        assert int.from_bytes(crc, "big") == crc32c(data)
        assert int.from_bytes(rotated, "big") == (crc32c(data) >> 15 | crc32c(data) << 17) % 2**32
        assert int.from_bytes(added, "big") == masked_crc32c(data)
        assert stored == added[::-1]


def test_the_reader_of_the_page_reads_what_recordsmith_writes() -> None:
    known: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", FORMAT, re.DOTALL)[0], known)
    payloads = [b"", b"abc", bytes(300)]
    data = b"".join(map(encode_record, payloads))
    assert [*known["records"](io.BytesIO(data))] == payloads
    for damaged in (
        data[:-1],
        data[:-5],
        data[:9],
        b"x" + data[1:],
        data[:-20] + b"x" + data[-19:],
    ):
        with pytest.raises(ValueError, match=r"mismatch|truncated"):
            [*known["records"](io.BytesIO(damaged))]


def test_the_bytes_of_messages_match_the_page(reference: Any) -> None:
    first, second = (
        bytes.fromhex("".join(line.strip()[:24].partition("  ")[0] for line in text.splitlines()))
        for text in re.findall(r"```text\n((?:0a|12) .*?)```", FORMAT, re.DOTALL)
    )
    assert first == rs.encode_example({"a": [1, 2]})
    assert second == rs.encode_sequence_example({}, {"w": [[1, 2], []]}, {"w": "int64"})
    assert reference.parse("SequenceExample", second).feature_lists.feature_list["w"].feature[0]


ODD_PAYLOADS = table_with(
    FORMAT,
    "| payload, hexadecimal | what | protobuf, recordsmith | `tf.io.parse_example`, as int64 |",
)


@pytest.mark.parametrize("row", ODD_PAYLOADS, ids=[row[1] for row in ODD_PAYLOADS])
def test_odd_payloads_are_read_as_the_page_says(row: list[str], reference: Any) -> None:
    payload, expected = get_bytes(row[0]), ast.literal_eval(row[2].strip("`"))
    assert list(rs.decode_example(payload)["a"]) == expected
    feature = reference.parse("Example", payload).features.feature["a"]
    kind = feature.WhichOneof("kind")
    assert list(getattr(feature, kind).value if kind else ()) == expected


@pytest.mark.parametrize("row", ODD_PAYLOADS, ids=[row[1] for row in ODD_PAYLOADS])
def test_tensorflow_parses_odd_payloads_as_the_page_says(row: list[str], tf: Any) -> None:
    payload, text = get_bytes(row[0]), row[3]
    expected, _, single = text.partition("; with `parse_single_example` ")
    for spec in (tf.io.VarLenFeature(tf.int64), tf.io.RaggedFeature(tf.int64)):
        if text.startswith("an error"):
            with pytest.raises(tf.errors.InvalidArgumentError):
                tf.io.parse_example([payload], {"a": spec})
            continue
        for found, values in (
            (tf.io.parse_example([payload], {"a": spec})["a"], expected),
            (tf.io.parse_single_example(payload, {"a": spec})["a"], single or expected),
        ):
            flat = getattr(found, "values", found).numpy().tolist()
            assert flat == ([] if text == "missing" else ast.literal_eval(values.strip("`")))
    if text == "missing":
        default = tf.io.FixedLenFeature([], tf.int64, default_value=-7)
        assert tf.io.parse_example([payload], {"a": default})["a"].numpy() == [-7]


def limits() -> list[list[str]]:
    return table_with(FORMAT, "| what | limit | in the code | past it |")


def value_of(place: str) -> int:
    """The constant of a name such as wire.compression.HEAD_BYTES, or of a header."""
    where, _, name = place.rpartition("." if " " not in place else " ")
    if where.endswith(".h"):
        if not (PACKAGE / where).exists():
            pytest.skip("the headers are not installed")
        found = re.search(rf"#define {name} (\d+)", (PACKAGE / where).read_text("utf-8"))
        assert found is not None, place
        return int(found[1])
    value = vars(importlib.import_module(f"recordsmith.{where}")).get(name)
    assert isinstance(value, int), place
    return value


def test_limits_match_the_code() -> None:
    rows = limits()
    assert len(rows) > 20
    for what, limit, place, _ in rows:
        assert int(limit.replace(",", "")) == value_of(place.strip("`")), what


def test_versions_of_files_match_the_code() -> None:
    rows = [row for row in table_with(STABILITY, "| what | version | in the code |") if row[2]]
    assert len(rows) == 6
    for what, version, place, _ in rows:
        assert int(version) == value_of(place.strip("`")), what


def test_every_limit_of_the_code_is_on_the_page() -> None:
    documented = {re.split(r"[. ]_*", place.strip("`"))[-1] for _, _, place, _ in limits()}
    for layer in LAYERS:
        assert (PACKAGE / layer / "__init__.py").exists()
        for path in (PACKAGE / layer).rglob("*.py"):
            if "linting" in path.parts:  # how alike two images are, …: no limits of data
                continue
            for statement in ast.parse(path.read_text("utf-8")).body:
                if not isinstance(statement, ast.Assign):
                    continue
                for target in statement.targets:
                    if isinstance(target, ast.Name) and LIMIT_NAME.match(target.id):
                        assert target.id.lstrip("_") in documented, f"{path.name}: {target.id}"
        for path in (PACKAGE / layer).rglob("*.h"):
            for name in re.findall(r"#define (\w+_(?:DEPTH|LIMIT)) ", path.read_text("utf-8")):
                assert name in documented, f"{path.name}: {name}"


def test_named_defects_exist() -> None:
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", FORMAT + SECURITY))
    named -= {"recordsmith-dataset", "recordsmith-export"}
    assert {"decompression-limit", "broken-manifest", "malformed-example"} <= named
    assert named <= {str(defect) for defect in rs.Defect}


def test_the_limit_of_digits_and_labels(tmp_path: Path, numbered: Any) -> None:
    numbered.write_shard(tmp_path / "a.tfrecord", [1])
    for text, count in (("1000000:x", 1_000_001), ("1000001:x", None), ("0" * 21 + ":x", None)):
        (tmp_path / "labels.txt").write_text(text, "utf-8")
        names = rs.inspect(tmp_path).class_names
        assert (None if names is None else len(names)) == count


def test_the_manifest_has_the_documented_keys(tmp_path: Path, numbered: Any) -> None:
    folder = numbered.packed(tmp_path, {"train": [2]})
    document = json.loads((folder / "dataset.json").read_bytes())
    of_shard = document["splits"]["train"][0]
    whole = table_with(FORMAT, "| key | type | what |")
    assert {row[0].strip("`") for row in whole} == set(document)
    _, _, rest = FORMAT.partition("A shard, each file listed once:")
    assert {row[0].strip("`") for row in table_with(rest, "| key |")} == set(of_shard)
    data = (folder / of_shard["file"]).read_bytes()
    assert (len(data), crc32c(data)) == (of_shard["size_bytes"], int(of_shard["crc32c"], 16))
    for document_key in document["schema"]["features"]["name"]:
        assert f"`{document_key}`" in FORMAT


def test_an_index_written_as_documented_is_used(tmp_path: Path, reference: Any) -> None:
    shard = tmp_path / "a.tfrecord"
    payloads = [bytes([number]) * 3000 for number in range(5)]
    data = reference.frames(payloads)
    shard.write_bytes(data)
    magic = bytes.fromhex("52 53 49 4e 44 45 58 03")
    assert "`52 53 49 4e 44 45 58 03`" in FORMAT
    head = magic + struct.pack("<QQIQ", len(data), shard.stat().st_mtime_ns, 0, 5)
    offsets = [3016 * number for number in range(6)]
    table = struct.pack("<6q", *offsets)
    head += struct.pack("<I", reference.crc32c(table))
    index_paths(shard)[0].parent.mkdir()
    index_paths(shard)[0].write_bytes(head + struct.pack("<I", reference.crc32c(head)) + table)
    found = load_index(shard)
    assert found is not None
    np.testing.assert_array_equal(found[0].offsets, offsets)


def test_the_text_index_has_lines_of_offset_and_size(tmp_path: Path, reference: Any) -> None:
    shard = tmp_path / "a.tfrecord"
    shard.write_bytes(reference.frames([b"abc", b""]))
    rs.index(shard, format="dali")
    assert (tmp_path / "a.tfrecord.idx").read_text() == "0 19\n19 16\n"


def test_notes_have_the_documented_keys(tmp_path: Path, numbered: Any) -> None:
    _, _, section = FORMAT.partition("### Notes")
    section = section.partition("## Limits")[0]
    keys = set(json.loads(BegunNote("x", ("y",)).to_bytes()))
    (tmp_path / ".recordsmith").mkdir()
    schema = rs.open(numbered.write_shard(tmp_path / "a.tfrecord", [1])).schema
    save_result(
        as_folder(tmp_path),
        None,
        ShardResult(ShardEntry("s", 1, 2, 3), schema, 4, {5: "why"}, {"n": Occurrences(1)}),
    )
    note = json.loads(done_location(tmp_path, "s").read_bytes())
    keys |= set(note) | set(note["notes"]["n"])
    rs.export(tmp_path / "a.tfrecord", tmp_path / "csv", "csv")
    keys |= set(json.loads((tmp_path / "csv" / EXPORT_NOTE).read_bytes()))
    assert len(keys) > 12
    for key in keys:
        assert f"`{key}`" in section, key


def test_written_bytes_match_the_page(tmp_path: Path) -> None:
    assert rs.encode_example({}) == bytes.fromhex("0a 00")
    assert "`0a 00`" in FORMAT
    path = tmp_path / "a.tfrecord.gz"
    with rs.ShardWriter(path, compression="gzip") as writer:
        writer.write(b"abc")
    data = path.read_bytes()
    assert data[:3] == bytes.fromhex("1f 8b 08")
    assert data[4:8] == bytes(4)  # time 0
    engine = zlib.compressobj(6, wbits=31)
    assert data == engine.compress(encode_record(b"abc")) + engine.flush()


MODULE_PATH = re.compile(r"`(?:src/recordsmith/)?([\w-]+(?:/[\w-]+)+\.(?:pyx?|pxd|h))`")
MODULE_NAME = re.compile(r"(?<![\w/.@-])recordsmith((?:\.[A-Za-z_]\w*)+)")


def is_in_package(name: str) -> bool:
    """Whether a dotted name below recordsmith is a module, or the first name in one."""
    folder, names = PACKAGE, name.split(".")
    while names and (folder / names[0]).is_dir():
        folder /= names.pop(0)
    if not names:
        return True
    module = folder / f"{names[0]}.py"
    if module.exists() or [*folder.glob(f"{names[0]}.*.so")]:
        names.pop(0)
    else:
        module = folder / "__init__.py"
    return not names or re.search(rf"\b{names[0]}\b", module.read_text("utf-8")) is not None


def test_named_tests_files_and_modules_exist() -> None:
    sources = "\n".join(
        path.read_text("utf-8") for path in (REPOSITORY / "tests").rglob("test_*.py")
    )
    has_sources = (REPOSITORY / "src").exists()  # an installed package has none
    missing = []
    folders = (REPOSITORY / name for name in ("docs", "examples", "tests"))
    for page in [*REPOSITORY.glob("*.md"), *(path for f in folders for path in f.rglob("*.md"))]:
        text = page.read_text("utf-8")
        named = {
            path: (REPOSITORY / path).exists()
            for path in re.findall(r"`((?:tests|src|docs|\.ci)/[\w./]+)`", text)
            if (REPOSITORY / path.partition("/")[0]).exists()
        }
        named |= {
            name: f"def {name}(" in sources or any((REPOSITORY / "tests").rglob(f"{name}.py"))
            for name in re.findall(r"`(test_\w+)`", text)
        }
        named |= {f"recordsmith{n}": is_in_package(n[1:]) for n in MODULE_NAME.findall(text)}
        for path in MODULE_PATH.findall(text) if has_sources else ():
            near = (PACKAGE, PACKAGE.parent, REPOSITORY, page.parent)
            named[path] = any((folder / path).exists() for folder in near)
        missing += [(page.name, name) for name, is_there in named.items() if not is_there]
    assert not missing


def test_memory_of_decoding(reference: Any) -> None:
    """The worst known cases: Python objects for values of a few bytes."""
    stated = re.search(r"up to (\d+) bytes for each\s+byte", SECURITY)
    assert stated is not None
    entry, delimited = reference.entry, reference.delimited
    nothing = delimited(1, delimited(3, b""))  # a step with an empty list
    worst = 0.0
    for decode, payload in (
        (rs.decode_sequence_example, delimited(2, entry(b"k", nothing * 10_000))),
        (rs.decode_sequence_example, delimited(2, entry(b"k", delimited(1, b"") * 10_000))),
        (
            rs.decode_example,
            reference.example(*(entry(b"%x" % n, delimited(3, b"")) for n in range(10_000))),
        ),
    ):
        tracemalloc.start()
        decoded = decode(payload)
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert decoded
        worst = max(worst, taken / len(payload))
    assert int(stated[1]) / 3 < worst <= int(stated[1])
