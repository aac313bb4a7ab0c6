"""Which parts of which documents make up rows of a fixed number of tokens.

Documents have places, from 0, in the order in which they are packed. A row consists of pieces: runs
of the tokens of one document. The layout is computed once, from the lengths of the documents, and
takes 8 bytes a document, and 8 bytes a row where rows are padded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.loading.order.best_fit import best_fit
from recordsmith.stores import scratch_array
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.permutation import Permutations

_AT_ONCE = 1 << 20


class Documents:
    """The lengths of documents, and the order in which they are packed.

    Attributes:
        count: how many documents there are.
        token_counts: integers, (count,).
    """

    def __init__(
        self, token_counts: npt.NDArray[Any], extra_count: int, order: Permutations | None
    ) -> None:
        """`extra_count`: tokens that are appended to each document that has some."""
        self.count = len(token_counts)
        self.token_counts = token_counts
        self._extra_count = extra_count
        self._order = order

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the numbers themselves, also if they are in a file."""
        return {**vars(self), "token_counts": np.array(self.token_counts)}

    def at(self, places: Int64Array) -> Int64Array:
        """Return which documents are at some places: int64, (n,)."""
        return places if self._order is None else self._order.numbers(0, places)

    def lengths(self, documents: Int64Array) -> Int64Array:
        """Return the lengths of some documents: int64, (n,)."""
        lengths = self.token_counts[documents].astype(np.int64)
        return lengths + self._extra_count * (lengths > 0)

    def windows(self, size: int) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield all documents in their order, and their lengths, `size` at a time."""
        for start in range(0, self.count, size):
            documents = self.at(np.arange(start, min(start + size, self.count)))
            yield documents, self.lengths(documents)


class Pieces(NamedTuple):
    """The pieces of some rows, row by row: int64, (n,) each.

    rows: the index of the row in the request.
    documents: the number of the document.
    starts, stops: which of its tokens.
    """

    rows: Int64Array
    documents: Int64Array
    starts: Int64Array
    stops: Int64Array


class RowLayout(ABC):
    """Rows of `length` tokens.

    Attributes:
        row_count: how many rows there are.
        token_count: of all documents.
    """

    row_count: int
    token_count: int

    @abstractmethod
    def pieces(self, rows: Int64Array) -> Pieces:
        """Return the pieces of some rows."""


class StreamLayout(RowLayout):
    """Documents end to end, cut into rows: all are full, except the last one."""

    def __init__(self, documents: Documents, length: int) -> None:
        self._documents = documents
        self._length = length
        self._begins = scratch_array(documents.count + 1, np.int64)
        self._begins[0] = stop = 0
        for _, lengths in documents.windows(_AT_ONCE):
            start, stop = stop, stop + len(lengths)
            self._begins[start + 1 : stop + 1] = np.cumsum(lengths) + self._begins[start]
        self.token_count = int(self._begins[-1])
        self.row_count = -(-self.token_count // length)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_begins": np.array(self._begins)}

    def pieces(self, rows: Int64Array) -> Pieces:
        low = rows * self._length
        high = np.minimum(low + self._length, self.token_count)
        first = np.searchsorted(self._begins, low, side="right") - 1
        counts = np.searchsorted(self._begins, high, side="left") - first
        of_row = np.repeat(np.arange(len(rows)), counts)
        places = _ranges(first, counts)
        begins = self._begins[places]
        starts = np.maximum(low[of_row] - begins, 0)
        stops = np.minimum(high[of_row], self._begins[places + 1]) - begins
        has_tokens = stops > starts
        of_row, places = of_row[has_tokens], places[has_tokens]
        return Pieces(of_row, self._documents.at(places), starts[has_tokens], stops[has_tokens])


class BestFitLayout(RowLayout):
    """Whole documents, best fit within windows of places; rows are padded.

    The longest documents of a window are placed first; the emptiest row joins the next window.
    Longer documents than a row are cut into full rows and a rest. Rows are numbered by their first
    document within a window, and documents stay in their order within a row.
    """

    def __init__(self, documents: Documents, length: int, window: int) -> None:
        self._documents = documents
        self._length = length
        self.token_count = piece_count = longest = 0
        for _, lengths in documents.windows(_AT_ONCE):
            self.token_count += int(lengths.sum())
            piece_count += int((-(-lengths // length)).sum())
            longest = max(longest, int(lengths.max()))
        # of each piece: the number of its document, and how many pieces of that come before it
        self._number_bits = (longest // length).bit_length()
        self._codes = scratch_array(piece_count, np.int64)
        self._begins = scratch_array(piece_count + 1, np.int64)  # of rows, in `_codes`
        self._begins[0] = self.row_count = filled = 0
        codes = sizes = np.empty(0, np.int64)
        for numbers, lengths in documents.windows(window):
            more, more_sizes = self._cut(numbers, lengths)
            codes, sizes = np.concatenate([codes, more]), np.concatenate([sizes, more_sizes])
            is_last = filled + len(codes) == piece_count
            order, counts = _best_fit_decreasing(sizes, length, keeps_all=is_last)
            stop = self.row_count + len(counts)
            begins = offsets_from_lengths(counts) + filled
            self._begins[self.row_count : stop + 1] = begins
            self._codes[filled : begins[-1]] = codes[order]
            self.row_count, filled = stop, int(begins[-1])
            codes, sizes = np.delete(codes, order), np.delete(sizes, order)

    def __getstate__(self) -> dict[str, Any]:
        begins = self._begins[: self.row_count + 1]
        return {**vars(self), "_codes": np.array(self._codes), "_begins": np.array(begins)}

    def _cut(self, numbers: Int64Array, lengths: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the codes and the sizes of the pieces of some documents."""
        counts = -(-lengths // self._length)
        before = _ranges(np.zeros_like(counts), counts)
        rests = np.repeat(lengths, counts) - before * self._length
        codes = np.repeat(numbers, counts) << self._number_bits | before
        return codes, np.minimum(rests, self._length)

    def pieces(self, rows: Int64Array) -> Pieces:
        begins = self._begins[rows]
        counts = self._begins[rows + 1] - begins
        codes = self._codes[_ranges(begins, counts)]
        documents = codes >> self._number_bits
        starts = (codes & (1 << self._number_bits) - 1) * self._length
        stops = np.minimum(starts + self._length, self._documents.lengths(documents))
        return Pieces(np.repeat(np.arange(len(rows)), counts), documents, starts, stops)


def _ranges(begins: Int64Array, counts: Int64Array) -> Int64Array:
    """Return the numbers begin, begin + 1, … of each range, end to end."""
    offsets = offsets_from_lengths(counts)
    return np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], counts)


def _best_fit_decreasing(
    sizes: Int64Array, length: int, *, keeps_all: bool
) -> tuple[Int64Array, Int64Array]:
    """Pack pieces, the largest first, and leave out the emptiest row unless `keeps_all`.

    Returns the indexes of the pieces, row by row, and how many each row has.
    """
    rows = np.empty(len(sizes), np.int64)
    decreasing = np.argsort(-sizes, kind="stable")
    rows[decreasing], row_count = best_fit(sizes[decreasing], length)
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=row_count)
    begins = offsets_from_lengths(counts)[:-1]
    by_first = np.argsort(order[begins])
    if not keeps_all and row_count:
        emptiest = np.bincount(rows, weights=sizes).argmin()
        by_first = by_first[by_first != emptiest]
    counts = counts[by_first]
    return order[_ranges(begins[by_first], counts)], counts
