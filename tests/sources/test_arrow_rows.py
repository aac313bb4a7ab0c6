"""Parquet files as tables, compared with pyarrow."""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import Source, Table
from recordsmith.sources.tables import arrow_rows

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract

pa = pytest.importorskip("pyarrow")
pq = importlib.import_module("pyarrow.parquet") if pa else None


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        folder.mkdir()
        table = {"x": [0.5, 1.0, 2.0, 3.0, 4.0], "y": list("abcab"), "l": [[1]] * 5}
        return Table(_write(folder / "t.parquet", table), label_column="y")


def _write(path: Path, columns: Any, **options: Any) -> Path:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, **options)
    return path


def _features(source: Table) -> list[dict[str, Any]]:
    found = []
    for sample in source.list_samples().samples:
        content: Any = read_sample(source, sample)
        features = rs.decode_example(content)
        found.append({k: v if isinstance(v, list) else v.tolist() for k, v in features.items()})
    return found


_DAY = dt.date(2024, 2, 29)
_MOMENT = dt.datetime(2024, 2, 29, 12, 30, 0, 250)  # noqa: DTZ001 - Parquet has such


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, -2], pa.int8(), [1, -2]),
        ([1, 2**32 - 1], pa.uint32(), [1, 2**32 - 1]),
        ([2**63 - 1, -(2**63)], pa.int64(), [2**63 - 1, -(2**63)]),
        ([True, False], pa.bool_(), [1, 0]),
        ([0.5, 2.0], pa.float16(), [0.5, 2.0]),
        ([0.1, 1e30], pa.float32(), [float(np.float32(0.1)), float(np.float32(1e30))]),
        ([0.1, 1e30], pa.float64(), [float(np.float32(0.1)), float(np.float32(1e30))]),
        (["é", ""], pa.string(), ["é".encode(), b""]),
        (["é", ""], pa.large_string(), ["é".encode(), b""]),
        ([b"\xff\0", b""], pa.binary(), [b"\xff\0", b""]),
        ([b"ab", b"cd"], pa.binary(2), [b"ab", b"cd"]),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string()), [b"a", b"b"]),
        ([_DAY, _DAY], pa.date32(), [19782] * 2),
        ([_MOMENT, _MOMENT], pa.timestamp("us"), [1709209800000250] * 2),
        ([_MOMENT, _MOMENT], pa.timestamp("ns", "UTC"), [1709209800000250000] * 2),
        ([dt.time(0, 0, 1)] * 2, pa.time32("ms"), [1000] * 2),
        ([dt.timedelta(1)] * 2, pa.duration("ms"), [86400000] * 2),
        ([decimal.Decimal("1.25")] * 2, pa.decimal128(10, 2), [b"1.25"] * 2),
    ],
)
def test_types(tmp_path: Path, values: list[Any], kind: Any, expected: list[Any]) -> None:
    source = Table(_write(tmp_path / "t.parquet", {"x": pa.array(values, kind)}))
    assert _features(source) == [{"x": [value]} for value in expected]
    with_null = pa.array([values[0], None, values[1]], kind)
    lists = pa.array([values, [], None, values[:1]], pa.list_(kind))
    source = Table(_write(tmp_path / "t.parquet", {"x": with_null, "y": with_null}))
    assert _features(source) == [
        {"x": [e], "y": [e]} if e != () else {} for e in (expected[0], (), expected[1])
    ]
    source = Table(_write(tmp_path / "t.parquet", {"x": lists}))
    assert _features(source) == [{"x": expected}, {"x": []}, {}, {"x": expected[:1]}]


def test_unsupported_types_are_refused(tmp_path: Path) -> None:
    columns = {
        "good": [1],
        "struct": pa.array([{"a": 1}]),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "deep": pa.array([[[1]]]),
        "structs": pa.array([[{"a": 1}]]),
    }
    with pytest.raises(rs.SourceError) as caught:
        Table(_write(tmp_path / "t.parquet", columns)).list_samples()
    assert [p.partition("column ")[2].partition(" has")[0] for p in caught.value.problems] == [
        "'struct'",
        "'map'",
        "'deep'",
        "'structs'",
    ]
    assert "struct<a: int64>" in caught.value.problems[0]


