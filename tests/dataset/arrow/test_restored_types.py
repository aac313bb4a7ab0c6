"""Arrow -> TFRecord -> Arrow: the same table, also in its types, wherever no digit was lost."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import schema_as_text

from ...raising import raises

pa = pytest.importorskip("pyarrow")

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_BYTES = st.binary(max_size=5)
_FLOATS = st.floats(width=32, allow_nan=False) | st.sampled_from(
    [float("nan"), float(np.finfo(np.float32).max)]
)
_HALVES = st.floats(width=16, allow_nan=False)


def _ints(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


def _decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: decimal.Decimal(f"{n}e-{scale}"))


SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    *((getattr(pa, f"int{bits}")(), _ints(bits)) for bits in (8, 16, 32, 64)),
    *((getattr(pa, f"uint{bits}")(), _ints(bits, signed=False)) for bits in (8, 16, 32)),
    (pa.uint64(), st.integers(0, 2**63 - 1)),
    (pa.float16(), _HALVES.map(np.float16)),
    (pa.float32(), _FLOATS),
    (pa.float64(), _FLOATS),
    (pa.string(), _TEXT),
    (pa.large_string(), _TEXT),
    (pa.string_view(), _TEXT),
    (pa.binary(), _BYTES),
    (pa.large_binary(), _BYTES),
    (pa.binary_view(), _BYTES),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.dictionary(pa.int8(), pa.string()), _TEXT),
    (pa.dictionary(pa.int32(), pa.int64()), _ints(64)),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.time32("s"), st.times().map(lambda t: t.replace(microsecond=0))),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us"), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),  # noqa: DTZ001
    (pa.timestamp("ns", "Europe/Paris"), st.integers(0, 2**62)),
    (pa.duration("ms"), st.integers(-(10**15), 10**15)),
    (pa.decimal128(18, 0), _decimals(18, 0)),
    (pa.decimal128(10, 2), _decimals(10, 2)),
    (pa.decimal256(40, 5), _decimals(40, 5)),
]
_PORTABLE = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()): pa.dictionary(pa.int32(), pa.string()),
}
"""Types that other libraries do not read, or that need not fit: what they are restored to."""


def _portable(arrow_type: Any) -> Any:
    is_type = pa.types
    if is_type.is_fixed_size_list(arrow_type):
        return pa.list_(_portable_value(arrow_type), arrow_type.list_size)
    if is_type.is_list(arrow_type) or is_type.is_list_view(arrow_type):
        return pa.list_(_portable_value(arrow_type))
    if is_type.is_large_list(arrow_type) or is_type.is_large_list_view(arrow_type):
        return pa.large_list(_portable_value(arrow_type))
    return _PORTABLE.get(arrow_type, arrow_type)


def _portable_value(arrow_type: Any) -> Any:
    value = arrow_type.value_type
    return pa.large_binary() if pa.types.is_fixed_size_binary(value) else _portable(value)


_LISTS = [
    (wrap(arrow_type), st.lists(values, max_size=3))
    for arrow_type, values in SCALARS
    if "dictionary" not in str(arrow_type)
    for wrap in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
]
_FIXED = [
    (pa.list_(arrow_type, 2), st.lists(values, min_size=2, max_size=2))
    for arrow_type, values in SCALARS
    if "dictionary" not in str(arrow_type)
]


@st.composite
def _tables(draw: st.DrawFn) -> Any:
    count = draw(st.integers(1, 8))
    columns = {}
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True)):
        arrow_type, values = draw(st.sampled_from([*SCALARS, *_LISTS, *_FIXED]))
        optional = values if draw(st.booleans()) else st.none() | values
        columns[name] = pa.array(
            draw(st.lists(optional, min_size=count, max_size=count)), arrow_type
        )
    return pa.table(columns)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(_tables())
def test_any_table_has_its_types_again(
    tmp_path_factory: pytest.TempPathFactory, table: Any
) -> None:
    out = tmp_path_factory.mktemp("restored") / "out"
    rs.pack(rs.Table(table), out, shuffle=False)
    found = rs.open(out).to_arrow(restore_types=True).read_all()
    found.validate(full=True)
    assert found.schema.types == list(map(_portable, table.schema.types))
    assert found.schema.names == table.schema.names
    for name in table.schema.names:  # as text: Python has no nanoseconds without pandas
        values, expected = found[name].combine_chunks(), table[name].combine_chunks()
        assert values.to_string() == expected.to_string()


@pytest.mark.parametrize("seed", range(3))
def test_categories_of_polars_are_text(tmp_path: Path, seed: int) -> None:
    pl = pytest.importorskip("polars")
    dice = np.random.default_rng(seed)
    names = ["a", "a name that is longer than twelve bytes", "ö"]
    words = [names[n] if n < 3 else None for n in dice.integers(0, 4, 20)]
    lists = [names[:n] for n in dice.integers(0, 4, 20)]
    pairs = [[names[n], names[0]] for n in dice.integers(0, 3, 20)]
    frame = pl.DataFrame(
        {
            "categorical": pl.Series(words, dtype=pl.Categorical),
            "enum": pl.Series(words, dtype=pl.Enum(names)),
            "categoricals": pl.Series(lists, dtype=pl.List(pl.Categorical)),
            "enums": pl.Series(lists, dtype=pl.List(pl.Enum(names))),
            "pairs": pl.Series(pairs, dtype=pl.Array(pl.Enum(names), 2)),
        }
    )
    rs.pack(rs.Table(frame), tmp_path / "out", shuffle=False)
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        writer.write_columns(frame)
    for path in (tmp_path / "out", tmp_path / "rows.tfrecord"):
        found = rs.open(path).to_polars(frame.columns)
        assert found.to_dicts() == frame.to_dicts()


@pytest.mark.parametrize("value_type", [pa.string_view(), pa.binary_view()])
def test_dictionaries_of_views(tmp_path: Path, value_type: Any) -> None:
    values = pa.array(["a", "more than twelve bytes"]).cast(value_type)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), values)
    table = pa.table({"x": column, "y": [[1], [], [2], []]})
    rs.pack(rs.Table(table), tmp_path / "out", shuffle=False)
    found = rs.open(tmp_path / "out").to_arrow().read_all()
    assert found["x"].to_pylist() == table["x"].to_pylist()


def test_batches_have_more_values_than_the_indices_of_a_batch(tmp_path: Path) -> None:
    chunks = [
        pa.array(list(map(str, range(start, start + 100)))).dictionary_encode()
        for start in range(0, 400, 100)
    ]
    small = pa.dictionary(pa.int8(), pa.string())
    column = pa.chunked_array([chunk.cast(small) for chunk in chunks])
    rs.pack(rs.Table(pa.table({"x": column})), tmp_path / "out", shuffle=False)
    assert rs.open(tmp_path / "out").to_arrow().read_all()["x"].to_pylist() == column.to_pylist()


def test_types_are_restored_unless_the_stored_ones_are_wanted(tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([1, None], pa.timestamp("us")),
            "half": [0.5, 2.0],
            "nothing": pa.array([None, None], pa.int16()),
        }
    )
    rs.pack(rs.Table(table), tmp_path / "out", shuffle=False)
    dataset = rs.open(tmp_path / "out")
    assert pa.table(dataset).equals(table)
    assert dataset.to_arrow().read_all().equals(table)
    assert (
        dataset.to_arrow(["nothing", "half"]).read_all().equals(table.select(["nothing", "half"]))
    )
    stored = dataset.to_arrow(restore_types=False).read_all()
    assert stored.schema.names == ["half", "when"]
    assert stored.schema.types == [pa.float32(), pa.int64()]


def test_columns_that_lost_digits_keep_the_types_of_features(tmp_path: Path) -> None:
    table = pa.table(
        {"third": [1 / 3, 0.5], "half": [0.5, None], "lists": [[0.1], [0.5, 0.25]], "n": [1, 2]}
    )
    rs.pack(rs.Table(table), tmp_path / "out", shuffle=False)
    found = rs.open(tmp_path / "out").to_arrow(restore_types=True).read_all()
    assert found.schema.names == ["half", "n", "lists", "third"]
    assert found.schema.types[:2] == [pa.float64(), pa.int64()]
    assert found["third"].type == pa.float32()
    assert found["lists"].type == pa.large_list(pa.float32())
    chosen = rs.open(tmp_path / "out").to_arrow(["n", "half"], restore_types=True)
    assert chosen.schema.names == ["n", "half"]
    assert chosen.read_all().to_pydict() == {"n": [1, 2], "half": [0.5, None]}


def test_types_survive_reshard_and_salvage_but_not_edits(tmp_path: Path) -> None:
    table = pa.table(
        {"x": pa.array(range(100), pa.int16()), "day": pa.array([7] * 100, pa.date32())}
    )
    rs.pack(rs.Table(table), tmp_path / "out")
    rs.reshard(tmp_path / "out", tmp_path / "resharded", shards=3, shuffle=True)
    rs.salvage(tmp_path / "resharded", tmp_path / "salvaged")
    for name in ("resharded", "salvaged"):
        found = rs.open(tmp_path / name).to_arrow(restore_types=True).read_all()
        assert found.schema.types == table.schema.types
        assert sorted(found["x"].to_pylist()) == list(range(100))
    rs.edit(tmp_path / "out", tmp_path / "edited", rename={"x": "y"})
    with raises(rs.OptionError, option="restore_types"):
        rs.open(tmp_path / "edited").to_arrow(restore_types=True)


def test_there_may_be_no_types_or_invalid_ones(tmp_path: Path) -> None:
    rs.pack(rs.Rows([{"x": 1}]), tmp_path / "rows")
    with raises(rs.OptionError, option="restore_types", value=True):
        rs.open(tmp_path / "rows").to_arrow(restore_types=True)
    rs.pack(rs.Table(pa.table({"x": pa.array([1, 300], pa.int16())})), tmp_path / "out")
    path = tmp_path / "out" / "dataset.json"
    document = json.loads(path.read_text())
    refused = [
        [("x", pa.struct({"a": pa.int64()}))],
        [("x", pa.list_(pa.list_(pa.int64())))],
        [("x", pa.map_(pa.string(), pa.int64()))],
        [("x", pa.null())],
        [("x", pa.month_day_nano_interval())],
        [("x", pa.int64()), ("x", pa.int8())],
    ]
    texts = [schema_as_text(pa.schema(types)) for types in refused]
    for text in ("words", "////", document["arrow_schema"][:-40], *texts):
        path.write_text(json.dumps({**document, "arrow_schema": text}))
        with raises(rs.CorruptDataError, defect=rs.Defect.BROKEN_MANIFEST):
            rs.open(tmp_path / "out").to_arrow(restore_types=True)
    for arrow_type in (pa.int8(), pa.list_(pa.string()), pa.string(), pa.list_(pa.int8(), 3)):
        text = schema_as_text(pa.schema([("x", arrow_type)]))
        path.write_text(json.dumps({**document, "arrow_schema": text}))
        with pytest.raises(rs.CorruptDataError):
            rs.open(tmp_path / "out").to_arrow(restore_types=True).read_all()
