"""The kernel that edits payloads, compared with plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.example import KeyAction, Rewriter, classify, rewriting
from recordsmith.reshaping.edits import Edits, RecordOptionError
from recordsmith.reshaping.recoding import Recoder, RecodeTable
from recordsmith.wire import RecordBlock

KEYS = ["a", "b", "label", "größe", "😀", "x" * 130, ""]
TABLES: list[dict[Any, Any]] = [
    {-3: 7, 0: 1, 1: 0, 2: 2**62, "*": "*"},
    {0: 200, 1: 300, "*": -1},
    {1: 2, "2": 1},
    {"a": "", "": "b" * 200, "*": "*"},
]


def block_of(payloads: Sequence[bytes]) -> RecordBlock:
    """With something between the payloads, as there is in files."""
    lengths = np.array(list(map(len, payloads)), np.int64)
    starts = np.cumsum(lengths + 3) - lengths
    return RecordBlock(
        memoryview(b"".join(b"\xff..%b" % p for p in payloads)), starts, lengths, 5, 0
    )


def changed(change: Edits, payloads: Sequence[bytes]) -> list[bytes]:
    new = []
    for data, offsets in change.rewrite(block_of(payloads)):
        view = memoryview(data)
        assert len(view) == offsets[-1]
        new += [bytes(view[a:b]) for a, b in pairwise(offsets.tolist())]
    return new


@st.composite
def edits(draw: Any) -> dict[str, Any]:
    drop = draw(st.lists(st.sampled_from([*KEYS, "x*", "[ab]", "?"]), max_size=1))
    left = [key for key in KEYS if not any(key == n or fnmatchcase(key, n) for n in drop)]
    chosen = st.lists(st.sampled_from(left), unique=True, max_size=2)
    names = draw(st.permutations([*KEYS, "new", "y" * 300]))
    rename = {old: new for old, new in zip(draw(chosen), names, strict=False) if old != new}
    recode = {key: draw(st.sampled_from(TABLES)) for key in draw(chosen)}
    values = st.integers(-1, 9) | st.sampled_from(["", "z" * 200, []])
    added = draw(st.dictionaries(st.sampled_from([*KEYS, "add"]), values, max_size=1))
    add = {key: value for key, value in added.items() if key not in rename.values()}
    return {"drop": drop, "rename": rename, "recode": recode, "add": add}


def crowded(reference: Any, wire: SimpleNamespace) -> st.SearchStrategy[bytes]:
    """Payloads with few keys, which come again and again, in maps of several pieces."""
    r = reference
    ints = st.lists(st.integers(-3, 3).map(r.varint), max_size=3).map(b"".join)
    usual = ints.map(lambda packed: r.delimited(3, r.delimited(1, packed)))
    texts = st.sampled_from([b"", b"a", b"2"]).map(lambda t: r.delimited(1, r.delimited(1, t)))
    broken = st.sampled_from(
        [
            r.delimited(1, b"\x0a\x05abc"),
            r.delimited(2, r.delimited(1, b"abc")),
            r.delimited(3, r.delimited(1, b"\x80")),
            r.delimited(3, r.delimited(1, b"\1" + b"\xff" * 11 + b"\1")),
        ]
    )
    features = usual | usual | usual | texts | texts | wire.feature | broken
    keys = st.sampled_from([b"a", b"b", b"label", b""]).map(lambda key: r.delimited(1, key))
    between = st.sampled_from([b"", b"", b"", r.delimited(3, b"odd"), r.tag(2, r.VARINT) + b"\5"])

    def maps(
        field: int, values: st.SearchStrategy[bytes], odd: st.SearchStrategy[bytes]
    ) -> st.SearchStrategy[bytes]:
        fields = values.map(lambda value: r.delimited(2, value))
        entries = st.one_of(
            st.tuples(keys, fields),
            st.tuples(keys, fields),
            st.tuples(fields, keys),
            st.tuples(fields),
            odd.flatmap(lambda field: st.tuples(keys, st.just(field), fields)),
            st.tuples(keys, fields) if odd is nothing else st.tuples(keys),
        ).map(lambda parts: r.delimited(1, b"".join(parts)))
        return st.lists(entries | odd, max_size=5).map(lambda e: r.delimited(field, b"".join(e)))

    nothing = st.just(b"")
    examples = st.lists(maps(1, features, between) | between, max_size=3).map(b"".join)
    plain = st.lists(maps(1, features, nothing), max_size=2).map(b"".join)
    steps = st.lists((usual | texts).map(lambda f: r.delimited(1, f)), max_size=2).map(b"".join)
    mixed = maps(1, usual | texts, nothing) | maps(2, steps, nothing)
    sequences = st.lists(mixed, min_size=1, max_size=3).map(b"".join)
    return examples | plain | sequences


def by_hand(reference_edits: ModuleType, payload: bytes, edit: dict[str, Any]) -> bytes | Exception:
    """The new payload, or what is wrong."""
    if classify(payload) not in ("Example", "SequenceExample"):
        return rs.NotAnExampleError("other")
    tables = {key: RecodeTable.from_option(table, key) for key, table in edit["recode"].items()}
    added = {}
    for key, value in edit["add"].items():
        alone = rs.encode_example({key: value})
        (section,) = reference_edits.fields(alone, 0, len(alone))
        added[key] = alone[section.content :]
    try:
        return reference_edits.edited(  # type: ignore[no-any-return]
            payload,
            drop=edit["drop"],
            rename=edit["rename"],
            added=added,
            recoders={key: Recoder(key, table) for key, table in tables.items()},
        )
    except (reference_edits.Clash, rs.OptionError, rs.DataError) as error:
        return error  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("piece_bytes", [60, rewriting._PIECE_BYTES])
def test_payloads_of_any_writer_become_those_of_plain_python(
    wire: SimpleNamespace,
    reference: Any,
    reference_edits: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    piece_bytes: int,
) -> None:
    monkeypatch.setattr(rewriting, "_PIECE_BYTES", piece_bytes)
    dense = crowded(reference, wire)
    payloads = st.one_of(dense, dense, wire.mutated(dense), wire.examples, wire.sequences)

    @settings(max_examples=200, deadline=None)
    @given(payloads=st.lists(payloads, max_size=8), edit=edits())
    def check(payloads: list[bytes], edit: dict[str, Any]) -> None:
        results = [(payload, by_hand(reference_edits, payload, edit)) for payload in payloads]
        good = [payload for payload, new in results if isinstance(new, bytes)]
        expected = [new for _, new in results if isinstance(new, bytes)]
        change = Edits(**edit)
        for _ in range(2):  # the second time, everything was met before
            assert changed(change, good) == expected
        for payload, error in results:
            if isinstance(error, Exception):
                assert_refused(change, good, payload, error)
        assert changed(change, good) == expected

    check()


def assert_refused(change: Edits, good: list[bytes], bad: bytes, error: Exception) -> None:
    """Assert that the error has the same place and the same fields."""
    with pytest.raises((rs.DataError, RecordOptionError)) as caught:
        changed(change, [*good, bad])
    found: Any = caught.value
    if not isinstance(error, rs.DataError):
        assert isinstance(found, RecordOptionError)
        if isinstance(error, rs.OptionError):  # of a table
            assert type(found.error) is rs.OptionError
            assert vars(found.error) == vars(error)
        else:
            assert found.error.option == ("rename" if "renamed" in str(error) else "add")
            assert found.error.value in str(error)
        assert found.number == len(good)
        return
    if error.defect is rs.Defect.NOT_AN_EXAMPLE:
        with pytest.raises(rs.DataError) as expected:
            rs.decode_sequence_example(bad)
            rs.decode_example(bad)
        assert found.defect in (expected.value.defect, rs.Defect.NOT_AN_EXAMPLE)
    else:
        assert (found.defect, found.detail) == (error.defect, error.detail)
    assert found.record == len(good)


def test_a_record_that_no_reader_takes_is_refused() -> None:
    def doubled(*examples: dict[str, Any], **options: Any) -> list[bytes]:
        actions = [KeyAction(), KeyAction(new_value=lambda value, _: value + value)]
        rewriter = Rewriter(actions, lambda key: int(key == b"v"), {}, lambda _: None, **options)
        block = block_of([rs.encode_example(example) for example in examples])
        pieces = rewriter.rewrite(block.buffer, block.starts, block.lengths)
        return [bytes(data) for data, _ in pieces]

    payload = rs.encode_example({"v": "x" * 50})
    (longer,) = doubled({"v": "x" * 50})
    assert doubled({"v": "x" * 50}, most_bytes=len(longer)) == [longer]
    with pytest.raises(rs.OptionError, match="longer than 100 bytes"):
        doubled({"w": 1}, {"v": "x" * 50}, most_bytes=100)
    with pytest.raises(rs.OptionError, match=f"longer than {len(payload) - 1} bytes"):
        doubled({"w": "x" * 50}, most_bytes=len(payload) - 1)


def test_invalid_numbers_of_actions() -> None:
    block = block_of([rs.encode_example({"a": 1})])
    wrong: Any = KeyAction(new_value=lambda *_: None)
    for actions, number, error in (
        ([KeyAction()], 1, IndexError),
        ([KeyAction()], -1, IndexError),
        ([KeyAction(), wrong], 1, TypeError),
    ):
        rewriter = Rewriter(actions, lambda _, n=number: n, {}, lambda _: None)
        with pytest.raises(error):
            list(rewriter.rewrite(block.buffer, block.starts, block.lengths))
    with pytest.raises(IndexError, match="no action"):
        Rewriter([], lambda _: 0, {}, lambda _: None)