def test_values_that_cannot_be_stored(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.parquet", {"x": pa.array([2**63], pa.uint64())})
    with raises(
        rs.SourceError, path=tmp_path / "t.parquet", match=r"'x', row 0: 9223372036854775808"
    ):
        Table(path).list_samples()
    path = _write(tmp_path / "t.parquet", {"x": [[1], [1, None]]})
    with raises(rs.SourceError, path=tmp_path / "t.parquet", match="'x', row 1: .*null"):
        Table(path).list_samples()
    path = _write(tmp_path / "t.parquet", {"x": [1.0, 1e300], "y": [[-1e39, 1.0], [2.0]]})
    source = Table(path)
    for number, sample in enumerate(source.list_samples().samples):
        with raises(rs.SourceError, sample=f"{path}, row {number}", match="32-bit float"):
            read_sample(source, sample)


def test_empty_and_columns_without_values(tmp_path: Path) -> None:
    columns = {"a": [1, None, None], "b": pa.nulls(3)}
    source = Table(_write(tmp_path / "t.parquet", columns))
    skipped, nulls = source.list_samples().notices
    assert skipped.endswith("skipped: b")
    assert nulls.endswith(": 2 in 'a'")
    assert _features(source) == [{"a": [1]}, {}, {}]
    with raises(rs.SourceError, path=tmp_path / "t.parquet", match="has no rows"):
        Table(_write(tmp_path / "t.parquet", {"a": pa.array([], pa.int64())})).list_samples()


def test_damaged_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.parquet", {"x": np.arange(100_000)}, compression="none")
    data = path.read_bytes()
    for damaged in (data[:-5], b"PAR1words"):
        path.write_bytes(damaged)
        with raises(rs.SourceError, path=path, match="not a Parquet"):
            Table(path).list_samples()


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path / "t.parquet", {"x": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with raises(rs.MissingExtraError, extra="arrow"):
        Table(path).list_samples()


# -- hostile tables ------------------------------------------------------------------------------

_VIEW = pa.ListViewArray.from_arrays([0, 2, 2], [2, 0, 3], pa.array([1, 2, 3, 4, 5]))
_HIDDEN_NULL = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (_HIDDEN_NULL, [{"x": [b"a"]}, {}]),
        (_HIDDEN_NULL.cast(pa.dictionary(pa.int8(), pa.string())).slice(1), [{}]),
        (_VIEW, [{"x": [1, 2]}, {"x": []}, {"x": [3, 4, 5]}]),
        (_VIEW.slice(1), [{"x": []}, {"x": [3, 4, 5]}]),
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)).slice(1), [{}, {"x": [3, 4]}]),
        (pa.array([None, ["a"], ["b", "c"]]).slice(1), [{"x": [b"a"]}, {"x": [b"b", b"c"]}]),
        (pa.nulls(2), [{}, {}]),
    ],
)
def test_arrays_whose_memory_is_unusual(array: Any, expected: list[Any]) -> None:
    assert _features(Table(pa.table({"x": array}))) == expected


def test_a_table_without_columns_keeps_its_rows() -> None:
    assert _features(Table(pa.table({"x": [1, 2]}).select([]))) == [{}, {}]


@pytest.mark.parametrize(
    ("array", "groups"),
    [
        ([3, None, 4], ["3", None, "4"]),
        ([True, False, True], ["1", "0", "1"]),
        ([decimal.Decimal(3)] * 3, ["3"] * 3),
        ([decimal.Decimal("1.5")] * 3, ["1.5"] * 3),
        ([_DAY] * 3, ["19782"] * 3),
        (pa.array([1, 2, 1], pa.timestamp("ns")), ["1", "2", "1"]),
        (pa.array([b"\xff", b"", None]), ["\udcff", None, None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        ([1.0, None, 2.0], None),
        ([[1], [2], [1]], None),
    ],
)
def test_values_of_groups(array: Any, groups: list[str] | None) -> None:
    """They are what is stored; what cannot be a group is refused, as rows would spread."""
    source = Table(pa.table({"g": array}), group_column="g")
    if groups is None:
        with raises(rs.SourceError, match="'g' cannot name"):
            source.list_samples()
    else:
        assert [sample.group for sample in source.list_samples().samples] == groups


_IMAGE = pa.array([{"bytes": b"x", "path": "p"}], pa.struct({"bytes": pa.binary(), "path": "str"}))


def _with_classes(*names: str) -> Any:
    feature = {"_type": "ClassLabel", "names": names}
    info = json.dumps({"info": {"features": {"y": feature}}})
    return pa.table({"y": [0]}).replace_schema_metadata({"huggingface": info})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"i": _IMAGE, "x": [1]}, {"x": [2]}),
        ({"x": [2]}, {"i": _IMAGE, "x": [1]}),
        ({"i": _IMAGE}, {"j": _IMAGE}),
        (_with_classes("a", "b"), _with_classes("b", "a")),
        ({"x": pa.array([1], pa.timestamp("ms"))}, {"x": pa.array([1], pa.timestamp("ns"))}),
        ({"x": pa.array([[1]], pa.list_(pa.date32()))}, {"x": [[1]]}),
        ({"x": pa.array([1], pa.duration("ms"))}, {"x": [1]}),
        ({"x": [1]}, {"x": ["text"]}),
    ],
)
def test_files_that_mean_different_things_are_refused(
    tmp_path: Path, first: Any, second: Any
) -> None:
    _write(tmp_path / "a.parquet", first)
    _write(tmp_path / "b.parquet", second)
    with raises(rs.SourceError) as caught:
        Table(tmp_path).list_samples()
    assert str(tmp_path / "b.parquet") in str(caught.value)


