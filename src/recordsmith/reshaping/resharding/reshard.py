"""`recordsmith.reshard`: rewrite records to new shards, completely or not at all.

Steps: decompress, evaluate the condition, plan, copy every shard under a temporary name, rename all
shards, write the manifest. As in packing, an interrupted job leaves the folder unchanged and keeps
complete shards in a hidden folder for resuming.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    ShardCounts,
    ShardResult,
    check_folder,
    clean_up_after_kill,
    completed_files,
    existing_dataset,
    files_to_replace,
    locked_folder,
    make_manifest,
    merge_notes,
    note_files,
    publish_dataset,
    writing,
)
from recordsmith.dataset import DEFAULT_TEMPLATE, Dataset, Manifest
from recordsmith.dataset.locate import Paths
from recordsmith.errors import DAMAGED_RECORDS, DataError, with_options
from recordsmith.example import Schema
from recordsmith.reshaping.editing.edits import Edits
from recordsmith.reshaping.inputs.decompressed_shards import open_records
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.inputs.input_shards import Inputs, find_inputs
from recordsmith.reshaping.inputs.selected_inputs import SelectedInputs, selected_inputs
from recordsmith.reshaping.resharding.feature_checks import (
    check_options,
    survey,
)
from recordsmith.reshaping.resharding.record_selection import MatchedRecords, select
from recordsmith.reshaping.resharding.reshard_options import ReshardOptions
from recordsmith.reshaping.resharding.reshard_plan import (
    ReshardPlan,
    make_plan,
    reshard_fingerprint,
)
from recordsmith.reshaping.resharding.reshard_report import ReshardReport
from recordsmith.reshaping.resharding.reshard_task import ReshardTasks
from recordsmith.reshaping.resharding.shard_copies import PlannedSpans, ShardCopies
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.tasks import Engine
from recordsmith.where import parse_where
from recordsmith.words import note_text
from recordsmith.work import Progress, Work, thread_count


def reshard(
    paths_or_dataset: Paths | Dataset,
    out: PlaceLike,
    *,
    split: str | None = None,
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    take: int | None = None,
    sample: float | None = None,
    splits: Mapping[str, float] | None = None,
    where: str | None = None,
    edits: Edits | None = None,
    tiles: bool = False,
    compression: str | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReshardReport:
    """Rewrite the records of TFRecord files to new shards, byte for byte without edits and tiles.

    Applies `where`, then `sample`, then `splits`, then `shuffle`, and finally `take`.

    Args:
        paths_or_dataset: a file, a folder, a glob pattern, or a list of these; splits with the same
            name are joined in this order. Or a Dataset, such as a slice or a filter, whose records
            are in the order of its files.
        out: the folder of the new dataset; created if necessary.
        split: only this split, or part of one: train, train[:80%]. None for all.
        shards: number of shards of each split. A dict has a number for each split.
        shard_size_bytes: approximate size of a shard before compression, instead of `shards`; None
            for 256MB.
        shuffle: shuffle each split, over all its files.
        seed: random seed.
        take: only the first records of each split, at most this number, after shuffling. None for
            all.
        sample: random share of each split, in the original order. None for all.
        splits: names and shares of new random splits; None for the existing ones.
        where: only records that match, such as "image/class/label in (1, 2)".
        edits: features to drop, rename, add or recode.
        tiles: divide baseline JPEGs into tiles without loss, so that crops decode faster. Images
            that cannot be divided are kept and reported.
        compression: compression of the shards: none, gzip or zlib; None for that of the inputs if
            all are equal, else none.
        shard_names: pattern of the shard names, with {split}, {shard} and {shards}.
        overwrite: replace an existing dataset.
        engine: what writes the shards, as in `pack`; `where` is evaluated by this process.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report. Equal inputs, options and seed give equal bytes, for any number of threads and
        interruptions.

    Raises:
        OptionError: options contradict each other or the data; the inputs have different classes;
            the folder contains another dataset.
        SourceError: the inputs have no records.
        CorruptDataError: an input is damaged, or was modified during the job. No output is left.
        FileAccessError: a file cannot be read or written, or the disk is full.

    Example:
        >>> recordsmith.reshard("out", "shuffled", shuffle=True, shards=16)  # doctest: +SKIP
    """
    options = ReshardOptions(
        split=split,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        shuffle=shuffle,
        seed=seed,
        take=take,
        sample=sample,
        splits=splits,
        where=None if where is None else parse_where(where),
        edits=edits,
        tiles=tiles,
        compression=compression,
        shard_names=shard_names,
    )
    return reshard_from_options(
        options,
        paths_or_dataset,
        out,
        overwrite=overwrite,
        engine=engine,
        threads=threads,
        progress=progress,
    )


def reshard_from_options(
    options: ReshardOptions,
    paths_or_dataset: Paths | Dataset,
    out: PlaceLike,
    *,
    overwrite: bool,
    engine: Engine | None = None,
    threads: int | None,
    progress: Progress | None,
) -> ReshardReport:
    """Run `reshard` with the options that determine the output as one object."""
    folder = as_folder(out)
    check_folder(folder)
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)
    selected = selected_inputs(paths_or_dataset, options.split)
    inputs = find_inputs(selected.paths, selected.splits, folder)
    options = replace(options, split=selected.split, selection=selected.description)
    return _Job(options, inputs, selected, folder, work, overwrite=overwrite, engine=engine).run()


class _Job:
    """One call of `reshard`, with checked inputs and options."""

    def __init__(
        self,
        options: ReshardOptions,
        inputs: Inputs,
        selected: SelectedInputs,
        folder: Location,
        work: Work,
        *,
        overwrite: bool,
        engine: Engine | None,
    ) -> None:
        self._engine = engine
        self._options = options
        self._inputs = inputs
        self._selected = selected
        self._folder = folder
        self._work = work
        self._overwrite = overwrite
        self._fingerprint = reshard_fingerprint(options, inputs)
        names = inputs.class_names
        self._class_names = names if options.edits is None else options.edits.class_names(names)
        if inputs.schema is not None:
            check_options(inputs.schema, options, names)

    def run(self) -> ReshardReport:
        with locked_folder(self._folder) as notices:
            report = self._run()
        report.notices += notices
        return report

    def _run(self) -> ReshardReport:
        earlier = self._earlier(())
        if earlier is not None and not self._overwrite:
            clean_up_after_kill(self._folder)
            return ReshardReport.from_manifest(self._folder, earlier, is_new=False)
        files = completed_files(self._folder)  # perhaps of this job; its files are not known yet
        try:
            with writing(
                self._folder,
                self._fingerprint,
                files,
                overwrite=self._overwrite,
                earlier=earlier,
                keeps_shards=self._engine is not None,
            ) as folder:
                manifest, reused_count = self._build(folder, earlier, files)
        except DataError as error:
            for shard in self._inputs.shards:
                shard.check_unchanged()  # explains the defect better
            if error.defect in DAMAGED_RECORDS:
                error.advise("Nothing was written.")
            raise
        return ReshardReport.from_manifest(
            self._folder, manifest, is_new=True, reused_count=reused_count
        )

    def _earlier(self, files: Sequence[str]) -> Manifest | None:
        return existing_dataset(
            self._folder,
            self._fingerprint,
            files,
            has_label_map=self._inputs.has_label_map,
            overwrite=self._overwrite,
        )

    def _build(
        self, folder: Location, earlier: Manifest | None, files: list[str]
    ) -> tuple[Manifest, int]:
        """Write the dataset; return its manifest and the number of shards of an earlier run.

        The names of the shards are stored in `files` as soon as they are known.
        """
        inputs, work = self._inputs, self._work
        passes = 0 if self._options.where is None else 1
        work.total = (1 + passes) * inputs.size_bytes
        records, notices = open_records(inputs, folder, work, is_shared=self._engine is not None)
        work.total += (1 + passes) * (sum(records.sizes) - inputs.size_bytes)
        self._check(records)
        plan = make_plan(self._options, inputs, records, self._choose(records))
        notices += plan.notices
        work.total += plan.size_bytes - sum(records.sizes)
        files[:] = [shard.file for shard in plan.shards]
        self._earlier(files)
        note_files(folder, files)
        schemas = self._known_schemas(plan)
        spans = PlannedSpans(plan, records)
        surveyed = plan.pools.keys() - schemas.keys()
        options = self._options
        if self._engine is None:
            copies = ShardCopies(
                folder,
                self._fingerprint,
                plan.compression,
                records,
                spans.of,
                work,
                versions=inputs.versions(),
                surveyed=surveyed,
                edits=options.edits,
                tiles=options.tiles,
            )
            results = copies.run(plan.shards, trusting=not self._overwrite)
        else:
            job = ReshardTasks(
                folder,
                self._fingerprint,
                plan,
                records,
                spans,
                versions=inputs.versions(),
                surveyed=surveyed,
                options=options,
                trusting=not self._overwrite,
            )
            results = job.run(self._engine, work, earlier)
            records.check_unchanged()
        manifest = self._manifest(plan, results, schemas, records, notices)
        publish_dataset(
            folder,
            self._fingerprint,
            manifest,
            has_label_map=inputs.has_label_map,
            replaced=files_to_replace(folder, plan.pools, earlier),
        )
        return manifest, sum(result.was_reused for result in results)

    def _check(self, records: InputRecords) -> None:
        """Check the options against the features if no manifest contains the schema."""
        inputs, work = self._inputs, self._work
        if self._options.edits is None or inputs.schema is not None:
            return
        numbers = range(len(records))
        work.total += sum(records.sizes)
        schemas = work.each(lambda number: survey(records, number, work.advance), numbers)
        check_options(Schema.merged(schemas), self._options, inputs.class_names)

    def _choose(self, records: InputRecords) -> dict[int, MatchedRecords] | None:
        """Return the selected records of each input that match the condition."""
        where, selected = self._options.where, self._selected
        if where is None and selected.numbers is None:
            return None

        def choose(number: int) -> MatchedRecords:
            flags = selected.flags(records.location(number), records.counts[number])
            return select(records, number, where, flags, self._work.advance)

        numbers = range(len(records))
        kept = self._work.each(choose, numbers)
        if where is not None:
            where.check_features_found()
        return dict(zip(numbers, kept, strict=True))

    def _known_schemas(self, plan: ReshardPlan) -> dict[str, Schema]:
        """Return the schemas of unchanged splits, if known from manifests."""
        options = self._options
        if options.edits is not None or options.tiles or options.splits is not None:
            return {}
        return {
            split: schema
            for split, schema in self._inputs.schemas.items()
            if split in plan.pools
            and plan.is_unchanged(split)
            and schema.record_count == len(plan.pools[split])
        }

    def _manifest(
        self,
        plan: ReshardPlan,
        results: Sequence[ShardResult],
        schemas: dict[str, Schema],
        records: InputRecords,
        notices: list[str],
    ) -> Manifest:
        provenance: dict[str, Any] = {
            "reshard": self._options.to_json(),
            "fingerprint": self._fingerprint,
            "source": {
                "kind": "Shards",
                "files": list(self._inputs.names),
                "provenance": list(self._inputs.provenance),
            },
            "records_in": sum(records.counts),
            "bytes_in": self._inputs.size_bytes,
            "notices": notices,
        }
        manifest = make_manifest(
            plan.pools,
            zip([shard.split for shard in plan.shards], results, strict=True),
            plan.compression,
            self._class_names,
            provenance,
            schemas=schemas,
            arrow_schema=None if self._options.edits else self._inputs.arrow_schema,
            tfds=None if self._options.edits else self._inputs.tfds,
        )
        notices += [  # `provenance` has the same list
            f"feature {key!r} has several kinds"
            for section in manifest.schema.sections.values()
            for key, feature in section.items()
            if feature.kind == "mixed"
        ]
        if self._options.edits is not None:
            notices += self._options.edits.notices(manifest.schema)
        notices += [
            note_text(noted.count, with_options(what))
            for what, noted in merge_notes(result.notes for result in results).items()
        ]
        if manifest.schema.omission is not None:
            notices.append(manifest.schema.omission)
        return manifest
