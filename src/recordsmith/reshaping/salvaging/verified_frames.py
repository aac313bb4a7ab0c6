"""The schema of recovered records, from their frames while they are written.

The checksums of these frames were verified, so the new file need not be read back. A frame that
comes in pieces is joined and verified again; if it is too long for that, the file is read back.
"""

from __future__ import annotations

import numpy as np

from recordsmith.example import Schema, SchemaSurvey
from recordsmith.wire import FRAME_BYTES, HEADER_BYTES, IntactFrames, scan
from recordsmith.wire.recovery import LONGEST_HELD_BYTES


class VerifiedFrames:
    """Collects the schema of written frames, as long as all can be held in memory."""

    def __init__(self) -> None:
        self._survey = SchemaSurvey()
        self._pieces = bytearray()  # of an incomplete frame
        self._is_active = True

    def add(self, whole: IntactFrames) -> None:
        """Add the next written piece."""
        if not self._is_active:
            return
        frames, lengths = whole.frames, whole.lengths
        count = len(lengths)
        if self._pieces or len(frames) != int(lengths.sum()) + FRAME_BYTES * count:
            self._add_piece(whole)
            return
        starts = np.cumsum(lengths + FRAME_BYTES) - lengths - (FRAME_BYTES - HEADER_BYTES)
        self._survey.update(frames, starts, lengths)

    def schema_of(self, record_count: int) -> Schema | None:
        """Return the schema if this number of records was seen, otherwise None."""
        schema = self._survey.finish()
        return schema if schema.record_count == record_count else None

    def _add_piece(self, whole: IntactFrames) -> None:
        if len(self._pieces) + len(whole.frames) > LONGEST_HELD_BYTES:
            self._stop()
            return
        self._pieces += whole.frames
        if not len(whole.lengths):
            return
        found = scan(self._pieces)
        if found.stop != len(self._pieces) or found.lengths.tolist() != whole.lengths.tolist():
            self._stop()
            return
        self._survey.update(self._pieces, found.starts, found.lengths)
        self._pieces = bytearray()

    def _stop(self) -> None:
        self._is_active = False
        self._pieces = bytearray()
