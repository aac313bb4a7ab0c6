"""Statistics of one feature: presence, lengths of its lists, and values by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from recordsmith.checking.class_rules import is_one_hot
from recordsmith.checking.shard_summaries import SECTIONS
from recordsmith.checking.statistics.feature_blocks import FeatureBlock
from recordsmith.checking.statistics.image_stats import ImageBuilder, ImageStats
from recordsmith.checking.statistics.number_stats import TOP_VALUES, NumberBuilder, NumberStats
from recordsmith.checking.statistics.sampling import (
    Builder,
    Hashes,
    ValueSample,
    hash_positions,
)
from recordsmith.checking.statistics.table_cells import format_number, short, span_of
from recordsmith.format.example import BytesArray, Kind
from recordsmith.format.example.serialized_tensor import TensorSchema, schema_of_tensor
from recordsmith.support.buffers import Int64Array
from recordsmith.support.reports import Cell, Histogram, ReportTable
from recordsmith.support.summaries import Report
from recordsmith.support.words import size as format_size

PREVIEW_BYTES = 128
"""How many bytes of a frequent value are kept."""


@dataclass(frozen=True)
class FrequentBytes:
    """A frequent value.

    begins: its first PREVIEW_BYTES bytes.
    size: its size in bytes.
    count: how often it occurs in the sample.
    """

    begins: bytes
    size: int
    count: int

    @property
    def text(self) -> str | None:
        """The value as text; None if it is shortened or not UTF-8."""
        if len(self.begins) < self.size:
            return None
        try:
            return self.begins.decode()
        except UnicodeDecodeError:
            return None

    def to_json(self) -> dict[str, Any]:
        """Return count and value, or size_bytes and begins (hexadecimal) if it is not text."""
        text = self.text
        if text is not None:
            return {"value": text, "count": self.count}
        begins = self.begins[:16].hex()
        return {"size_bytes": self.size, "begins": begins, "count": self.count}


@dataclass(frozen=True, repr=False)
class BytesSample(Report):
    """A sample of at most SAMPLE_SIZE byte strings.

    size: how many strings are in the sample; all figures are exact if these are all.
    distinct: how many different strings it has, compared by 64-bit hashes.
    top: the most frequent strings.
    """

    size: int
    distinct: int
    top: tuple[FrequentBytes, ...]


@dataclass(frozen=True, repr=False)
class BytesStats(Report):
    """Statistics of byte strings.

    count: number of strings.
    sizes: their sizes in bytes.
    raw, text, image_count: number of raw bytes, texts (UTF-8 without control characters) and
        images, detected from their first bytes.
    sample: different and frequent strings in a sample.
    images: statistics of the images; None without images.
    """

    count: int
    sizes: NumberStats
    raw: int
    text: int
    image_count: int
    sample: BytesSample
    images: ImageStats | None = None


class BytesBuilder(Builder):
    """Collects byte strings."""

    def __init__(self) -> None:
        self._sizes = NumberBuilder()
        self._sample = ValueSample()  # of (hash, size, first bytes)
        self._contents = np.zeros(3, np.int64)
        self.images: ImageBuilder | None = None

    def add(self, values: BytesArray, contents: list[int], hashes: Hashes) -> None:
        """Add values; `contents` counts raw bytes, texts and images."""
        self._sizes.add(values.lengths, hashes)
        self._contents += contents
        chosen = self._sample.choose(hashes)
        sampled = values[chosen]
        strings = [
            (key, len(view), bytes(view[:PREVIEW_BYTES]))
            for key, view in zip(sampled.hashes().tolist(), sampled.views(), strict=True)
        ]
        self._sample.add(hashes[chosen], np.fromiter(strings, object, len(strings)))

    def finish(self) -> BytesStats:
        raw, text, image_count = self._contents.tolist()
        sizes = self._sizes.finish()
        counts = Counter(self._sample.values().tolist())
        top = sorted(counts.items(), key=lambda item: (-item[1], item[0][2], item[0]))
        return BytesStats(
            count=sizes.count,
            sizes=sizes,
            raw=raw,
            text=text,
            image_count=image_count,
            sample=BytesSample(
                size=counts.total(),
                distinct=len(counts),
                top=tuple(FrequentBytes(key[2], key[1], n) for key, n in top[:TOP_VALUES]),
            ),
            images=None if self.images is None else self.images.finish(),
        )


ValueStatistics: TypeAlias = NumberStats | BytesStats


@dataclass(frozen=True, repr=False)
class FeatureStats(Report):
    """Statistics of one feature.

    present: number of records that have it.
    missing: number of records that do not have it.
    records: number of records by kind: bytes, float, int64, or none for a feature without a kind.
    lengths: number of values per record, or per step of a feature list.
    steps: number of steps per record of a feature list; otherwise None.
    value_bytes: total size of its values in bytes.
    values: statistics of the values of each kind.
    """

    present: int
    missing: int
    records: Mapping[str, int]
    lengths: NumberStats
    steps: NumberStats | None
    value_bytes: int
    values: Mapping[Kind, ValueStatistics]

    @property
    def kind(self) -> str:
        """bytes, float or int64; mixed if records differ, none if no record has a kind."""
        kinds = [kind for kind in self.records if kind != "none"]
        return "none" if not kinds else kinds[0] if len(kinds) == 1 else "mixed"

    @property
    def numbers(self) -> NumberStats | None:
        """Statistics of its values, if all are numbers of one kind."""
        values = self._only()
        return values if isinstance(values, NumberStats) else None

    @property
    def bytes(self) -> BytesStats | None:
        """Statistics of its values, if all are bytes."""
        values = self._only()
        return values if isinstance(values, BytesStats) else None

    @property
    def is_one_hot(self) -> bool:
        """Whether each record marks classes by ones among zeros, in lists of one length."""
        numbers, lengths = self.numbers, self.lengths
        return (
            numbers is not None
            and lengths.min == lengths.max
            and is_one_hot(lengths.max or 0, numbers.min, numbers.max)
            and numbers.sample is not None
            and numbers.sample.distinct <= 2
        )

    def _only(self) -> ValueStatistics | None:
        return next(iter(self.values.values())) if len(self.values) == 1 else None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind} | super().to_json()


class FeatureBuilder(Builder):
    """Collects one feature."""

    def __init__(self) -> None:
        self._present = 0
        self._records: Counter[str] = Counter()
        self._value_bytes = 0
        self._lengths = NumberBuilder()
        self._steps: NumberBuilder | None = None
        self._numbers: dict[Kind, NumberBuilder] = {}
        self.bytes: BytesBuilder | None = None

    def add(self, block: FeatureBlock, places: Int64Array, hashes: Hashes) -> None:
        """Add the values of some records, with their places and the hashes of their positions."""
        self._present += block.present
        self._records.update(block.records)
        self._value_bytes += block.value_bytes
        if block.steps is None:  # lengths of rarer features have lost their records
            self._lengths.add(block.lengths, hashes[: len(block.lengths)])
        else:
            self._steps = self._steps or NumberBuilder()
            self._steps.add(block.steps, hashes[: len(block.steps)])
            owners = np.repeat(places[: len(block.steps)], block.steps)
            self._lengths.add(block.lengths, hash_positions(owners))
        contents = block.contents
        for kind, values, rows, first in block.pieces():
            is_single = len(rows) == len(places) and (rows[1:] > rows[:-1]).all() and not first
            positions = hashes if is_single else hash_positions(places[rows], first)
            if isinstance(values, BytesArray):
                self.bytes = self.bytes or BytesBuilder()
                self.bytes.add(values, contents, positions)
                contents = [0] * len(contents)  # added once for all pieces
            else:
                self._numbers.setdefault(kind, NumberBuilder()).add(values, positions)

    def finish(self, record_count: int) -> FeatureStats:
        values: dict[Kind, ValueStatistics] = {}
        if self.bytes is not None:
            values["bytes"] = self.bytes.finish()
        for kind in sorted(self._numbers):
            values[kind] = self._numbers[kind].finish()
        return FeatureStats(
            present=self._present,
            missing=record_count - self._present,
            records=dict(sorted(self._records.items())),
            lengths=self._lengths.finish(),
            steps=None if self._steps is None else self._steps.finish(),
            value_bytes=self._value_bytes,
            values=values,
        )


def features_table(section: str, features: Mapping[str, FeatureStats]) -> ReportTable:
    rows = []
    for key, feature in features.items():
        lengths = span_of(feature.lengths)
        if feature.steps is not None:
            lengths = f"{span_of(feature.steps)} steps of {lengths}"
        distinct = " + ".join(_distinct(values) for values in feature.values.values())
        present = "all" if not feature.missing else f"{feature.present:,}"
        size = format_size(feature.value_bytes)
        rows.append((key, feature.kind, present, lengths, distinct or "0", size))
    heads = (SECTIONS[section], "kind", "records", "values", "distinct", "total size")
    return ReportTable("", heads, rows, ("records", *heads[4:]), heads[-1:])


def numbers_table(features: Mapping[str, FeatureStats]) -> ReportTable:
    rows: list[tuple[Cell, ...]] = []
    sizes = set()
    for key, feature in features.items():
        for values in feature.values.values():
            if not isinstance(values, NumberStats) or values.sample is None:
                continue
            sample = values.sample
            counts = {"NaN": values.nan, "infinite": values.infinite}
            odd = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
            numbers = (values.min, sample.median, values.max, values.mean, sample.std)
            bars = Histogram(sample.edges, sample.histogram)
            rows.append((key, *map(format_number, numbers), bars, odd))
            sizes.add((sample.size, values.finite))
    heads = ("numbers", "min", "median", "max", "mean", "std", "from min to max", "not finite")
    return ReportTable(
        "",
        heads,
        rows,
        heads[1:6],
        (heads[6], heads[5]),
        () if any(row[7] for row in rows) else heads[7:],
        _sampled(sizes, "median, std and bars"),
    )


def bytes_table(features: Mapping[str, FeatureStats]) -> ReportTable:
    """Return what they show of byte strings other than images."""
    rows = []
    sizes = set()
    for key, feature in features.items():
        values = feature.values.get("bytes")
        if not isinstance(values, BytesStats) or values.images is not None:
            continue
        sample = values.sample
        names = [
            (short(repr(top.text) if top.text is not None else f"0x{top.begins[:8].hex()}…"), n)
            for top in sample.top
            for n in [top.count]
        ]
        mean = f"{values.sizes.mean or 0:,.1f}"
        low, high = (f"{size or 0:,}" for size in (values.sizes.min, values.sizes.max))
        rows.append((key, low, mean, high, _content(values), _top(names, sample)))
        sizes.add((sample.size, values.count))
    heads = ("bytes", "min size", "mean size", "max size", "content", "most frequent")
    return ReportTable(
        "", heads, rows, heads[1:4], heads[-1:], (), _sampled(sizes, "frequent values")
    )


def _sampled(sizes: set[tuple[int, int]], what: str) -> str:
    """Return a note if some samples do not have all values."""
    partial = [size for size, count in sizes if size < count]
    return f"{what}: from a sample of {max(partial):,} values of each feature" if partial else ""


def _top(values: Sequence[tuple[str, int]], sample: BytesSample) -> str:
    """Return the values that occur more than once; none if all are equally frequent."""
    if sample.distinct > 1 and len({count for _, count in values}) < 2:
        return ""
    often = [f"{name} {count / sample.size:.1%}" for name, count in values if count > 1]
    return ", ".join(often[:2])


def _distinct(values: NumberStats | BytesStats) -> str:
    """Return the number of different values in the sample; NaN and infinities are not counted."""
    distinct = 0 if values.sample is None else values.sample.distinct
    size = 0 if values.sample is None else values.sample.size
    finite = values.count if isinstance(values, BytesStats) else values.finite
    more = "" if size == finite else " or more"
    return f"{distinct:,}{more}{' finite' if finite < values.count else ''}"


def _content(values: BytesStats) -> str:
    counts = {"text": values.text, "raw": values.raw, "image": values.image_count}
    there = {name: count for name, count in counts.items() if count}
    if there.keys() == {"raw"}:
        tensors = [schema_of_tensor(top.begins, top.size) for top in values.sample.top]
        known = [tensor for tensor in tensors if tensor is not None]
        are_tensors = known and len(known) == len(tensors)
        return f"tensor {reduce(TensorSchema.merged, known)}" if are_tensors else "raw"
    if len(there) == 1:
        return next(iter(there))
    return ", ".join(f"{count / values.count:.0%} {name}" for name, count in there.items())
