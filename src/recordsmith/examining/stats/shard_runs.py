"""Reads a run: neighboring shards of one split, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recordsmith.dataset import AnyShard, LocatedBlock
from recordsmith.dataset.shards_ahead import blocks_of
from recordsmith.examining.stats.places import place_numbers
from recordsmith.examining.stats.record_survey import RecordSurvey, SharedSurveys
from recordsmith.work import Work


@dataclass(frozen=True)
class Run:
    """Neighboring shards of one split.

    first: the number of the first one in the dataset.
    sizes: in bytes.
    """

    first: int
    shards: Sequence[AnyShard]
    sizes: Sequence[int]


@dataclass(frozen=True)
class SurveyedRun:
    """The statistics of a run, with the record count and the compression of each shard."""

    survey: RecordSurvey
    counts: list[int]
    compressions: list[str]


def read_run(run: Run, shared: SharedSurveys, work: Work) -> SurveyedRun:
    """Read the shards of a run.

    Raises:
        CorruptDataError: a record is damaged.
        FileAccessError: a shard cannot be read.
    """
    survey = RecordSurvey(run.shards[0].split, shared)
    places = {id(shard): place for place, shard in enumerate(run.shards)}
    counts = [0] * len(run.shards)
    current, before, advanced = None, 0, 0
    for shard, block in blocks_of(run.shards):
        work.check()
        place = places[id(shard)]
        with LocatedBlock(block, shard).located():
            survey.add(block, place_numbers(run.first + place, block.position, len(block)))
        counts[place] += len(block)
        if shard.compression == "none":
            before, current = before if shard is current else 0, shard
            end = block.offset + len(block.buffer)
            work.advance(end - before)
            advanced, before = advanced + end - before, end
    work.advance(sum(run.sizes) - advanced)
    return SurveyedRun(survey, counts, [shard.compression for shard in run.shards])
