"""Computes the statistics of a dataset in one pass over all records, in bounded memory.

Each thread, or task of an engine, reads neighboring shards of a split in order. Results are merged
in the order of the shards, so that they do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordsmith.dataset import (
    AnyShard,
    ClassNames,
    Dataset,
    dataset_of,
    records_of,
)
from recordsmith.dataset.locate import Paths
from recordsmith.examining.shard_summaries import ShardSummary, ShardTotals
from recordsmith.examining.stats.box_stats import BoxStats
from recordsmith.examining.stats.class_counts import (
    NUMBERED_KEYS,
    ClassStats,
    ClassSurvey,
    is_label,
)
from recordsmith.examining.stats.duplicates import DuplicateStats
from recordsmith.examining.stats.feature_stats import (
    FeatureStats,
    FeatureStatsSurvey,
)
from recordsmith.examining.stats.findings import Finding, make_findings
from recordsmith.examining.stats.mask_stats import MaskStats
from recordsmith.examining.stats.number_stats import NumberStats
from recordsmith.examining.stats.places import Places
from recordsmith.examining.stats.record_survey import RecordSurvey, SharedSurveys
from recordsmith.examining.stats.shard_runs import Run, SurveyedRun, read_run
from recordsmith.examining.stats.stats_task import run_from_json, stats_tasks
from recordsmith.example.keys import MASK
from recordsmith.serialization import fields_to_json, to_json
from recordsmith.summaries import Report
from recordsmith.tasks import Engine, completed, in_order
from recordsmith.work import Progress, Work, thread_count

_READ_TOGETHER_BYTES = 32 << 20


@dataclass(frozen=True, repr=False)
class StatsReport(ShardTotals, Report):
    """Statistics of a dataset. Estimates come with their errors.

    shards: record and byte counts of each shard.
    payloads: number of records by type: Example, SequenceExample, ELWC, Event, other.
    sizes: payload sizes in bytes.
    sections: features of Examples; context and feature_lists of SequenceExamples; context and
        examples of ranking lists, counted per Example.
    classes: count of each class, for features that look like labels.
    masks: pixels per class, for features that hold masks.
    boxes: number and sizes of boxes; None without `image/object/bbox/`.
    duplicates: duplicate records, and duplicate images of each feature.
    findings: likely problems.
    left_out: number of features without statistics, because there are too many; at most 65,536.
    """

    _shown = ("record_count", "size_bytes")

    shards: tuple[ShardSummary, ...]
    payloads: Mapping[str, int]
    sizes: NumberStats
    sections: Mapping[str, Mapping[str, FeatureStats]]
    class_names: ClassNames | None
    classes: Mapping[str, ClassStats]
    masks: Mapping[str, MaskStats]
    boxes: BoxStats | None
    duplicates: tuple[DuplicateStats, ...]
    findings: tuple[Finding, ...]
    left_out: int = 0

    @property
    def features(self) -> Mapping[str, FeatureStats]:
        """The features of Examples, by key."""
        return self.sections.get("features", {})

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict; see docs/json.md for its keys."""
        return {
            **fields_to_json(self, ("record_count", "size_bytes", "payloads", "sizes")),
            **self.shards_to_json(),
            **fields_to_json(self, ("class_names", "classes", "masks", "boxes", "duplicates")),
            **fields_to_json(self, ("findings", "left_out")),
            "features": {},
            **to_json(self.sections),
        }


