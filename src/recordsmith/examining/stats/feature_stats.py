"""Statistics of one feature: presence, lengths of its lists, and values by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from recordsmith.examining.stats.bytes_stats import BytesStats, BytesSurvey
from recordsmith.examining.stats.feature_blocks import FeatureBlock
from recordsmith.examining.stats.number_stats import NumberStats, NumberSurvey
from recordsmith.examining.stats.places import Places
from recordsmith.examining.stats.sketches import Hashes
from recordsmith.examining.stats.survey import Collector
from recordsmith.example import BytesArray, Kind
from recordsmith.summaries import Report

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
        found = self._only()
        return found if isinstance(found, NumberStats) else None

    @property
    def bytes(self) -> BytesStats | None:
        """Statistics of its values, if all are bytes."""
        found = self._only()
        return found if isinstance(found, BytesStats) else None

    def _only(self) -> ValueStatistics | None:
        return next(iter(self.values.values())) if len(self.values) == 1 else None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return {"kind": self.kind} | super().to_json()


class FeatureStatsSurvey(Collector):
    """Collects statistics of one feature."""

    def __init__(self) -> None:
        self.present = 0
        self.records: Counter[str] = Counter()
        self._value_bytes = 0
        self._lengths = NumberSurvey()
        self._steps: NumberSurvey | None = None
        self.numbers: dict[Kind, NumberSurvey] = {}
        self.bytes: BytesSurvey | None = None

    def add(self, block: FeatureBlock) -> Hashes | None:
        """Add the values of some records; return the hashes of bytes."""
        self.present += block.present
        self.records.update(block.records)
        self._value_bytes += block.value_bytes
        self._lengths.add(block.lengths)
        if block.steps is not None:
            self._steps = self._steps or NumberSurvey()
            self._steps.add(block.steps)
        hashes = None
        for kind, values in block.values.items():
            if isinstance(values, BytesArray):
                self.bytes = self.bytes or BytesSurvey()
                hashes = self.bytes.add(values, block.contents)
            else:
                self.numbers.setdefault(kind, NumberSurvey(values.dtype)).add(values)
        return hashes

    def finish(self, record_count: int, places: Places) -> FeatureStats:
        """Return the statistics of everything added so far."""
        values: dict[Kind, ValueStatistics] = {}
        if self.bytes is not None:
            values["bytes"] = self.bytes.finish(places)
        for kind in sorted(self.numbers):
            values[kind] = self.numbers[kind].finish()
        return FeatureStats(
            present=self.present,
            missing=record_count - self.present,
            records=dict(sorted(self.records.items())),
            lengths=self._lengths.finish(),
            steps=None if self._steps is None else self._steps.finish(),
            value_bytes=self._value_bytes,
            values=values,
        )