@pytest.mark.parametrize(
    ("key", "names", "column"),
    [
        ("y", ["a"], ["text"]),
        ("y", ["a"], [0.5]),
        ("y", ["a"], [[0]]),
        ("y", [["a"]], [0]),
        ("missing", ["a"], [0]),
    ],
)
def test_metadata_that_do_not_describe_the_column(key: str, names: Any, column: Any) -> None:
    features = {key: {"_type": "ClassLabel", "names": names}}
    info = {"huggingface": json.dumps({"info": {"features": features}})}
    source = Table(pa.table({"y": column}).replace_schema_metadata(info))
    assert source.list_samples().class_names is None


def test_columns_next_to_images(tmp_path: Path) -> None:
    with raises(rs.SourceError, match="'image/filename'"):
        Table(pa.table({"i": _IMAGE, "image/filename": ["f"]})).list_samples()
    numbers = pa.array([{"bytes": 1, "path": "p"}])
    with raises(rs.SourceError, match="struct"):
        Table(pa.table({"i": numbers})).list_samples()
    named = Table(pa.table({"i": _IMAGE, "file": ["f"]}), image_column="file", images=tmp_path)
    assert any(n.endswith("as encoded bytes: i") for n in named.list_samples().notices)
    assert named.list_samples().reader.kinds() == {"i": "bytes"}


class _Closed:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise RuntimeError("the connection is closed")


def test_a_table_that_cannot_be_opened() -> None:
    with raises(rs.SourceError, path="_Closed", match="the connection is closed"):
        Table(_Closed()).list_samples()


def _written(path: Path, table: Any) -> bytes:
    if path.suffix == ".parquet":
        _write(path, table)
    else:
        opener = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
        with opener(str(path), table.schema) as writer:
            writer.write_table(table)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["", "t.arrow"])
def test_long_rows_of_one_batch_are_encoded_a_few_at_a_time(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"x": [bytes(1000) + bytes([n]) for n in range(100)]})
    if name:
        _written(tmp_path / name, table)
    monkeypatch.setattr(arrow_rows, "_BATCH_BYTES", 10_000)
    counts: list[int] = []
    encode = arrow_rows._ArrowBatch.encode

    def watched(batch: Any, lost: Any) -> Any:
        counts.append(len(batch))
        return encode(batch, lost)

    monkeypatch.setattr(arrow_rows._ArrowBatch, "encode", watched)
    rows = _features(Table(tmp_path / name if name else table))
    assert [row["x"][0][-1] for row in rows] == list(range(100))
    assert max(counts) < 12


# pyarrow crashed at some of these places: the program runs in its own process
_READ_DAMAGED = """
import sys
from pathlib import Path
import recordsmith as rs
path, data, step = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
ends = {"read": 0, "refused": 0}
for at in range(0, len(data), step):
    for change in (0x01, 0x80, 0xFF):
        path.write_bytes(data[:at] + bytes([data[at] ^ change]) + data[at + 1:])
        try:
            rs.Table(path).list_samples()
            ends["read"] += 1
        except (rs.SourceError, rs.CorruptDataError):
            ends["refused"] += 1
print(ends["read"] > 0, ends["refused"] > 0)
"""


# ColumnChunkMetaData of 26 ends the process if the sizes of a chunk contradict each other
_ABORTS = pytest.mark.xfail(pa.__version__.startswith("26."), reason="pyarrow 26 aborts")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.arrow", "t.arrows", pytest.param("t.parquet", marks=_ABORTS)])
def test_a_file_with_a_wrong_byte_is_read_or_refused(tmp_path: Path, name: str) -> None:
    table = pa.table(
        {
            "text": ["a", None, "é"],
            "lists": [[1], [], [2, 3]],
            "names": pa.array(["a", "b", "a"]).dictionary_encode(),
            "pairs": pa.array([[1, 2]] * 3, pa.list_(pa.int16(), 2)),
        }
    )
    _written(tmp_path / name, table)
    done = subprocess.run(
        [sys.executable, "-c", _READ_DAMAGED, str(tmp_path / name), "5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr[-800:]
