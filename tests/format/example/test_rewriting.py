"""The rewriter of payloads; `tests/writing/reshaping/test_edits.py` tests what it writes."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.format.example.rewriting import KeyAction, Rewriter


def _rewritten(rewriter: Rewriter, payloads: list[bytes]) -> list[bytes]:
    ends = np.cumsum([0, *map(len, payloads)])
    return [
        bytes(data[start:stop])
        for data, offsets in rewriter.rewrite(b"".join(payloads), ends[:-1], np.diff(ends))
        for start, stop in itertools.pairwise(offsets)
    ]


def test_a_second_call_at_the_same_time_is_refused() -> None:
    """Of another thread, or of what it asks: they would change the same memory."""
    payload = rs.encode_example({"id": [1], "more": [2]})
    refused: list[Exception] = []

    def action_of(key: bytes) -> int:
        for call in (lambda: _rewritten(rewriter, [payload]), in_thread):
            with pytest.raises(RuntimeError, match="one thread at a time") as caught:
                call()
            refused.append(caught.value)
        return int(key == b"more")

    def in_thread() -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_rewritten, rewriter, [payload]).result(10)

    keep, drop = KeyAction(), KeyAction(drops=True)
    rewriter = Rewriter([keep, drop], action_of, {}, lambda _: None)
    for _ in range(2):  # and it can be used again
        assert _rewritten(rewriter, [payload, payload]) == 2 * [rs.encode_example({"id": [1]})]
    assert len(refused) == 4  # two keys, asked for once


def test_threads_that_share_a_rewriter_get_their_records_or_an_error() -> None:
    payload = rs.encode_example({"id": [1], "more": [2]})
    expected = 50 * [rs.encode_example({"id": [1]})]
    actions = [KeyAction(), KeyAction(drops=True)]
    rewriter = Rewriter(actions, lambda key: int(key == b"more"), {}, lambda _: None)

    def rewrite(_: int) -> bool:
        try:
            assert _rewritten(rewriter, 50 * [payload]) == expected
        except RuntimeError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert any(pool.map(rewrite, range(200)))
