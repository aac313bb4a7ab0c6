"""What is in the records of a few shards? Each block is taken apart and added to its features."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import CorruptDataError
from recordsmith.examining.statistics import feature_blocks
from recordsmith.examining.statistics.duplicates import DuplicateSearch, DuplicateStatistics
from recordsmith.examining.statistics.feature_blocks import (
    LISTS_FIELD,
    FeatureBlock,
    example_blocks,
)
from recordsmith.examining.statistics.feature_statistics import FeatureStatisticsSurvey
from recordsmith.examining.statistics.label_texts import TEXT_OF_LABEL, LabelTexts
from recordsmith.examining.statistics.number_statistics import NumberSurvey
from recordsmith.examining.statistics.picture_statistics import Declared, PictureSurvey
from recordsmith.examining.statistics.places import Places
from recordsmith.examining.statistics.sketches import Hashes
from recordsmith.examining.statistics.step_blocks import list_blocks
from recordsmith.example import (
    BytesArray,
    context_payload,
    hash_spans,
    inner_spans,
    spans_of_field,
)
from recordsmith.example.kernel.payloads import classify_many
from recordsmith.example.keys import HEIGHT, PICTURE, WIDTH, is_of_mask
from recordsmith.example.payload import PAYLOAD_KINDS
from recordsmith.example.pieces import narrowed
from recordsmith.example.spans import are_wide, field_bytes
from recordsmith.wire import RecordBlock

MOST_FEATURES = 10_000
"""So many features of a section have statistics, the first that come; others are only counted. It
is less than are taken at a time, so that a narrowed record can be taken whole.
"""

MOST_LEFT_OUT = 65_536
"""So many of the others are counted."""

MOST_PICTURE_FEATURES = 4
"""So many features are searched for pictures that come twice."""

_CONTEXT_TAG = 0x0A

Section = dict[str, FeatureStatisticsSurvey]


class DuplicateSearches:
    """What is looked for in all shards at once: whole records, and the pictures of each feature."""

    def __init__(self) -> None:
        self.records = DuplicateSearch(None)
        self._pictures: dict[str, DuplicateSearch] = {}
        self._lock = threading.Lock()

    def of_pictures(self, key: str) -> DuplicateSearch | None:
        """That of a feature; None if too many features are pictures."""
        with self._lock:
            if key not in self._pictures and len(self._pictures) < MOST_PICTURE_FEATURES:
                self._pictures[key] = DuplicateSearch(key)
            return self._pictures.get(key)

    def finish(self, places: Places) -> list[DuplicateStatistics]:
        """What is there more than once: records, then pictures by key."""
        searches = [self.records, *(self._pictures[key] for key in sorted(self._pictures))]
        return [search.finish(places) for search in searches]


class Messages(NamedTuple):
    """Messages with features: where they lie, and int64 numbers for where their records are."""

    buffer: BytesLike
    starts: Int64Array
    lengths: Int64Array
    places: Int64Array

    @classmethod
    def of(cls, payload: bytes, place: int) -> Messages:
        """One of them."""
        return cls(payload, *np.array([[0], [len(payload)], [place]], np.int64))

    def some(self, piece: slice) -> Messages:
        """Neighbours among them."""
        return Messages(self.buffer, self.starts[piece], self.lengths[piece], self.places[piece])

    def payload(self, row: int) -> memoryview:
        """The bytes of one."""
        start = int(self.starts[row])
        return as_view(self.buffer)[start : start + int(self.lengths[row])]


@contextmanager
def _counting(owners: Int64Array) -> Iterator[None]:
    """What an error's position counts here, it counts among their owners outside."""
    try:
        yield
    except CorruptDataError as error:
        if error.position is not None:
            error.position = int(owners[error.position])
        raise


