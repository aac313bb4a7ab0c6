"""What changed between two records? Their features in short: enough to compare and to tell.

Of each feature a digest of its values and a few words are kept, so that thousands of records can be
compared without holding their pictures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from recordsmith.errors import CorruptDataError
from recordsmith.examining.diff.matching import digest_of
from recordsmith.example import FeatureValue, SequenceExample, decode_payload
from recordsmith.example.raw_fields import as_text

_VALUES_SHOWN = 4
_TEXT_SHOWN = 40

Features = Mapping[str, FeatureValue]


class FeatureNote(NamedTuple):
    """One feature of one record.

    digest: of its kind and values.
    words: its values, cut to a few words.
    """

    digest: bytes
    words: str


RecordNotes = dict[tuple[str, str], FeatureNote]
"""By section of the schema and name."""


@dataclass(frozen=True)
class FeatureChange:
    """One feature that two records have in common, but not its values; or that one of them lacks.

    section: features, context or feature_lists.
    a, b: its values in a few words; None where the record lacks it.
    """

    section: str
    feature: str
    a: str | None
    b: str | None

    def to_json(self) -> dict[str, Any]:
        """section, feature, a, b."""
        return dict(vars(self))


def take_notes(payload: memoryview) -> RecordNotes | None:
    """The features of a record; None where it has none, as it is no Example."""
    example = _decoded(payload)
    if example is None:
        return None
    if not isinstance(example, SequenceExample):
        return {("features", key): _note(value) for key, value in example.items()}
    notes = {("context", key): _note(value) for key, value in example.context.items()}
    for key, steps in example.feature_lists.items():
        parts = [_note(step) for step in steps]
        digest = b"".join(part.digest for part in parts)
        words = f"{len(parts)} step{'' if len(parts) == 1 else 's'}"
        if parts:
            words += f", the first {parts[0].words}"
        notes["feature_lists", key] = FeatureNote(digest_of(digest), words)
    return notes


def changes_between(a: RecordNotes, b: RecordNotes) -> tuple[FeatureChange, ...]:
    """What differs, sorted by name."""
    changes = []
    for section, key in sorted(a.keys() | b.keys()):
        of_a, of_b = a.get((section, key)), b.get((section, key))
        if of_a is not None and of_b is not None and of_a.digest == of_b.digest:
            continue
        words_a = None if of_a is None else of_a.words
        words_b = None if of_b is None else of_b.words
        if words_a == words_b:  # of the same length, or the same up to where it is cut
            words_b = f"other {words_b}" if " bytes" in str(words_b) else f"{words_b}, differs"
        changes.append(FeatureChange(section, key, words_a, words_b))
    return tuple(changes)


def key_of(payload: memoryview, key: str) -> FeatureValue | None:
    """The values of the feature by which records are known; None where there are none."""
    example = _decoded(payload)
    if example is None:
        return None
    features = example.context if isinstance(example, SequenceExample) else example
    value = features.get(key)
    return None if value is None or len(value) == 0 else value


def value_digest(value: FeatureValue) -> bytes:
    """16 bytes that are equal for equal values of the same kind."""
    digest = blake2b(digest_size=16)
    if isinstance(value, list):
        digest.update(b"bytes")
        for item in value:
            digest.update(len(item).to_bytes(8, "little"))
            digest.update(item)
    else:
        digest.update(value.dtype.name.encode())
        digest.update(value.data)
    return digest.digest()


def in_words(value: FeatureValue) -> str:
    """Values, cut to a few words."""
    if isinstance(value, list):
        shown = [_bytes_words(item) for item in value[:_VALUES_SHOWN]]
    elif value.dtype == np.float32:
        shown = [str(item) for item in value[:_VALUES_SHOWN]]  # as short as says the same
    else:
        shown = [str(item) for item in value[:_VALUES_SHOWN].tolist()]
    if len(value) == 1:
        return shown[0]
    more = f", … {len(value):,} values" if len(value) > _VALUES_SHOWN else ""
    return f"[{', '.join(shown)}{more}]"


def _decoded(payload: memoryview) -> Features | SequenceExample | None:
    try:
        return decode_payload(payload)
    except CorruptDataError:  # some other message, or other data
        return None


def _note(value: FeatureValue) -> FeatureNote:
    return FeatureNote(value_digest(value), in_words(value))


def _bytes_words(value: bytes) -> str:
    text = as_text(value) if len(value) <= 4 * _TEXT_SHOWN else None
    if text is None or len(text) > _TEXT_SHOWN:
        return f"{len(value):,} byte{'' if len(value) == 1 else 's'}"
    return json.dumps(text, ensure_ascii=False)
