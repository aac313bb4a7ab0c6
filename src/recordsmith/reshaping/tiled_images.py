"""Divide the JPEGs of records into tiles; everything else is copied byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import is_
from typing import Any

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.errors import DataError
from recordsmith.example import KeyAction, Rewriter, SchemaSurvey
from recordsmith.image import ImageOptions, store_image
from recordsmith.reshaping.recoding import change_values

_JPEG = b"\xff\xd8\xff"
_OPTIONS = ImageOptions(tiles=True)
UNREADABLE = "JPEGs were kept without tiles, because they are unreadable"


class TiledImages:
    """Divides the JPEGs of records into tiles. For one thread at a time."""

    def __init__(self, note: Callable[[str, int], None]) -> None:
        """`note` is called with what happened to an image, and the number of its record."""
        self._note = note
        self._survey = SchemaSurvey()
        self._numbers: dict[bytes, int] = {}
        self._rewriter = self._make_rewriter()

    def rewrite(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> Iterator[tuple[memoryview, Int64Array]]:
        """Yield payloads with tiled JPEGs, as `Rewriter.rewrite` does."""
        self._find_keys(buffer, starts, lengths)
        try:
            yield from self._rewriter.rewrite(buffer, starts, lengths)
        except DataError as error:
            error.record = self._rewriter.row
            raise

    def _find_keys(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Find the features that may hold images; the rewriter needs an action for each key."""
        self._survey.update(buffer, starts, lengths)
        known = len(self._numbers)
        for key in self._survey.bytes_keys():
            self._numbers.setdefault(key, 1 + len(self._numbers))
        if len(self._numbers) > known:
            self._rewriter = self._make_rewriter()

    def _make_rewriter(self) -> Rewriter:
        actions = [KeyAction(), *(KeyAction(new_value=self._tiled) for _ in self._numbers)]
        numbers = dict(self._numbers)
        return Rewriter(actions, lambda key: numbers.get(key, 0), {}, lambda _: None)

    def _tiled(self, value: bytes, field: int) -> bytes:
        return change_values(value, field, self._tiled_values) if _JPEG in value else value

    def _tiled_values(self, values: Any) -> Any:
        if not isinstance(values, list):
            return values
        tiled = [self._tiled_image(data) for data in values]
        return values if all(map(is_, tiled, values)) else tiled

    def _tiled_image(self, data: bytes) -> bytes:
        if not data.startswith(_JPEG):
            return data
        try:
            stored = store_image(data, _OPTIONS)
        except DataError:
            self._note(UNREADABLE, self._rewriter.row)
            return data
        for change in stored.changes:
            self._note(change, self._rewriter.row)
        return stored.data
