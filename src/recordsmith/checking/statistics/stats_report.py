"""Computes the statistics of a dataset in one pass over all records, in bounded memory.

Each thread, or task of an engine, reads neighboring shards of a split in order. Results are merged
in the order of the shards.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from recordsmith.checking.shard_summaries import PAYLOADS, ShardSummary, ShardTotals
from recordsmith.checking.statistics.box_stats import BoxStats
from recordsmith.checking.statistics.class_counts import (
    NUMBERED_KEYS,
    TEXT_OF_LABEL,
    ClassStats,
    class_stats,
)
from recordsmith.checking.statistics.episode_stats import EpisodeStats
from recordsmith.checking.statistics.feature_stats import (
    BytesStats,
    FeatureBuilder,
    FeatureStats,
    bytes_table,
    features_table,
    numbers_table,
)
from recordsmith.checking.statistics.findings import (
    Finding,
    group_findings,
    leak_findings,
    make_findings,
)
from recordsmith.checking.statistics.keypoint_stats import KeypointStats
from recordsmith.checking.statistics.leakage import Leak, find_leaks
from recordsmith.checking.statistics.mask_stats import MaskStats
from recordsmith.checking.statistics.number_stats import NumberStats
from recordsmith.checking.statistics.record_builder import MAX_FEATURES, MAX_LEFT_OUT, RecordBuilder
from recordsmith.checking.statistics.sampling import place_numbers
from recordsmith.dataset import (
    ClassNames,
    Dataset,
    FindingsWriter,
    LocatedBlock,
    Paths,
    ShardRange,
    blocks_of,
    dataset_of,
    part_for_task,
    part_from_task,
    records_of,
)
from recordsmith.format.example.keys import IMAGE, MASK, OBJECT_LABEL
from recordsmith.format.example.usual_names import USUAL_NAMES
from recordsmith.stores import PlaceLike
from recordsmith.support.explaining import unknown_word
from recordsmith.support.reports import ReportContent, ReportTable
from recordsmith.support.serialization import fields_to_json, to_json
from recordsmith.support.summaries import Report
from recordsmith.support.tasks import Engine, Task, completed, in_order
from recordsmith.support.words import count as format_count
from recordsmith.support.words import size as format_size
from recordsmith.support.work import Progress, WorkerPool, thread_count

_FOREIGN = ("ELWC", "Event", "other")
_READ_TOGETHER_BYTES = 32 << 20

_About: TypeAlias = tuple[Sequence[str], Sequence[int] | None]
"""`compared` and `named` of a `RecordBuilder`."""


@dataclass(frozen=True, repr=False)
class StatsReport(ShardTotals, Report):
    """Statistics of a dataset. All figures are exact but those of samples, which are called so.

    shards: record and byte counts of each shard.
    payloads: number of records by type: Example, SequenceExample, ELWC, Event, other.
    sizes: payload sizes in bytes.
    sections: features of Examples; context and feature_lists of SequenceExamples.
    classes: count of each class, for features that look like labels.
    masks: pixels per class, for features that hold masks.
    boxes: number and sizes of boxes; None without `image/object/bbox/`.
    keypoints: how many are labelled and visible; None without any.
    episodes: number and lengths of episodes, ranges of their actions; None if records are not
        episodes.
    leakage: images, and groups of `group_column`, that are in two splits.
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
    keypoints: KeypointStats | None
    episodes: EpisodeStats | None
    leakage: tuple[Leak, ...]
    findings: tuple[Finding, ...]
    left_out: int = 0

    @property
    def features(self) -> Mapping[str, FeatureStats]:
        """The features of Examples, by key."""
        return self.sections.get("features", {})

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict; see docs/reference/json.md for its keys."""
        return {
            **fields_to_json(self, ("record_count", "size_bytes", "payloads", "sizes")),
            **self.shards_to_json(),
            **fields_to_json(self, ("class_names", "classes", "masks", "boxes", "keypoints")),
            **fields_to_json(self, ("episodes",)),
            **fields_to_json(self, ("leakage", "findings", "left_out")),
            "features": {},
            **to_json(self.sections),
        }

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        findings = len(self.findings)
        size = format_size(self.size_bytes)
        number = len(self.payloads)
        payloads = ", ".join(
            PAYLOADS[payload][n != 1] if number == 1 else format_count(n, *PAYLOADS[payload])
            for payload, n in self.payloads.items()
        )
        shards = format_count(len(self.shards), "shard")
        summary = f"{format_count(self.record_count, 'record')} in {shards}, {size}"
        return ReportContent(
            summary=f"{summary}: {payloads}" if payloads else summary,
            verdict=format_count(findings, "finding") if findings else "no findings",
            level="note" if findings else "good",
            figures=(
                (f"{self.record_count:,}", "records"),
                (f"{len(self.shards):,}", "shards"),
                (size, "read"),
                (f"{sum(map(len, self.sections.values())):,}", "features"),
            ),
            tables=[table for table in self._tables() if table.rows],
            findings=[*group_findings(self.findings)],
            notes=[*self._notes()],
        )

    def _tables(self) -> Iterator[ReportTable]:
        yield self.splits_table()
        for section, features in self.sections.items():
            yield features_table(section, features)
            yield numbers_table(features)
            yield bytes_table(features)
            for key, feature in features.items():
                values = feature.values.get("bytes")
                if isinstance(values, BytesStats) and values.images is not None:
                    yield values.images.table(key, values.sizes)
        counts = {key: classes.by_split() for key, classes in self.classes.items()}
        repeated = {  # texts that only repeat the names of the labels
            text for key, text in TEXT_OF_LABEL.items() if counts.get(key) == counts.get(text)
        }
        for key, classes in self.classes.items():
            if key not in repeated:
                yield classes.table(key)
        for key, masks in self.masks.items():
            yield masks.table(key)
        if self.boxes is not None:
            yield self.boxes.table()
        if self.keypoints is not None:
            yield self.keypoints.table()
        if self.episodes is not None:
            yield self.episodes.table()

    def _notes(self) -> Iterator[str]:
        if self.left_out:
            least = "at least " if self.left_out >= MAX_LEFT_OUT else ""
            have = "has" if self.left_out == 1 else "have"
            yield (
                f"{least}{format_count(self.left_out, 'more feature')} {have} no statistics: only "
                f"the first {MAX_FEATURES:,} get them. If feature names contain values, such as an "
                "id, store these in one feature with the same name in all records."
            )
        number = sum(self.payloads.get(payload, 0) for payload in _FOREIGN)
        if number:
            is_all = number == self.record_count
            records = "all records" if is_all else format_count(number, "record")
            are = "is not an Example" if number == 1 and not is_all else "are not Examples"
            yield f"{records} {are}: only sizes are shown. `recordsmith head` shows their contents"


def stats(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    group_column: str | None = None,
    findings: PlaceLike | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> StatsReport:
    """Compute statistics of a dataset by reading every record once.

    Results do not depend on threads or engines. Quantiles and frequent values are those of a sample
    of 10,000 values of each feature, chosen by a hash of their positions: exact up to as many
    values. Memory does not grow with the dataset. It takes at most 3 MB per feature, 20 MB per
    feature with masks, 50 MB for label texts, and 25 MB to compare images or groups between splits,
    times the number of threads plus two; and one block of records per thread.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: only this split, or part of one: train, train[:80%]. None for all.
        group_column: the feature with the group of each record, such as a patient: groups in two
            splits are reported, as identical images are in any case.
        findings: also write to this file, for `without`, all records with a not-finite number, a
            label-negative or label-unnamed, an image with an invalid header (unreadable-images), or
            invalid-boxes. Other findings are about features as a whole and have no places.
        overwrite: replace existing files.
        engine: what runs the job, such as `rs.engines.Processes(4)`; None for threads of this
            process. Its processes must see the files under the same paths.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done_bytes, total_bytes)`.

    Returns:
        Statistics of features, classes, images, masks and boxes, and findings on likely problems.

    Raises:
        CorruptDataError: a record is damaged, a shard is missing, or its size differs from the
            manifest.
        FileAccessError, OptionError: as in `recordsmith.open`; or no record has the feature
            `group_column`, the file `findings` exists, or a process of the engine does not see the
            same file.

    Example:
        report = rs.stats("out")
        print(report.record_count, report.findings)
    """
    workers = WorkerPool(thread_count(threads), progress)
    dataset = dataset_of(paths_or_dataset, split)
    shards = records_of(dataset).in_file_order().parts()
    sizes = [shard.size_bytes for shard in shards]
    workers.total = sum(sizes)
    origin = dataset.view.origin.places
    writer = FindingsWriter.of_dataset(findings, "stats", origin, overwrite=overwrite, split=split)
    names = enumerate(dataset.class_names or ())
    named = [label for label, name in names if name is not None] if writer is not None else None
    runs = list(_runs(shards, sizes))
    counts, compressions = [], []
    limits: dict[str, int] = {}
    compared = {*USUAL_NAMES[IMAGE], *([] if group_column is None else [group_column])}
    if len({shard.split for shard in shards}) < 2 and group_column is None:
        compared = set()
    whole = RecordBuilder("", limits)
    about = sorted(compared), named
    with closing(_read_on(engine, runs, workers, limits, about)) as results:
        for result in results:
            counts += result.counts
            compressions += result.compressions
            whole.merge(result.records)
    workers.finish()
    summaries = tuple(
        ShardSummary(str(shard.location), shard.split, count, size, compression)
        for shard, count, size, compression in zip(shards, counts, sizes, compressions, strict=True)
    )
    if group_column is not None and group_column not in whole.leakage:
        known = [key for section in whole.sections.values() for key in section]
        raise unknown_word("group_column", group_column, sorted(known))
    report = _report(whole, summaries, dataset, group_column)
    if writer is not None:
        for finding in report.findings:
            for number, row in whole.found.of(finding.kind, finding.feature):
                shard = shards[number]
                record = row if shard.numbers is None else int(shard.numbers[row])
                writer.add_record(finding.kind, "warning", shard.location, record, finding.feature)
        writer.save()
    return report


@dataclass(frozen=True)
class Run:
    """Neighboring shards of one split, with their sizes in bytes; `first` is the first's number."""

    first: int
    shards: Sequence[ShardRange]
    sizes: Sequence[int]


@dataclass(frozen=True)
class RunResult:
    """The statistics of a run, with the record count and the compression of each shard."""

    records: RecordBuilder
    counts: list[int]
    compressions: list[str]


def _runs(shards: Sequence[ShardRange], sizes: Sequence[int]) -> Iterator[Run]:
    """Yield runs of neighboring shards of one split; small shards are read together."""
    first = 0
    for stop in range(1, len(shards) + 1):
        is_last = stop == len(shards) or shards[stop].split != shards[first].split
        if is_last or sum(sizes[first:stop]) >= _READ_TOGETHER_BYTES:
            yield Run(first, shards[first:stop], sizes[first:stop])
            first = stop


def _read_on(
    engine: Engine | None,
    runs: Sequence[Run],
    workers: WorkerPool,
    mask_limits: MutableMapping[str, int],
    about: _About,
) -> Generator[RunResult]:
    """Yield the results of the runs in order, from threads or from the processes of an engine."""
    if engine is None:
        read = partial(_read, mask_limits=mask_limits, workers=workers, about=about)
        ahead = min(workers.threads, sum(len(run.shards) for run in runs)) + 2
        with closing(workers.in_order(read, runs, ahead=ahead)) as results:
            yield from results
        return
    tasks = (
        Task(
            run_task,
            number,
            str(run.shards[0].location),
            sum(run.sizes),
            (run.first, [*map(part_for_task, run.shards)], about),
        )
        for number, run in enumerate(runs)
    )
    with closing(completed(engine, tasks, workers.advance)) as results:
        yield from in_order(results)


def run_task(content: tuple[int, list[Any], _About]) -> RunResult:
    """Read the shards of a task; return their statistics."""
    first, documents, about = content
    shards = [*map(part_from_task, documents)]
    return _read(Run(first, shards, [0] * len(shards)), {}, WorkerPool(1, None), about)


def _read(
    run: Run, mask_limits: MutableMapping[str, int], workers: WorkerPool, about: _About
) -> RunResult:
    records = RecordBuilder(run.shards[0].split, mask_limits, *about)
    number_of = {id(shard): number for number, shard in enumerate(run.shards)}
    counts = [0] * len(run.shards)
    current, before, advanced = None, 0, 0
    for shard, block in blocks_of(run.shards):
        workers.check()
        number = number_of[id(shard)]
        with LocatedBlock(block, shard).located():
            records.add(block, place_numbers(run.first + number, block.position, len(block)))
        counts[number] += len(block)
        if shard.compression == "none":
            before, current = before if shard is current else 0, shard
            end = block.offset + len(block.buffer)
            workers.advance(end - before)
            advanced, before = advanced + end - before, end
    workers.advance(sum(run.sizes) - advanced)
    return RunResult(records, counts, [shard.compression for shard in run.shards])


def _report(
    whole: RecordBuilder,
    shards: tuple[ShardSummary, ...],
    dataset: Dataset,
    group_column: str | None,
) -> StatsReport:
    class_names = dataset.class_names
    sections = {
        name: {key: section[key].finish(count) for key in sorted(section)}
        for name, count, section in _sections(whole)
    }
    features = {key: known for section in sections.values() for key, known in section.items()}
    classes = {}
    for key, splits in sorted(whole.classes.items()):
        if features[key].is_one_hot and key != OBJECT_LABEL:
            continue
        is_named = key in NUMBERED_KEYS or len(whole.classes) == 1
        if (stats_of_key := class_stats(splits, class_names if is_named else None)) is not None:
            classes[key] = stats_of_key
    masks = {
        key: built.finish(class_names if key == MASK else None)
        for key, built in sorted(whole.masks.items())
    }
    boxes = whole.boxes.finish()
    leakage = tuple(find_leaks(whole.leakage))
    findings = [
        *leak_findings(leakage, group_column),
        *make_findings(sections, class_names, classes, masks, boxes),
    ]
    return StatsReport(
        shards=shards,
        payloads=dict(whole.payloads.most_common()),
        sizes=whole.sizes.finish(),
        sections=sections,
        class_names=class_names,
        classes=classes,
        masks=masks,
        boxes=boxes,
        keypoints=whole.keypoints.finish(class_names, dataset.keypoint_classes),
        episodes=whole.episodes.finish(),
        leakage=leakage,
        findings=tuple(findings),
        left_out=len(whole.left_out),
    )


def _sections(whole: RecordBuilder) -> Iterator[tuple[str, int, dict[str, FeatureBuilder]]]:
    """Yield (name, number of records that can have its features, features) of each section."""
    sections = whole.sections
    examples = whole.payloads["Example"]
    sequences = whole.payloads["SequenceExample"]
    features, context = sections["features"], sections["context"]
    if sequences and features.keys() <= context.keys():  # without lists they look like Examples
        for key, feature in features.items():
            context[key].merge(feature)
        sequences, examples = sequences + examples, 0
    if sequences:
        yield "context", sequences, context
        yield "feature_lists", sequences, sections["feature_lists"]
    if examples:
        yield "features", examples, sections["features"]