class RecordSurvey:
    """Collects statistics of the records of one split, or of a part of it."""

    def __init__(self, split: str, duplicates: DuplicateSearches) -> None:
        """`duplicates` is shared with other surveys, in other threads too.

        label_texts: which texts stand beside labels, by the key of these.
        listed_count: how many Examples there are in ranking lists.
        """
        self.split = split
        self.record_count = 0
        self.sizes = NumberSurvey()
        self.payloads: Counter[str] = Counter()
        self.sections: dict[str, Section] = {
            name: {} for name in ("features", "context", "feature_lists", "examples")
        }
        self.label_texts: dict[str, LabelTexts] = {}
        self.listed_count = 0
        self.left_out: set[str] = set()
        self._duplicates = duplicates

    def add(self, block: RecordBlock, places: Int64Array) -> None:
        """Add some records.

        Args:
            places: int64, (count,): a number for where each record is.

        Raises:
            CorruptDataError: a payload does not hold together; its position counts those of the
                block.
        """
        self.record_count += len(block)
        self.sizes.add(block.lengths)
        hashes = hash_spans(block.buffer, block.starts, block.lengths)
        self._duplicates.records.add(self.split, hashes, places)
        kinds = np.empty(len(block), np.uint8)
        classify_many(block.buffer, block.starts, block.lengths, kinds)
        for number in np.flatnonzero(np.bincount(kinds)).tolist():
            rows = np.flatnonzero(kinds == number)
            payload = PAYLOAD_KINDS[number]
            self.payloads[payload] += len(rows)
            with _counting(rows):
                self._add_payloads(payload, block, rows, places[rows])

    def _add_payloads(
        self, payload: str, block: RecordBlock, rows: Int64Array, places: Int64Array
    ) -> None:
        messages = Messages(block.buffer, block.starts[rows], block.lengths[rows], places)
        if payload == "Example":
            self._add_messages("features", messages)
        elif payload == "ELWC":
            self._add_ranking_lists(messages)
        elif payload == "SequenceExample":
            self._add_contexts(messages)
            self._add_messages("feature_lists", messages)

    def _add_ranking_lists(self, lists: Messages) -> None:
        """Contexts and Examples lie there as Examples do elsewhere."""
        contexts, examples = inner_spans(lists.buffer, lists.starts, lists.lengths)
        self.listed_count += len(examples.owners)
        for section, inner in (("context", contexts), ("examples", examples)):
            places = lists.places[inner.owners]
            with _counting(inner.owners):
                found = Messages(lists.buffer, inner.starts, inner.lengths, places)
                self._add_messages(section, found)

    def _add_contexts(self, sequences: Messages) -> None:
        """The field that has the context of a SequenceExample is an Example with its features."""
        buffer, starts, lengths, places = sequences
        found = spans_of_field(buffer, starts, lengths, 1)
        fields = field_bytes(found.lengths)
        begins = found.starts + found.lengths - fields
        is_plain = (np.bincount(found.owners, minlength=len(starts)) == 1)[found.owners]
        is_plain &= np.frombuffer(as_view(buffer), np.uint8)[begins] == _CONTEXT_TAG
        owners = found.owners[is_plain]
        with _counting(owners):
            plain = Messages(buffer, begins[is_plain], fields[is_plain], places[owners])
            self._add_messages("context", plain)
        for row in np.setdiff1d(found.owners, owners):
            context = context_payload(sequences.payload(row))
            with _counting(np.array([row])):
                self._add_messages("context", Messages.of(context, places[row]))

    def _add_messages(self, section: str, messages: Messages) -> None:
        """All at once, or piece by piece where they have little in common; one by one those that
        have very many features.
        """
        is_lists = section == "feature_lists"
        field = LISTS_FIELD if is_lists else 1
        read = list_blocks if is_lists else example_blocks
        takes = partial(self._takes, section)
        spans = messages.buffer, messages.starts, messages.lengths
        wide = np.flatnonzero(are_wide(*spans, field, feature_blocks.FEATURES_AT_A_TIME))
        at, size, count = 0, len(messages.starts), len(messages.starts)
        while at < count:
            until = int(wide[np.searchsorted(wide, at)]) if len(wide) and wide[-1] >= at else count
            if until == at:
                some = narrowed(messages.payload(at), takes, [field])
                piece, part = slice(at, at + 1), Messages.of(some, messages.places[at])
            else:
                piece = slice(at, min(at + size, until))
                part = messages.some(piece)
            with _counting(np.arange(at, count)):
                blocks = read(part.buffer, part.starts, part.lengths, takes)
            if blocks is None:
                size = max(1, size // 2)
                continue
            self._add_section(section, blocks, part.places)
            at = piece.stop

    def _takes(self, section: str, key: str) -> bool:
        """Whether a feature has statistics: the first of each section have."""
        features = self.sections[section]
        if key in features:
            return True
        if len(features) >= MOST_FEATURES:
            self._leave_out({key})
            return False
        features[key] = FeatureStatisticsSurvey()
        return True

    def _add_section(
        self, name: str, blocks: Mapping[str, FeatureBlock], places: Int64Array
    ) -> None:
        section = self.sections[name]
        for key, block in blocks.items():
            feature = section[key]
            hashes = feature.add(block)
            if block.contents[2] and hashes is not None:
                self._add_pictures(feature, block, blocks, hashes, places)
        for key, text_key in TEXT_OF_LABEL.items():
            if key in blocks and text_key in blocks:
                texts = self.label_texts.setdefault(key, LabelTexts())
                texts.add(blocks[key], blocks[text_key])

    def _add_pictures(
        self,
        feature: FeatureStatisticsSurvey,
        block: FeatureBlock,
        blocks: Mapping[str, FeatureBlock],
        hashes: Hashes,
        places: Int64Array,
    ) -> None:
        values, rows = block.values["bytes"], block.rows["bytes"]
        assert isinstance(values, BytesArray)
        assert feature.bytes is not None
        feature.bytes.pictures = feature.bytes.pictures or PictureSurvey()
        declared = _declared(block, blocks, len(places))
        chosen = feature.bytes.pictures.add(values, places[rows], declared)
        if not is_of_mask(block.key):  # those of small things are often alike
            search = self._duplicates.of_pictures(block.key)
            if search is not None:
                search.add(self.split, hashes[chosen], places[rows[chosen]])

    def merge(self, other: RecordSurvey) -> None:
        """Add all that another one saw."""
        self.record_count += other.record_count
        self.sizes.merge(other.sizes)
        self.payloads += other.payloads
        self.listed_count += other.listed_count
        for key, texts in other.label_texts.items():
            self.label_texts.setdefault(key, LabelTexts()).merge(texts)
        self._leave_out(other.left_out)
        for name, section in other.sections.items():
            mine = self.sections[name]
            for key, feature in section.items():
                if key not in mine and len(mine) >= MOST_FEATURES:
                    self._leave_out({key})
                else:
                    mine.setdefault(key, FeatureStatisticsSurvey()).merge(feature)

    def _leave_out(self, keys: set[str]) -> None:
        """Count features that have no statistics, as far as there is room for their names."""
        for key in keys:
            if len(self.left_out) >= MOST_LEFT_OUT:
                return
            self.left_out.add(key)


def _declared(
    block: FeatureBlock, blocks: Mapping[str, FeatureBlock], count: int
) -> Declared | None:
    """What the features beside pictures say of their sizes, in records that have one of each."""
    folder = block.key.rpartition("/")[0]
    beside = (f"{folder}/height", f"{folder}/width") if folder else ("height", "width")
    keys = (HEIGHT, WIDTH) if block.key == PICTURE else beside
    rows = block.rows["bytes"]
    is_known = np.bincount(rows, minlength=count)[rows] == 1
    sides = []
    for key in keys:
        said = blocks.get(key)
        if said is None or "int64" not in said.values:
            return None
        sides_of_rows = np.zeros(count, np.int64)
        sides_of_rows[said.rows["int64"]] = said.values["int64"]
        sides.append(sides_of_rows[rows])
        is_known &= np.bincount(said.rows["int64"], minlength=count)[rows] == 1
    return Declared(sides[0], sides[1], is_known)
