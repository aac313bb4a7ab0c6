"""A schema with too many features: it keeps the first by name, however the records are divided."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.format.example import (
    Schema,
    SchemaSurvey,
    encode_example,
    encode_sequence_example,
    schema,
)
from recordsmith.support.errors import OptionError

MOST, LISTED, LONGEST, MAX_BYTES = 8, 3, 6, 60
NAMES = st.text("ab\u00e9\udcff", max_size=9)


@pytest.fixture(scope="module", autouse=True)
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "MAX_FEATURES", MOST)
        patched.setattr(schema, "LISTED_FEATURES", LISTED)
        patched.setattr(schema, "LONGEST_LISTED_NAME", LONGEST)
        patched.setattr(schema, "MAX_NAME_BYTES", MAX_BYTES)
        yield


def survey(*blocks: list[bytes]) -> Schema:
    counted = SchemaSurvey()
    for payloads in blocks:
        lengths = np.array([len(payload) for payload in payloads], np.int64)
        counted.update(b"".join(payloads), np.cumsum(lengths) - lengths, lengths)
    return counted.finish()


def stored(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def expected(rows: list[dict[str, Any]]) -> tuple[bool, dict[str, int]]:
    """Whether all features fit, and in how many rows each is that is kept."""
    present: dict[str, int] = {}
    for row in rows:
        for name in row:
            present[name] = present.get(name, 0) + 1
    if len(present) <= MOST and sum(len(stored(name)) for name in present) <= MAX_BYTES:
        return True, present
    short = sorted((n for n in present if len(stored(n)) <= LONGEST), key=stored)
    return False, {name: present[name] for name in short[:LISTED]}


def found(part: Schema) -> tuple[bool, dict[str, int]]:
    return part.is_complete, {name: known.present for name, known in part.features.items()}


@given(data=st.data())
@settings(max_examples=100)
def test_what_is_kept_does_not_depend_on_how_records_are_divided(data: Any) -> None:
    rows = data.draw(st.lists(st.dictionaries(NAMES, st.integers(0, 9), max_size=14), max_size=9))
    payloads = [encode_example(row) for row in rows]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [
        payloads[start:stop]
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        if start < stop
    ]
    whole = survey(payloads)
    assert found(whole) == expected(rows)
    assert survey(*data.draw(st.permutations(parts))) == whole
    merged = Schema.merged([survey(part) for part in data.draw(st.permutations(parts))])
    assert merged == whole
    assert Schema.from_json(json.loads(json.dumps(merged.to_json()))) == whole
    assert ("is_complete" in whole.to_json()) != whole.is_complete


def test_a_record_may_have_too_many_by_itself() -> None:
    rows: list[dict[str, Any]] = [{"z": 1}, {f"{number:03d}": 1 for number in range(500)}]
    for order in (rows, rows[::-1], rows * 2):
        seen = survey([encode_example(row) for row in order])
        count = len(order) // 2
        assert found(seen) == (False, dict.fromkeys(("000", "001", "002"), count))


def test_a_repeated_key_in_a_record() -> None:
    """The last one counts, even if the key is dropped while its record is read."""
    first, last = encode_example({"b": [1, 2]}), encode_example({"b": [1, 2, 3]})
    others = encode_example({f"c{number}": 1 for number in range(50)})
    seen = survey([first + others + last])
    assert not seen.is_complete
    assert seen.features["b"] == survey([last]).features["b"]


def test_one_long_name_is_not_kept_and_does_no_harm() -> None:
    long = "l" * (MAX_BYTES + 1)
    assert found(survey([encode_example({long: 1, "id": 2})])) == (False, {"id": 1})
    assert found(survey([encode_example({long: 1})])) == (False, {})


def test_sections_are_cut_together() -> None:
    lists: Mapping[str, Any] = {f"{number}": [[1]] for number in range(MOST + 1)}
    many = encode_sequence_example({f"c{number}": 1 for number in range(5)}, lists)
    few = encode_sequence_example({"a": 1}, {"0": [[1, 2]]})
    whole = survey([many, few])
    assert not whole.is_complete
    assert list(whole.sections["context"]) == ["a", "c0", "c1"]
    assert {key: known.present for key, known in whole.sections["feature_lists"].items()} == {
        "0": 2,
        "1": 1,
        "2": 1,
    }
    assert Schema.merged([survey([few]), survey([many])]) == whole


def test_payloads_other_than_examples_do_not_count() -> None:
    """Names are dropped if the payload turns out to be another message."""
    others = [encode_example({f"{n}": 1}) + b"\x12\x03abc" for n in range(5 * MOST)]
    seen = survey([*others, encode_example({"z": 1}), *others])
    assert seen.payload == "mixed"
    assert found(seen) == (True, {"z": 1})


@given(data=st.data())
@settings(max_examples=100)
def test_records_that_end_too_early_change_nothing(data: Any, reference: Any) -> None:
    """Their names are read before it is known that they are not Examples."""
    rows = data.draw(
        st.lists(
            st.tuples(st.booleans(), st.dictionaries(NAMES, st.integers(0, 9), max_size=30)),
            max_size=9,
        )
    )
    payloads = []
    for is_broken, row in rows:
        payload = encode_example(row)
        features = payload[2 if len(payload) < 130 else 3 :]
        payloads.append(reference.example(features, b"\x80") if is_broken else payload)
    good = [row for is_broken, row in rows if not is_broken and row]
    if good:
        assert found(survey(payloads)) == expected(good)


def test_a_broken_record_with_very_many_names_changes_nothing(reference: Any) -> None:
    broken = encode_example({f"a{number:02d}": 1 for number in range(9)})
    rows = [encode_example({f"m{number:02d}": 1}) for number in range(40)]
    names = dict.fromkeys(("m00", "m01", "m02"), 2)
    assert found(survey(rows, [reference.example(broken[2:], b"\x80")], rows)) == (False, names)


def test_a_document_with_too_many_is_cut_too() -> None:
    known = survey([encode_example({"a": 1})]).features["a"].to_json()
    document = {"payload": "Example", "records": 1, "features": {f"{n}": known for n in range(99)}}
    document["features"]["\ud800"] = known  # no record can have it
    read = Schema.from_json(document)
    assert (read.is_complete, list(read.features)) == (False, ["0", "1", "10"])
    with pytest.raises(ValueError, match="is_complete"):
        Schema.from_json({"payload": "Example", "records": 1, "is_complete": 3})


def test_an_incomplete_schema_is_reported() -> None:
    whole = survey([encode_example({"a": 1})])
    assert whole.omission is None
    whole.check_complete("not raised")
    cut = survey([encode_example({f"id-{number}": 1 for number in range(99)})])
    with pytest.raises(OptionError, match=r"name them: .*8 .*'id-0'"):
        cut.check_complete("name them")


def test_long_names_are_reported() -> None:
    for has_short, listed in (
        (True, "such as 'short'"),
        (False, "no features, .* longer than 6 bytes"),
    ):
        rows = {f"{number}".zfill(MAX_BYTES // 4): number for number in range(5)}
        cut = survey([encode_example(rows | ({"short": 1} if has_short else {}))])
        assert not cut.is_complete
        with pytest.raises(OptionError, match=f"60 bytes.*{listed}"):
            cut.check_complete("name them")
