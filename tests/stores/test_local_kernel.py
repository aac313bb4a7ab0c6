"""The kernel that reads pieces of files."""

from __future__ import annotations

import errno
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.stores.local import kernel


@given(data=st.data())
def test_pieces_of_a_file(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Any pieces in any order are read to their places; nothing else changes."""
    content = random.Random(3).randbytes(1000)
    path = tmp_path_factory.mktemp("pieces") / "file"
    path.write_bytes(content)
    edges = data.draw(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=20))
    begins, ends = np.array([sorted(edge) for edge in edges], np.int64).reshape(-1, 2).T.copy()
    places = np.cumsum(ends - begins + 1) - (ends - begins)  # a byte before each
    out = np.full(int((ends - begins + 1).sum()), 7, np.uint8)
    with open(path, "rb") as file:
        count, error = kernel.read_pieces(file.fileno(), begins, ends, places, out)
        assert (count, error) == (len(begins), 0)
        assert file.tell() == 0
    expected = b"".join(b"\x07" + content[a:b] for a, b in zip(begins, ends, strict=True))
    assert out.tobytes() == expected


def test_missing_pieces_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    out = np.zeros(8, np.uint8)
    one, two, four, eleven = (np.array([n], np.int64) for n in (1, 2, 4, 11))
    with open(path, "rb") as file:
        assert kernel.read_pieces(file.fileno(), four, eleven, one, out) == (0, 0)
        for begins, ends, places in ((four, two, one), (-one, two, one), (one, four, -one)):
            with pytest.raises(IndexError):
                kernel.read_pieces(file.fileno(), begins, ends, places, out)
        with pytest.raises(IndexError, match="does not fit"):
            kernel.read_pieces(file.fileno(), one, four, np.array([6], np.int64), out)
        with pytest.raises(IndexError, match="differ"):
            kernel.read_pieces(file.fileno(), one, four, np.array([1, 2], np.int64), out)
    with open(path, "wb") as file:
        assert kernel.read_pieces(file.fileno(), one, four, one, out) == (0, errno.EBADF)


def test_headers_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    out = np.zeros((3, 12), np.uint8)
    with open(path, "rb") as file:
        for start, gap, rows in ((-1, 4, out), (0, -1, out), (0, 4, out[:, :7].copy())):
            with pytest.raises(IndexError):
                kernel.read_headers(file.fileno(), start, 100, gap, rows)
        assert kernel.read_headers(file.fileno(), 0, 100, 4, out) == (3, 0)
        assert kernel.read_headers(file.fileno(), 89, 100, 4, out) == (0, 0)
    with open(path, "ab") as file:
        assert kernel.read_headers(file.fileno(), 0, 100, 4, out) == (0, errno.EBADF)
