"""Which requests read many ranges: neighbours are merged, long ranges are split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

REQUEST_BYTES = 2 << 20
"""The most that one request reads: its transfer takes as long as the way to the server and back,
and those that are under way at the same time fit into memory."""

GAP_BYTES = 128 << 10
"""Ranges with fewer bytes between them are read together: the bytes cost less than a request."""


class Range(NamedTuple):
    """Some bytes of an object, of a version or of any; `stop` None means its end."""

    key: str
    start: int = 0
    stop: int | None = None
    version: str | None = None


class Request(NamedTuple):
    """A range that is read at once.

    parts: the ranges that it is for, with their indexes: they lie in it, or it in the only one.
    """

    wanted: Range
    parts: list[tuple[int, Range]]


def requests_for(ranges: Iterable[tuple[int, Range]]) -> Iterator[Request]:
    """Yield requests that read some ranges, each with an index.

    A longer range than REQUEST_BYTES is split, unless its end is unknown.
    """
    for (key, _), of_object in groupby(sorted(ranges, key=_place), lambda item: _place(item)[:2]):
        parts: list[tuple[int, Range]] = []
        begin = end = 0
        for index, wanted in of_object:
            start, stop, version = wanted[1:]
            if stop is None:
                yield Request(wanted, [(index, wanted)])
                continue
            if stop - start > REQUEST_BYTES:
                for at in range(start, stop, REQUEST_BYTES):
                    piece = Range(key, at, min(at + REQUEST_BYTES, stop), version)
                    yield Request(piece, [(index, wanted)])
                continue
            is_near = start <= end + GAP_BYTES and max(end, stop) - begin <= REQUEST_BYTES
            if parts and not is_near:
                yield Request(Range(key, begin, end, parts[0][1].version), parts)
                parts = []
            if not parts:
                begin = end = start
            parts.append((index, wanted))
            end = max(end, stop)
        if parts:
            yield Request(Range(key, begin, end, parts[0][1].version), parts)


def _place(item: tuple[int, Range]) -> tuple[str, str, int]:
    _, (key, start, _, version) = item
    return key, version or "", start
