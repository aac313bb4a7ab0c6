"""The kernel that edits payloads, held against the same in plain Python."""

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
from recordsmith.reshaping.contract import RefusedError
from recordsmith.reshaping.edits import Edits
from recordsmith.reshaping.recode_table import RecodeTable
from recordsmith.reshaping.recoder import Recoder
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
    return RecordBlock(memoryview(b"".join(b"\xff..%b" % p for p in payloads)), starts, lengths, 5, 0)


def changed(change: Edits, payloads: Sequence[bytes]) -> list[bytes]:
    new = []
    for data, offsets in change.changed(block_of(payloads)):
        view = memoryview(data)
        assert len(view) == offsets[-1]
        new += [bytes(view[a:b]) for a, b in pairwise(offsets.tolist())]
    return new


@st.composite
def edits(draw: Any) -> dict[str, Any]:
    drop = draw(st.lists(st.sampled_from([*KEYS, "x*", "[ab]"]), max_size=2))
    left = [key for key in KEYS if not any(key == n or fnmatchcase(key, n) for n in drop)]
    chosen = st.lists(st.sampled_from(left or ["none"]), unique=True, max_size=2)
    names = draw(st.permutations([*KEYS, "new", "y" * 300]))
    rename = {old: new for old, new in zip(draw(chosen), names, strict=False) if old != new}
    recode = {key: draw(st.sampled_from(TABLES)) for key in draw(chosen)}
    values = st.integers(-1, 9) | st.sampled_from(["", "z" * 200, []])
    added = draw(st.dictionaries(st.sampled_from([*KEYS, "add"]), values, max_size=2))
    add = {key: value for key, value in added.items() if key not in rename.values()}
    return {"drop": drop, "rename": rename, "recode": recode, "add": add}


def by_hand(editing: ModuleType, payload: bytes, edit: dict[str, Any]) -> bytes | Exception:
    """The new payload, or what is wrong."""
    if classify(payload) not in ("Example", "SequenceExample"):
        return rs.CorruptDataError(rs.Defect.NOT_AN_EXAMPLE, "")
    tables = {key: RecodeTable.of(table, key) for key, table in edit["recode"].items()}
    added = {}
    for key, value in edit["add"].items():
        alone = rs.encode_example({key: value})
        (section,) = editing.fields(alone, 0, len(alone))
        added[key] = alone[section.content :]
    try:
        return editing.edited(  # type: ignore[no-any-return]
            payload,
            drop=edit["drop"],
            rename=edit["rename"],
            added=added,
            recoders={key: Recoder(key, table) for key, table in tables.items()},
        )
    except (editing.Clash, rs.OptionError, rs.CorruptDataError) as error:
        return error  # type: ignore[no-any-return]


