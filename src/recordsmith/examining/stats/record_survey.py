"""Collects the statistics of the records of a few shards, block by block."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.errors import DataError
from recordsmith.examining.stats import feature_blocks
from recordsmith.examining.stats.box_stats import BoxSurvey
from recordsmith.examining.stats.duplicates import DuplicateSearch, DuplicateStats
from recordsmith.examining.stats.feature_blocks import (
    LISTS_FIELD,
    FeatureBlock,
    example_blocks,
)
from recordsmith.examining.stats.feature_stats import FeatureStatsSurvey
from recordsmith.examining.stats.image_stats import (
    DeclaredSizes,
    ImageSurvey,
    declared_sizes,
)
from recordsmith.examining.stats.label_texts import TEXT_OF_LABEL, LabelTexts
from recordsmith.examining.stats.mask_stats import MaskSample, decode_raw
from recordsmith.examining.stats.number_stats import NumberSurvey
from recordsmith.examining.stats.places import Places
from recordsmith.examining.stats.sketches import Hashes
from recordsmith.examining.stats.step_blocks import list_blocks
from recordsmith.example import (
    BytesArray,
    context_as_example,
    field_spans,
    hash_spans,
    inner_spans,
)
from recordsmith.example.kernel.payloads import classify_many
from recordsmith.example.keys import HEIGHT, IMAGE, MASK, MASK_DTYPE, WIDTH, is_mask_key
from recordsmith.example.payload import PAYLOAD_KINDS
from recordsmith.example.pieces import select_features
from recordsmith.example.spans import field_sizes, have_many_entries
from recordsmith.wire import RecordBlock

MOST_FEATURES = 10_000
"""How many features of a section get statistics, first come first served; others are only counted.
Less than FEATURES_AT_A_TIME, so that a narrowed record fits into one piece.
"""

MOST_LEFT_OUT = 65_536
"""How many of the other features are counted."""

MOST_IMAGE_FEATURES = 4
"""How many features are searched for duplicate images, and how many have their masks decoded."""

_CONTEXT_TAG = 0x0A

Section = dict[str, FeatureStatsSurvey]
_T = TypeVar("_T")


class SharedSurveys:
    """What all threads collect together: duplicate records, and the images of each feature.

    masks: a sample of the masks of each feature.
    """

    def __init__(self) -> None:
        self.records = DuplicateSearch(None)
        self.masks: dict[str, MaskSample] = {}
        self._images: dict[str, DuplicateSearch] = {}
        self._lock = threading.Lock()

    def of_images(self, key: str) -> DuplicateSearch | None:
        """Return the search for a feature; None if too many features hold images."""
        return self._one_of(self._images, key, partial(DuplicateSearch, key))

    def of_masks(self, key: str) -> MaskSample | None:
        """Return the sample of masks of a feature; None if too many features hold masks."""
        return self._one_of(self.masks, key, MaskSample)

    def _one_of(self, found: dict[str, _T], key: str, make: Callable[[], _T]) -> _T | None:
        with self._lock:
            if key not in found and len(found) < MOST_IMAGE_FEATURES:
                found[key] = make()
            return found.get(key)

    def merge(self, other: SharedSurveys) -> None:
        """Add everything that another process collected."""
        self.records.merge(other.records)
        for key, search in other._images.items():
            if mine := self.of_images(key):
                mine.merge(search)
        for key, masks in other.masks.items():
            if sample := self.of_masks(key):
                sample.merge(masks)

    def finish(self, places: Places) -> list[DuplicateStats]:
        """Return the duplicates: records, then images by key."""
        searches = [self.records, *(self._images[key] for key in sorted(self._images))]
        return [search.finish(places) for search in searches]


class Messages(NamedTuple):
    """Messages with features: their spans in a buffer, and the place numbers of their records."""

    buffer: BytesLike
    starts: Int64Array
    lengths: Int64Array
    places: Int64Array

    @classmethod
    def of(cls, payload: bytes, place: int) -> Messages:
        """Make messages from one payload."""
        return cls(payload, *np.array([[0], [len(payload)], [place]], np.int64))

    def some(self, piece: slice) -> Messages:
        """Return neighboring messages."""
        return Messages(self.buffer, self.starts[piece], self.lengths[piece], self.places[piece])

    def payload(self, row: int) -> memoryview:
        """Return the bytes of one message."""
        start = int(self.starts[row])
        return as_view(self.buffer)[start : start + int(self.lengths[row])]


@contextmanager
def _counting(owners: Int64Array) -> Iterator[None]:
    """Change the record number of an error from that of a message to that of its owner."""
    try:
        yield
    except DataError as error:
        if error.record is not None:
            error.record = int(owners[error.record])
        raise


class RecordSurvey:
    """Collects statistics of the records of one split, or of a part of it."""

    def __init__(self, split: str, shared: SharedSurveys) -> None:
        """`shared` is also used by other surveys, in other threads.

        label_texts: the pairs of labels and texts, by the key of the label.
        listed_count: number of Examples in ranking lists.
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
        self._shared = shared
        self.boxes = BoxSurvey()

    def add(self, block: RecordBlock, places: Int64Array) -> None:
        """Add some records.

        Args:
            places: int64, (count,): number of the place of each record.

        Raises:
            CorruptDataError: a payload is malformed; its record number counts within the block.
        """
        self.record_count += len(block)
        self.sizes.add(block.lengths)
        hashes = hash_spans(block.buffer, block.starts, block.lengths)
        self._shared.records.add(self.split, hashes, places)
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
        """Add the contexts and Examples of ranking lists, which are all Examples."""
        contexts, examples = inner_spans(lists.buffer, lists.starts, lists.lengths)
        self.listed_count += len(examples.owners)
        for section, inner in (("context", contexts), ("examples", examples)):
            places = lists.places[inner.owners]
            with _counting(inner.owners):
                found = Messages(lists.buffer, inner.starts, inner.lengths, places)
                self._add_messages(section, found)

    def _add_contexts(self, sequences: Messages) -> None:
        """Add contexts; the context field of a SequenceExample has the same bytes as an Example."""
        buffer, starts, lengths, places = sequences
        found = field_spans(buffer, starts, lengths, 1)
        fields = field_sizes(found.lengths)
        begins = found.starts + found.lengths - fields
        is_plain = (np.bincount(found.owners, minlength=len(starts)) == 1)[found.owners]
        is_plain &= np.frombuffer(as_view(buffer), np.uint8)[begins] == _CONTEXT_TAG
        owners = found.owners[is_plain]
        with _counting(owners):
            plain = Messages(buffer, begins[is_plain], fields[is_plain], places[owners])
            self._add_messages("context", plain)
        for row in np.setdiff1d(found.owners, owners):
            context = context_as_example(sequences.payload(row))
            with _counting(np.array([row])):
                self._add_messages("context", Messages.of(context, places[row]))

    def _add_messages(self, section: str, messages: Messages) -> None:
        """Add messages all at once, or in pieces if they have few features in common, or one by
        one if they have very many features.
        """
        is_lists = section == "feature_lists"
        field = LISTS_FIELD if is_lists else 1
        read = list_blocks if is_lists else example_blocks
        takes = partial(self._takes, section)
        spans = messages.buffer, messages.starts, messages.lengths
        wide = np.flatnonzero(have_many_entries(*spans, field, feature_blocks.FEATURES_AT_A_TIME))
        at, size, count = 0, len(messages.starts), len(messages.starts)
        while at < count:
            until = int(wide[np.searchsorted(wide, at)]) if len(wide) and wide[-1] >= at else count
            if until == at:
                some = select_features(messages.payload(at), takes, [field])
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
        """Return whether a feature gets statistics: the first ones of each section do."""
        features = self.sections[section]
        if key in features:
            return True
        if len(features) >= MOST_FEATURES:
            self._leave_out({key})
            return False
        features[key] = FeatureStatsSurvey()
        return True

    def _add_section(
        self, name: str, blocks: Mapping[str, FeatureBlock], places: Int64Array
    ) -> None:
        section = self.sections[name]
        for key, block in blocks.items():
            feature = section[key]
            hashes = feature.add(block)
            if hashes is None:
                continue
            if block.contents[2]:
                self._add_images(feature, block, blocks, hashes, places)
            elif key == MASK:
                self._add_raw_masks(block, blocks, hashes)
        if name != "feature_lists":
            self.boxes.add(blocks, places)
        for key, text_key in TEXT_OF_LABEL.items():
            if key in blocks and text_key in blocks:
                texts = self.label_texts.setdefault(key, LabelTexts())
                texts.add(blocks[key], blocks[text_key])

    def _add_images(
        self,
        feature: FeatureStatsSurvey,
        block: FeatureBlock,
        blocks: Mapping[str, FeatureBlock],
        hashes: Hashes,
        places: Int64Array,
    ) -> None:
        values, rows = block.values["bytes"], block.rows["bytes"]
        assert isinstance(values, BytesArray)
        assert feature.bytes is not None
        feature.bytes.images = feature.bytes.images or ImageSurvey()
        declared = _declared(block, blocks, len(places))
        chosen = feature.bytes.images.add(values, places[rows], declared)
        if is_mask_key(block.key):  # those of small objects are often equal
            if len(chosen) and (masks := self._shared.of_masks(block.key)):
                masks.add(values[chosen], hashes[chosen])
        elif search := self._shared.of_images(block.key):
            search.add(self.split, hashes[chosen], places[rows[chosen]])

    def _add_raw_masks(
        self, block: FeatureBlock, blocks: Mapping[str, FeatureBlock], hashes: Hashes
    ) -> None:
        """Add masks that are stored as rows of values, if all have the same dtype."""
        dtypes = blocks[MASK_DTYPE].values.get("bytes") if MASK_DTYPE in blocks else None
        names = {bytes(view) for view in dtypes.views()} if isinstance(dtypes, BytesArray) else ()
        if names in ({b"uint8"}, {b"uint16"}) and (masks := self._shared.of_masks(block.key)):
            values = block.values["bytes"]
            assert isinstance(values, BytesArray)
            masks.add(values, hashes, decode_raw(*(name.decode() for name in names)))

    def merge(self, other: RecordSurvey) -> None:
        """Add everything that another survey collected."""
        if other._shared is not self._shared:  # of another process
            self._shared.merge(other._shared)
        self.record_count += other.record_count
        self.sizes.merge(other.sizes)
        self.payloads += other.payloads
        self.listed_count += other.listed_count
        self.boxes.merge(other.boxes)
        for key, texts in other.label_texts.items():
            self.label_texts.setdefault(key, LabelTexts()).merge(texts)
        self._leave_out(other.left_out)
        for name, section in other.sections.items():
            mine = self.sections[name]
            for key, feature in section.items():
                if key not in mine and len(mine) >= MOST_FEATURES:
                    self._leave_out({key})
                else:
                    mine.setdefault(key, FeatureStatsSurvey()).merge(feature)

    def _leave_out(self, keys: set[str]) -> None:
        """Count features without statistics, up to MOST_LEFT_OUT."""
        for key in keys:
            if len(self.left_out) >= MOST_LEFT_OUT:
                return
            self.left_out.add(key)


def _declared(block: FeatureBlock, blocks: Mapping[str, FeatureBlock], count: int) -> DeclaredSizes:
    """Return the size of each image, given in records with one image and one size."""
    folder = block.key.rpartition("/")[0]
    related = (f"{folder}/height", f"{folder}/width") if folder else ("height", "width")
    keys = (HEIGHT, WIDTH) if block.key == IMAGE else related
    sizes = declared_sizes(blocks, *keys, count)
    rows = block.rows["bytes"]
    sizes = sizes._replace(is_known=sizes.is_known & (np.bincount(rows, minlength=count) == 1))
    return sizes.of(rows)
