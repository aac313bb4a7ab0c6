"""Arrow -> Examples -> Arrow, against plain Python values."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.dataset import ArrowColumns, ArrowDecoder
from recordsmith.format.example import SchemaSurvey, decode_example, encode_columns
from recordsmith.support.errors import OptionError

from . import test_restored_types

pa = pytest.importorskip("pyarrow")

SCALARS = [
    (kind, values)
    for kind, values in test_restored_types.SCALARS
    if not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind))
    and kind not in (pa.float16(), pa.dictionary(pa.int32(), pa.int64()))
]


def wrapped(case: tuple[Any, st.SearchStrategy[Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    """A type, or lists of it, and the strategy of its values."""
    kind, values = case
    is_view = kind in (pa.string_view(), pa.binary_view())
    choices = [
        (kind, values),
        (pa.list_(kind), st.lists(values, max_size=3)),
        (pa.large_list(kind), st.lists(values, max_size=3)),
    ]
    if not is_view and not pa.types.is_dictionary(kind):
        choices.append((pa.list_(kind, 2), st.lists(values, min_size=2, max_size=2)))
    return st.sampled_from(choices)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=400)
def test_every_type_becomes_the_same_values(data: Any) -> None:
    """Nulls are missing features; slices of arrays, with offsets, too."""
    kind, values = data.draw(st.sampled_from(SCALARS).flatmap(wrapped))
    cells = data.draw(st.lists(st.none() | values, min_size=1, max_size=12))
    array = pa.array(cells, kind)
    start = data.draw(st.integers(0, len(cells) - 1))
    batch = pa.record_batch({"a": array, "row": pa.array(range(len(cells)))}).slice(start)
    columns, validity = ArrowColumns(batch.schema).convert(batch)
    payloads, offsets = encode_columns(columns, validity)
    for row, cell in enumerate(cells[start:]):
        example: Any = decode_example(payloads[offsets[row] : offsets[row + 1]])
        assert ("a" in example) == (cell is not None)
        if cell is not None:
            found = list(example["a"])
            expected = [encoded(one) for one in (cell if isinstance(cell, list) else [cell])]
            assert len(found) == len(expected)
            assert all(same(one, other) for one, other in zip(found, expected, strict=True))

    survey = SchemaSurvey()
    survey.update(payloads, offsets[:-1], np.diff(offsets))
    decoder = ArrowDecoder(survey.finish())
    decoder.append(payloads, offsets[:-1], np.diff(offsets))
    back = decoder.finish()
    back.validate(full=True)
    if any(cell not in (None, []) for cell in cells[start:]):
        for cell, returned in zip(cells[start:], back.column("a").to_pylist(), strict=True):
            assert (returned is None) == (cell is None)
            if cell is not None:
                expected = [encoded(one) for one in (cell if isinstance(cell, list) else [cell])]
                found = [
                    encoded(one) for one in (returned if isinstance(returned, list) else [returned])
                ]
                assert len(found) == len(expected)
                assert all(same(one, other) for one, other in zip(found, expected, strict=True))


def encoded(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return int(value) if isinstance(value, bool) else value


def same(one: Any, other: Any) -> bool:
    if isinstance(other, float) and math.isnan(other):
        return math.isnan(one)
    return bool(one == other)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, 2**62], pa.timestamp("ns")), [1, 2**62]),
        (pa.array([dt.date(1970, 1, 3)], pa.date32()), [2]),
        (pa.array([dt.date(1970, 1, 3)], pa.date64()), [2 * 86_400_000]),
        (pa.array([dt.timedelta(seconds=3)], pa.duration("ms")), [3000]),
        (pa.array([dt.time(0, 0, 5)], pa.time32("s")), [5]),
        (pa.array([dt.time(0, 0, 5)], pa.time64("us")), [5_000_000]),
        (pa.array([decimal.Decimal(12)], pa.decimal128(18, 0)), [12]),
        (pa.array([decimal.Decimal("1.50")], pa.decimal128(5, 2)), [b"1.50"]),
        (pa.array([decimal.Decimal(10**30)], pa.decimal256(40, 0)), [str(10**30).encode()]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_times_and_decimals(array: Any, expected: list[Any]) -> None:
    columns, _ = ArrowColumns(pa.schema([("a", array.type)])).convert(pa.record_batch({"a": array}))
    column: Any = columns["a"]
    assert list(column) == expected


def test_all_unsupported_columns_are_named_at_once() -> None:
    schema = pa.schema(
        [
            ("fine", pa.int8()),
            ("point", pa.struct([("x", pa.int8())])),
            ("nested", pa.list_(pa.list_(pa.int8()))),
            ("map", pa.map_(pa.string(), pa.int8())),
        ]
    )
    with pytest.raises(OptionError) as caught:
        ArrowColumns(schema)
    assert all(name in str(caught.value) for name in ("'point'", "'nested'", "'map'"))
    assert "'fine'" not in str(caught.value)


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([[1], None, [2, None]]), 2),
        (pa.array([[1, 1], [None, 2]], pa.list_(pa.int8(), 2)), 1),
        (pa.array([1, 2**63], pa.uint64()), 1),
        (pa.array([[1], [], [2**63]], pa.list_(pa.uint64())), 2),
        (pa.array([[1, 2], [3, 2**63]], pa.list_(pa.uint64(), 2)), 1),
    ],
)
def test_values_that_do_not_fit_are_located(array: Any, row: int) -> None:
    batch = pa.record_batch({"a": array})
    with pytest.raises(OptionError, match=f"column 'a', row {100 + row}:"):
        ArrowColumns(batch.schema).convert(batch, first_row=100)


def test_a_column_of_nulls_is_no_feature() -> None:
    batch = pa.record_batch({"a": pa.nulls(2), "b": pa.array([1.0, math.inf])})
    columns, validity = ArrowColumns(batch.schema).convert(batch)
    assert list(columns) == ["b"]
    assert validity == {}
