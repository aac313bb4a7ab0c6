"""Payloads shown as raw protobuf fields.

The invariant: any bytes give fields or a CorruptDataError that says at which byte; the spans of the
fields at the top join from the first byte to the last, each with its tag before its value, and no
field has a number that protobuf does not allow.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from harness import corpus_files, mutated

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import decode_fields
from recordsmith.example.raw_fields import as_text, iter_fields
from recordsmith.wire import scan

GROUP = 3  # the wire type of its start


class Fuzz:
    watches_memory = False
    reached = ("fields", "refused")

    def __init__(self, _: Path) -> None:
        self.last = b""
        self.seeds = [b"\x08\x96\x01", b"\x13\x08\x01\x14", b"\x0d\x00\x00\x80\x3f"]
        for data in corpus_files():
            frames = scan(data)
            for start, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True):
                self.seeds.append(data[start : start + min(length, 500)])

    def one(self, dice: random.Random, counts: Counter[str]) -> None:
        data = self.last = mutated(dice.choice(self.seeds), self.seeds, dice)
        refused = None
        try:
            fields = decode_fields(data)
        except CorruptDataError as error:
            refused = error.defect
        if refused is not None:
            assert refused is Defect.MALFORMED_MESSAGE
            counts["refused"] += 1
            return
        spans = list(iter_fields(data, 0, len(data)))
        at = 0
        for span in spans:
            assert at == span.offset < span.start <= span.stop <= len(data)
            at = span.stop if span.wire_type != GROUP else after_group(data, span.stop)
        assert at == len(data)
        assert len(fields) <= len(spans)
        for field in fields:
            assert 0 < field.number < 2**29
            if isinstance(field.value, bytes):
                as_text(field.value)
        counts["fields"] += len(fields)


def after_group(data: bytes, at: int) -> int:
    """Behind the tag that ends a group."""
    while data[at] >= 128:
        at += 1
    return at + 1
