"""Collects the statistics of the records of a few shards, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

from recordsmith.checking.statistics import feature_blocks
from recordsmith.checking.statistics.box_stats import BoxBuilder
from recordsmith.checking.statistics.class_counts import LabelCounter, is_label
from recordsmith.checking.statistics.episode_stats import EpisodeBuilder
from recordsmith.checking.statistics.feature_blocks import (
    LISTS_FIELD,
    FeatureBlock,
    example_blocks,
    list_blocks,
)
from recordsmith.checking.statistics.feature_stats import FeatureBuilder
from recordsmith.checking.statistics.image_stats import ImageBuilder
from recordsmith.checking.statistics.keypoint_stats import KeypointBuilder
from recordsmith.checking.statistics.mask_stats import DecodeMask, MaskBuilder, decode_raw
from recordsmith.checking.statistics.number_stats import NumberBuilder
from recordsmith.checking.statistics.sampling import Builder, Hashes, hash_positions
from recordsmith.format.example import BytesArray, context_as_example
from recordsmith.format.example.class_lists import CLASS_LISTS
from recordsmith.format.example.kernel.payloads import classify_many
from recordsmith.format.example.keys import CLASS_CONFIDENCE, MASK, MASK_DTYPE, is_mask_key
from recordsmith.format.example.payload import PAYLOAD_KINDS
from recordsmith.format.example.spans import (
    have_many_entries,
    join_payloads,
    payload_views,
    select_features,
)
from recordsmith.format.wire import RecordBlock
from recordsmith.image import decode_mask
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.errors import DataError

MAX_FEATURES = 10_000
"""How many features of a section get statistics, first come first served; others are only counted.
Less than FEATURES_AT_A_TIME, so that a narrowed record fits into one piece.
"""

_LARGE_BYTES = 1 << 20
"""Larger records are decoded one by one."""

MAX_LEFT_OUT = 65_536
"""How many of the other features are counted."""


class Messages(NamedTuple):
    """Messages with features: their spans in a buffer, and the place numbers of their records."""

    buffer: BytesLike
    starts: Int64Array
    lengths: Int64Array
    places: Int64Array

    def some(self, piece: slice) -> Messages:
        return Messages(self.buffer, self.starts[piece], self.lengths[piece], self.places[piece])


@contextmanager
def _counting(owners: Int64Array) -> Iterator[None]:
    """Change the record number of an error from that of a message to that of its owner."""
    try:
        yield
    except DataError as error:
        if error.record is not None:
            error.record = int(owners[error.record])
        raise


class RecordBuilder(Builder):
    """Collects the records of a few shards of one split."""

    _fixed = ("left_out", "_split", "_mask_limits")

    def __init__(self, split: str, mask_limits: MutableMapping[str, int]) -> None:
        """`mask_limits`: limits of the masks of other parts, by feature."""
        self.record_count = 0
        self.sizes = NumberBuilder()
        self.payloads: Counter[str] = Counter()
        self.sections: dict[str, dict[str, FeatureBuilder]] = {
            name: {} for name in ("features", "context", "feature_lists")
        }
        self.classes: dict[str, dict[str, LabelCounter]] = {}  # by key and split
        self.masks: dict[str, MaskBuilder] = {}
        self.boxes = BoxBuilder()
        self.keypoints = KeypointBuilder()
        self.episodes = EpisodeBuilder()
        self.left_out: set[str] = set()
        self._split = split
        self._mask_limits = mask_limits

    def add(self, block: RecordBlock, places: Int64Array) -> None:
        self.record_count += len(block)
        self.sizes.add(block.lengths, hash_positions(places))
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
        elif payload == "SequenceExample":
            contexts = map(context_as_example, payload_views(*messages[:3]))
            self._add_messages("context", Messages(*join_payloads(list(contexts)), places))
            self._add_messages("feature_lists", messages)

    def _add_messages(self, section: str, messages: Messages) -> None:
        """Add messages all at once, or in pieces if they have few features in common, or one by
        one if they have very many features.
        """
        is_lists = section == "feature_lists"
        field = LISTS_FIELD if is_lists else 1
        read = list_blocks if is_lists else example_blocks
        takes = partial(self._takes, section)
        spans = messages.buffer, messages.starts, messages.lengths
        have_many = have_many_entries(*spans, field, feature_blocks.FEATURES_AT_A_TIME)
        wide = np.flatnonzero(have_many | (messages.lengths > _LARGE_BYTES))
        start, size, count = 0, len(messages.starts), len(messages.starts)
        while start < count:
            stop = (
                int(wide[np.searchsorted(wide, start)])
                if len(wide) and wide[-1] >= start
                else count
            )
            if stop == start:
                piece = slice(start, start + 1)
                part = messages.some(piece)
                if have_many[start]:
                    (payload,) = payload_views(*part[:3])
                    some = select_features(payload, takes, [field])
                    part = Messages(*join_payloads([some]), part.places)
            else:
                piece = slice(start, min(start + size, stop))
                part = messages.some(piece)
            with _counting(np.arange(start, count)):
                blocks = read(part.buffer, part.starts, part.lengths, takes)
            if blocks is None:
                size = max(1, size // 2)
                continue
            self._add_section(section, blocks, part.places)
            start = piece.stop

    def _takes(self, section: str, key: str) -> bool:
        """Return whether a feature gets statistics: the first ones of each section do."""
        features = self.sections[section]
        if key in features:
            return True
        if len(features) >= MAX_FEATURES:
            self._leave_out({key})
            return False
        features[key] = FeatureBuilder()
        return True

    def _add_section(
        self, name: str, blocks: Mapping[str, FeatureBlock], places: Int64Array
    ) -> None:
        hashes = hash_positions(places)
        for key, block in blocks.items():
            feature = self.sections[name][key]
            feature.add(block, places, hashes)
            if is_label(key):
                counter = self.classes.setdefault(key, {}).setdefault(self._split, LabelCounter())
                has_shares = key in CLASS_LISTS and CLASS_CONFIDENCE in blocks
                shares = blocks[CLASS_CONFIDENCE].values.get("float") if has_shares else None
                for _, values, *_ in block.pieces():
                    if isinstance(shares, np.ndarray) and len(shares) == len(values):
                        counter.add(values[np.flatnonzero(shares > 0)])
                    else:
                        counter.add(values)
            if block.contents[2]:
                self._add_images(feature, block, places)
            elif key == MASK and "bytes" in block.values:
                self._add_raw_masks(block, blocks, places)
        if name != "feature_lists":
            self.boxes.add(blocks, places)
            self.keypoints.add(blocks, len(places))
        if name != "context":
            self.episodes.add(blocks, places, is_lists=name == "feature_lists")

    def _add_images(self, feature: FeatureBuilder, block: FeatureBlock, places: Int64Array) -> None:
        assert feature.bytes is not None
        feature.bytes.images = feature.bytes.images or ImageBuilder()
        for _, values, rows, first in block.pieces():
            if isinstance(values, BytesArray):
                hashes = hash_positions(places[rows], first)
                chosen = feature.bytes.images.add(values, hashes)
                if is_mask_key(block.key) and len(chosen):
                    self._add_masks(block.key, values[chosen], hashes[chosen])

    def _add_raw_masks(
        self, block: FeatureBlock, blocks: Mapping[str, FeatureBlock], places: Int64Array
    ) -> None:
        """Add masks that are stored as rows of values, if all have the same dtype."""
        dtypes = blocks[MASK_DTYPE].values.get("bytes") if MASK_DTYPE in blocks else None
        names = {bytes(view) for view in dtypes.views()} if isinstance(dtypes, BytesArray) else ()
        if names in ({b"uint8"}, {b"uint16"}):
            values = block.values["bytes"]
            assert isinstance(values, BytesArray)
            decode = decode_raw(*(name.decode() for name in names))
            self._add_masks(MASK, values, hash_positions(places[block.rows["bytes"]]), decode)

    def _add_masks(
        self, key: str, values: BytesArray, hashes: Hashes, decode: DecodeMask = decode_mask
    ) -> None:
        masks = self.masks.setdefault(key, MaskBuilder())
        masks.limit = min(masks.limit, self._mask_limits.get(key, masks.limit))
        masks.add(values, hashes, decode)

    def merge(self, other: RecordBuilder) -> None:
        """Add what another builder collected; lower the limits of masks."""
        for name, section in other.sections.items():
            mine = self.sections[name]
            for key in [*section] if len(mine) + len(section) > MAX_FEATURES else ():
                if key not in mine and len(mine) >= MAX_FEATURES:
                    self._leave_out({key})
                    del section[key]
                else:
                    mine.setdefault(key, FeatureBuilder())
        self._leave_out(other.left_out)
        super().merge(other)
        self._mask_limits.update({key: masks.limit for key, masks in self.masks.items()})

    def _leave_out(self, keys: set[str]) -> None:
        """Count features without statistics, up to MAX_LEFT_OUT."""
        for key in keys:
            if len(self.left_out) >= MAX_LEFT_OUT:
                return
            self.left_out.add(key)