def stats(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> StatsReport:
    """Compute statistics of a dataset by reading every record once.

    Results do not depend on the number of threads. Memory does not grow with the dataset. It takes
    at most: 3 MB per feature and 10 MB for label texts, times the number of threads plus two;
    120 MB to find duplicate records, and again for each of up to four image features; 3 MB per
    label feature and split; 20 MB for each of up to four features with masks; and one block of
    records per thread.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: use only this split, or part of one, as in `recordsmith.open`.
        engine: what runs the job, such as `rs.engines.Processes(4)`; None for threads of this
            process. Its processes must see the files under the same paths.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done_bytes, total_bytes)`.

    Returns:
        Statistics of features, classes, images, masks, boxes and duplicates, and findings on likely
        problems.

    Raises:
        CorruptDataError: a record is damaged, a shard is missing, or its size differs from the
            manifest.
        FileAccessError, OptionError: as in `recordsmith.open`; or a process of the engine does not
            see the same file.
    """
    work = Work(thread_count(threads), progress)
    dataset = dataset_of(paths_or_dataset, split)
    survey = _DatasetSurvey(records_of(dataset).in_file_order().parts(), work)
    survey.read(engine)
    return survey.finish(dataset.class_names)


class _DatasetSurvey:
    """Reads shards and collects their statistics."""

    def __init__(self, shards: Sequence[AnyShard], work: Work) -> None:
        self._shards = shards
        self._sizes = [shard.size_bytes for shard in shards]
        self._counts = [0] * len(shards)
        self._compressions = [""] * len(shards)
        self._work = work
        work.total = sum(self._sizes)
        self._shared = SharedSurveys()
        self._all = RecordSurvey("", self._shared)
        self._classes: dict[str, ClassSurvey] = {}

    def read(self, engine: Engine | None) -> None:
        """Read all shards, merging results in their order."""
        work = self._work
        runs = [self._run(numbers) for numbers in self._runs()]
        if engine is not None:
            tasks = stats_tasks(runs)
            with closing(completed(engine, tasks, work.advance)) as results:
                for run, result in zip(runs, in_order(results), strict=True):
                    self._merge(run, run_from_json(result))
            work.finish()
            return
        ahead = min(work.threads, len(self._shards)) + 2
        read = partial(read_run, shared=self._shared, work=work)
        with closing(work.in_order(read, runs, ahead=ahead)) as surveys:
            for run, found in zip(runs, surveys, strict=True):
                self._merge(run, found)

    def _run(self, numbers: Sequence[int]) -> Run:
        first, stop = numbers[0], numbers[-1] + 1
        return Run(first, self._shards[first:stop], self._sizes[first:stop])

    def _runs(self) -> Iterator[list[int]]:
        """Yield runs of neighboring shards of one split; small shards share a survey."""
        run: list[int] = []
        size = 0
        for number, shard in enumerate(self._shards):
            is_other = run and self._shards[run[0]].split != shard.split
            if run and (is_other or size >= _READ_TOGETHER_BYTES):
                yield run
                run, size = [], 0
            run.append(number)
            size += self._sizes[number]
        if run:
            yield run

    def _merge(self, run: Run, found: SurveyedRun) -> None:
        survey, stop = found.survey, run.first + len(run.shards)
        self._counts[run.first : stop] = found.counts
        self._compressions[run.first : stop] = found.compressions
        for section in survey.sections.values():
            for key, feature in section.items():
                if is_label(key):
                    self._classes.setdefault(key, ClassSurvey()).add(survey.split, feature)
        self._all.merge(survey)

    def finish(self, class_names: ClassNames | None) -> StatsReport:
        """Return the statistics and findings."""
        places = Places(self._shards)
        records, payloads = self._all.record_count, self._all.payloads
        sections: dict[str, dict[str, FeatureStats]] = {}
        for name, counted, section in self._sections():
            sections[name] = {key: section[key].finish(counted, places) for key in sorted(section)}
        classes = {}
        for key, survey in sorted(self._classes.items()):
            is_named = key in NUMBERED_KEYS or len(self._classes) == 1
            found = survey.finish(class_names if is_named else None)
            if found is not None:
                classes[key] = found
        shards = tuple(
            ShardSummary(str(shard.location), shard.split, count, size, compression)
            for shard, count, size, compression in zip(
                self._shards, self._counts, self._sizes, self._compressions, strict=True
            )
        )
        duplicates = tuple(self._shared.finish(places)) if records else ()
        texts = {key: found.finish() for key, found in sorted(self._all.label_texts.items())}
        masks = {
            key: found.finish(class_names if key == MASK else None)
            for key, found in sorted(self._shared.masks.items())
        }
        boxes = self._all.boxes.finish(records, places)
        findings = make_findings(
            shards, sections, class_names, classes, texts, masks, boxes, duplicates
        )
        return StatsReport(
            shards=shards,
            payloads=dict(payloads.most_common()),
            sizes=self._all.sizes.finish(),
            sections=sections,
            class_names=class_names,
            classes=classes,
            masks=masks,
            boxes=boxes,
            duplicates=duplicates,
            findings=tuple(findings),
            left_out=len(self._all.left_out),
        )

    def _sections(self) -> Iterator[tuple[str, int, dict[str, FeatureStatsSurvey]]]:
        """Yield (name, number of records that can have its features, features) of each section."""
        sections = self._all.sections
        examples = self._all.payloads["Example"]
        sequences = self._all.payloads["SequenceExample"]
        lists = self._all.payloads["ELWC"]
        features, context = sections["features"], sections["context"]
        if sequences and features.keys() <= context.keys():  # without lists they look like Examples
            for key, feature in features.items():
                context[key].merge(feature)
            sequences, examples = sequences + examples, 0
        if sequences or lists:
            yield "context", sequences + lists, context
        if sequences:
            yield "feature_lists", sequences, sections["feature_lists"]
        if lists:
            yield "examples", self._all.listed_count, sections["examples"]
        if examples:
            yield "features", examples, sections["features"]