@pytest.mark.parametrize("piece_bytes", [1, 60, rewriting._PIECE_BYTES])
def test_payloads_of_any_writer_become_those_of_plain_python(
    wire: SimpleNamespace, editing: ModuleType, monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    monkeypatch.setattr(rewriting, "_PIECE_BYTES", piece_bytes)
    payloads = st.one_of(
        wire.examples,
        wire.sequences,
        wire.features.map(rs.encode_example),
        wire.mutated(wire.examples),
    )

    @settings(max_examples=120, deadline=None)
    @given(payloads=st.lists(payloads, max_size=6), edit=edits())
    def check(payloads: list[bytes], edit: dict[str, Any]) -> None:
        expected = [by_hand(editing, payload, edit) for payload in payloads]
        bad = next((row for row, new in enumerate(expected) if isinstance(new, Exception)), None)
        change = Edits(**edit)
        for _ in range(2):  # the second time, everything was met before
            assert changed(change, payloads[:bad]) == expected[:bad]
        if bad is None:
            return
        error = expected[bad]
        if isinstance(error, rs.CorruptDataError):
            with pytest.raises(rs.CorruptDataError) as caught:
                changed(change, payloads)
            assert caught.value.position == bad
            if error.defect is rs.Defect.NOT_AN_EXAMPLE:
                with pytest.raises(rs.CorruptDataError) as told:
                    rs.decode_sequence_example(payloads[bad])
                    rs.decode_example(payloads[bad])
                assert told.value.defect in (rs.Defect.NOT_AN_EXAMPLE, rs.Defect.MALFORMED_EXAMPLE)
            else:
                assert caught.value.detail == error.detail
        else:
            with pytest.raises(RefusedError) as refused:
                changed(change, payloads)
            assert refused.value.where.position == bad
            assert str(refused.value) == str(error)
        assert changed(change, payloads[:bad]) == expected[:bad]  # it can be used again

    check()


# ---- what is remembered, and how much is in memory -----------------------------------------------


class Asked:
    """Counts what a Rewriter asks: keys that begin with v have other values, d are dropped."""

    def __init__(self, **options: Any) -> None:
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        actions = [KeyAction(), KeyAction(drops=True), KeyAction(new_value=self._new_value)]
        self._rewriter = Rewriter(actions, self._action_of, {}, lambda keys: None, **options)

    def _action_of(self, key: bytes) -> int:
        self.keys.append(key)
        return {b"d": 1, b"v": 2}.get(key[:1], 0)

    def _new_value(self, value: bytes, field: int) -> bytes:
        self.values.append(value)
        return value + value if len(value) < 2000 else b""

    def __call__(self, *examples: dict[str, Any]) -> list[bytes]:
        block = block_of([rs.encode_example(example) for example in examples])
        return [
            bytes(data[a:b])
            for data, offsets in self._rewriter.rewrite(block.buffer, block.starts, block.lengths)
            for a, b in pairwise(offsets.tolist())
        ]


def test_keys_are_asked_for_once() -> None:
    asked = Asked()
    wide = {f"{'dk'[number % 2]}{number:05}": number for number in range(10_050)}
    kept = {key: value for key, value in wide.items() if key[0] == "k"}
    for calls in (10_050, 50):  # so many are not remembered
        asked.keys.clear()
        assert asked(wide) == [rs.encode_example(kept)]
        assert len(asked.keys) == calls
    long = "k" * 1001
    asked = Asked()
    asked({long: 1, "k" * 1000: 1}, {long: 1, "k" * 1000: 1})
    assert sorted(map(len, asked.keys)) == [1000, 1001, 1001]


def test_values_are_asked_for_once() -> None:
    asked = Asked()
    examples = [{"v": number} for number in range(10_050)]
    expected = None
    for calls in (10_050, 50):
        asked.values.clear()
        found = asked(*examples, *examples[:10])
        assert expected is None or found == expected
        expected = found
        assert len(asked.values) == calls
    asked = Asked()
    long = asked({"v": "l" * 1100}, {"v": "l" * 1100}, {"v": "l" * 3000, "w": 1}, {"v": 1})
    assert len(asked.values) == 4
    assert long[0] == long[1] != long[2]
    assert rs.decode_example(long[2]).keys() == {"v", "w"}


def test_pieces_are_as_large_as_one_record_makes_them() -> None:
    change = Edits(add={"large": bytes(1 << 20)})
    sizes = [len(data) for data, _ in change.changed(block_of([b""] * 12))]  # type: ignore[arg-type]
    assert sum(sizes) > 12 << 20
    assert max(sizes) < 4 << 20


def test_a_record_that_no_reader_takes_is_refused() -> None:
    payload = rs.encode_example({"v": "x" * 50})
    (longer,) = Asked()({"v": "x" * 50})
    assert Asked(most_bytes=len(longer))({"v": "x" * 50}) == [longer]
    with pytest.raises(rs.OptionError, match="longer than 100 bytes"):
        Asked(most_bytes=100)({"w": 1}, {"v": "x" * 50})
    with pytest.raises(rs.OptionError, match=f"longer than {len(payload) - 1} bytes"):
        Asked(most_bytes=len(payload) - 1)({"w": "x" * 50})


def test_answers_that_are_none() -> None:
    block = block_of([rs.encode_example({"a": 1})])
    wrong: Any = KeyAction(new_value=lambda value, field: None)  # type: ignore[arg-type, return-value]
    for actions, number, error in (
        ([KeyAction()], 1, IndexError),
        ([KeyAction()], -1, IndexError),
        ([KeyAction(), wrong], 1, TypeError),
    ):
        rewriter = Rewriter(actions, lambda _, n=number: n, {}, lambda keys: None)  # type: ignore[misc]
        with pytest.raises(error):
            list(rewriter.rewrite(block.buffer, block.starts, block.lengths))
    with pytest.raises(IndexError, match="no action"):
        Rewriter([], lambda _: 0, {}, lambda keys: None)
