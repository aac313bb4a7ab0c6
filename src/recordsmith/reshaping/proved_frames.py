"""Which features do rescued records have, told from their frames on the way into the new file?

The frames that a rescue hands out were proved by their checksums, and are written as they are, so
they need no reading back, as where whole shards are copied. A frame that comes in pieces is put
together here and proved once more: its bytes may come from two places. One that is too long for
that is left to be read back. Never holds more than one such frame.
"""

from __future__ import annotations

import numpy as np

from recordsmith.example import Schema, SchemaSurvey
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES, Whole, scan
from recordsmith.wire.rescuing import LONGEST_HELD_BYTES


class ProvedFrames:
    """The schema of frames that pass by, as long as it can be told."""

    def __init__(self) -> None:
        self._survey = SchemaSurvey()
        self._pieces = bytearray()  # of a frame that has not ended yet
        self._goes_on = True

    def add(self, whole: Whole) -> None:
        """See the next piece of the file that is written."""
        if not self._goes_on:
            return
        frames, lengths = whole.frames, whole.lengths
        count = len(lengths)
        if self._pieces or len(frames) != int(lengths.sum()) + FRAME_BYTES * count:
            self._add_piece(whole)
            return
        starts = np.cumsum(lengths + FRAME_BYTES) - lengths - (FRAME_BYTES - HEADER_BYTES)
        self._survey.update(frames, starts, lengths)

    def schema_of(self, record_count: int) -> Schema | None:
        """The schema, if that many records were seen; else they are to be read back."""
        schema = self._survey.finish()
        return schema if schema.record_count == record_count else None

    def _add_piece(self, whole: Whole) -> None:
        if len(self._pieces) + len(whole.frames) > LONGEST_HELD_BYTES:
            self._give_up()
            return
        self._pieces += whole.frames
        if not len(whole.lengths):
            return
        found = scan(self._pieces)
        if found.stop != len(self._pieces) or found.lengths.tolist() != whole.lengths.tolist():
            self._give_up()
            return
        self._survey.update(self._pieces, found.starts, found.lengths)
        self._pieces = bytearray()

    def _give_up(self) -> None:
        self._goes_on = False
        self._pieces = bytearray()
