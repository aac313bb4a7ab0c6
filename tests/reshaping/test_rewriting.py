"""Records are rewritten in blocks, whose payloads are cut into pieces, as they are one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.example import KeyAction, Rewriter, rewriting
from recordsmith.reshaping.edits import Edits, RecordOptionError
from recordsmith.wire import RecordBlock


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


@pytest.mark.parametrize("piece_bytes", [1, 60, rewriting._PIECE_BYTES])
def test_a_block_is_rewritten_as_its_records_are(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int
) -> None:
    examples: list[dict[str, Any]] = [
        {"a": [number % 3] * (number % 4), "b": "x" * number, f"k{number % 7}": number}
        for number in range(100)
    ]
    payloads = [rs.encode_example(example) for example in examples]
    payloads += [rs.encode_sequence_example(example, {"a": [[1], []]}) for example in examples]
    change = Edits(
        drop=["k[0-3]"],
        rename={"b": "new"},
        recode={"a": {0: 2**40, "*": "*"}},
        add={"added": "y" * 40},
    )
    expected = [change.apply(payload) for payload in payloads]
    monkeypatch.setattr(rewriting, "_PIECE_BYTES", piece_bytes)
    for _ in range(2):  # the second time, every key is known
        assert changed(change, payloads) == expected
    bad: list[tuple[bytes, type[Exception]]] = [
        (b"no example", rs.DataError),
        (payloads[5][:-1], rs.DataError),
        (rs.encode_example({"added": 1}), RecordOptionError),
    ]
    for payload, kind in bad:
        with pytest.raises(kind) as caught:
            changed(change, [*payloads[:9], payload])
        error: Any = caught.value
        assert getattr(error, "record", None) == 9 or error.number == 9
    assert changed(change, payloads) == expected


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
