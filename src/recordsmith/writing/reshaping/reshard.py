"""`recordsmith.reshard` and `recordsmith.edit`: rewrite records to new shards, or nothing at all.

Steps: decompress, evaluate the condition, plan, copy every shard under a temporary name, rename all
shards, write the manifest. As in packing, an interrupted job leaves the folder unchanged and keeps
complete shards in a hidden folder for resuming.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recordsmith.dataset import (
    DEFAULT_TEMPLATE,
    Dataset,
    Manifest,
    Paths,
    ShardCounts,
    dataset_of,
    parse_where,
)
from recordsmith.format.example import Schema, SchemaSurvey
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.support.errors import DAMAGED_RECORDS, DataError, OptionError, located, option
from recordsmith.support.summaries import Report
from recordsmith.support.tasks import Engine
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.building import publishing
from recordsmith.writing.building.claims import note_files
from recordsmith.writing.building.shards import ShardResult, completed_files
from recordsmith.writing.layers.table_features import TableValues
from recordsmith.writing.reshaping.casting import CastKind
from recordsmith.writing.reshaping.copies import CopyJob
from recordsmith.writing.reshaping.edits import Edits
from recordsmith.writing.reshaping.inputs import (
    InputRecords,
    Inputs,
    InputSelection,
    check_unchanged,
    find_inputs,
    named_groups,
    open_records,
)
from recordsmith.writing.reshaping.plan import (
    MatchedRecords,
    ReshardOptions,
    ReshardPlan,
    choose_records,
    make_plan,
    reshard_fingerprint,
)
from recordsmith.writing.reshaping.recoding import TableLike
from recordsmith.writing.reshaping.setting import (
    SetOption,
    described,
    values_of_option,
    with_values,
)
from recordsmith.writing.reshaping.without import Without, select_without


@dataclass(repr=False)
class ReshardReport(Report):
    """The report of `reshard` and `edit`.

    folder: the new dataset.
    records_in: number of records of the inputs.
    record_count: number of written records.
    shard_count: number of shards.
    reused_count: number of shards that an interrupted run had completed.
    splits: number of records by split.
    bytes_in, bytes_out: size of the input files and of the shards.
    notices: about the inputs.
    is_new: False if the same dataset already existed.
    """

    folder: Location
    records_in: int = 0
    record_count: int = 0
    shard_count: int = 0
    reused_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def from_manifest(
        cls, folder: Location, manifest: Manifest, *, is_new: bool, reused_count: int = 0
    ) -> ReshardReport:
        """Return the report of a finished dataset."""
        provenance = manifest.provenance
        return cls(
            folder,
            records_in=int(provenance.get("records_in", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            reused_count=reused_count,
            splits=manifest.record_counts,
            bytes_in=int(provenance.get("bytes_in", 0)),
            bytes_out=manifest.size_bytes,
            notices=tuple(map(str, provenance.get("notices", ()))),
            is_new=is_new,
        )


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
    without: Without | None = None,
    checks: str | Sequence[str] = (),
    keep: str = "first",
    edits: Edits | None = None,
    compression: str | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReshardReport:
    """Rewrite the records of TFRecord files to new shards, byte for byte without edits.

    Applies `without` and `where`, then `sample`, then `splits`, then `shuffle`, and finally `take`.

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
        without: records to leave out: their positions in the dataset as it is opened, or those of a
            file that `lint`, `verify`, `stats` or `diff` wrote with `findings`: `@findings.jsonl`.
        checks: check of such a file whose records are left out. A list of them; by default all
            errors and warnings about single records.
        keep: which record stays of each group of copies or similar images: first, largest (the
            largest image), train (the first one in that split) or none.
        edits: features to drop, rename, add, recode or cast.
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
            the folder contains another dataset; the file of findings is not about the dataset as it
            is now.
        SourceError: the inputs have no records.
        CorruptDataError: an input is damaged, or was modified during the job. No output is left.
        FileAccessError: a file cannot be read or written, or the disk is full.

    Example:
        rs.reshard("out", "shuffled", shuffle=True, shards=16)
    """
    if without is not None:
        dataset = dataset_of(paths_or_dataset, split)
        paths_or_dataset, split = select_without(dataset, without, checks, keep), None
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
        compression=compression,
        shard_names=shard_names,
    )
    return _run(options, paths_or_dataset, out, overwrite, engine, threads, progress)


def edit(
    paths_or_dataset: Paths | Dataset,
    out: PlaceLike,
    *,
    drop: Iterable[str] = (),
    rename: Mapping[str, str] | None = None,
    add: Mapping[str, Any] | None = None,
    recode: Mapping[str, TableLike] | None = None,
    cast: Mapping[str, CastKind] | None = None,
    set: SetOption | None = None,
    on: str | None = None,
    on_name: bool = False,
    allow_missing: bool = False,
    encoding: str = "utf-8",
    where: str | None = None,
    split: str | None = None,
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    compression: str | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ReshardReport:
    """Rewrite a dataset with features dropped, renamed, added, recoded, cast or set by a table.

    Records keep their order and shards, and unchanged parts are copied byte for byte. Values of
    tables are set first. `drop`, `rename`, `recode`, `cast` and `where` use the features that the
    records have then; features are added last.

    Args:
        paths_or_dataset, out: as in `reshard`.
        drop: features to drop: names, or patterns such as `image/object/*`.
        rename: features to rename. New names by old ones.
        add: values by name, equal for all records, as in `encode_example`. In SequenceExamples they
            are added to the context.
        recode: a table of new values by old ones for each feature: a dict, or the path of a CSV
            file with the columns old, new and optionally name. The old value `*` is the default for
            values without a row; the new value `*` leaves those unchanged. Class names follow
            recoded labels.
        cast: `int64` or `float` for each feature whose values become numbers of that kind: floats
            that are whole, integers that float32 holds exactly, text with a number. Any other
            value is an error. Recoded values are cast afterwards.
        set: new values of features from tables: "FILE:COLUMN" for each feature, or a pair of a
            table of pyarrow, Polars, pandas or DuckDB and the column. Texts become the numbers of
            their classes where the feature has labels.
        on: how a record or row finds its partner: a feature that both have. For rows also
            FEATURE=COLUMN, or position=COLUMN for numbers of records.
        on_name: compare only what is behind the last slash, on both sides.
        allow_missing: allow records without a row or value, which keep what they have, and rows
            without a record.
        encoding: of text files.
        where: only records that match, such as "image/class/label in (1, 2)".
        split: only this split, or part of one: train, train[:80%]. None for all.
        shards: number of shards of each split; None for as many as before. A dict has a number for
            each split.
        shard_size_bytes: approximate size of a shard before compression, instead of `shards`.
        shard_names: pattern of the shard names, with {split}, {shard} and {shards}.
        compression: compression of the shards: none, gzip or zlib; None for that of the inputs if
            all are equal, else none.
        overwrite: replace an existing dataset.
        engine: what writes the shards, as in `reshard`.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report.

    Raises:
        OptionError: nothing would change; no record has a given feature; a new name exists; a
            table does not fit; records or rows have no partner; and as in `reshard`.
        CorruptDataError: a value is missing in its table or cannot be cast
            (feature-value-mismatch), or a record is not an Example or is damaged. No output is
            left.
        SourceError, FileAccessError: as in `reshard`.

    Example:
        rs.edit("out", "smaller", drop=["image/class/text"])
    """
    edits = Edits(drop=drop, rename=rename, add=add, recode=recode, cast=cast)
    if edits.is_empty and not set:
        raise OptionError(
            "no edits",
            remedy=f"Pass {option('drop')}, {option('rename')}, {option('add')}, "
            f"{option('recode')}, {option('cast')} or {option('set')}; to select records only, use "
            f"`reshard` with {option('where')}.",
        )
    has_shard_options = (shards, shard_size_bytes, shard_names) != (None, None, DEFAULT_TEMPLATE)
    options = ReshardOptions(
        split=split,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        where=None if where is None else parse_where(where),
        edits=None if edits.is_empty else edits,
        compression=compression,
        shard_names=shard_names,
        keep_shards=not has_shard_options,
    )
    values: Sequence[TableValues] = ()
    if set:
        values = values_of_option(
            set, on, on_name=on_name, allow_missing=allow_missing, encoding=encoding
        )
        options = replace(options, values=described(values))
    return _run(options, paths_or_dataset, out, overwrite, engine, threads, progress, values)


def _run(
    options: ReshardOptions,
    paths_or_dataset: Paths | Dataset,
    out: PlaceLike,
    overwrite: bool,
    engine: Engine | None,
    threads: int | None,
    progress: Progress | None,
    values: Sequence[TableValues] = (),
) -> ReshardReport:
    folder = as_folder(out)
    publishing.check_folder(folder)
    workers = WorkerPool(thread_count(threads, most=publishing.WRITING_THREADS), progress)
    selection = InputSelection.from_option(paths_or_dataset, options.split)
    inputs = find_inputs(selection.paths, selection.splits, folder)
    inputs, _scratch = with_values(inputs, values, workers)
    options = replace(options, split=selection.split, selection=selection.description)
    job = _ReshardJob(options, inputs, selection, folder, workers, overwrite, engine)
    job.check_options(inputs.schema)
    with publishing.locked_folder(folder) as notices:
        report = job.run()
    report.notices += notices
    return report


@dataclass
class _ReshardJob:
    options: ReshardOptions
    inputs: Inputs
    selection: InputSelection
    folder: Location
    workers: WorkerPool
    overwrite: bool
    engine: Engine | None

    def __post_init__(self) -> None:
        self.fingerprint = reshard_fingerprint(self.options, self.inputs)
        names, edits = self.inputs.class_names, self.options.edits
        self.class_names = names if edits is None else edits.class_names(names)
        points = self.inputs.keypoint_classes
        self.keypoint_classes = points if edits is None else edits.keypoint_classes(points)

    def check_options(self, schema: Schema | None) -> None:
        """Raise OptionError if the condition or an edit does not fit the schema, if known.

        Also if new splits would divide groups.
        """
        groups = named_groups(self.inputs.provenance) if self.options.splits is not None else ""
        if groups:
            raise OptionError(
                f"the records were packed with groups ({groups}), which new splits would divide",
                option="splits",
                value=self.options.splits,
                remedy=f"`recordsmith pack DATASET NEW` with {option('splits')} and "
                f"{option('group_column')} keeps them whole.",
            )
        if schema is None:
            return
        if self.options.where is not None:
            self.options.where.check(schema)
        if self.options.edits is not None:
            self.options.edits.check(schema, self.inputs.class_names)

    def run(self) -> ReshardReport:
        earlier = self._earlier(())
        if earlier is not None and not self.overwrite:
            publishing.clean_up_after_kill(self.folder)
            return ReshardReport.from_manifest(self.folder, earlier, is_new=False)
        files = completed_files(self.folder)  # perhaps of this job; its files are not known yet
        try:
            with publishing.claimed_folder(
                self.folder,
                self.fingerprint,
                files,
                overwrite=self.overwrite,
                earlier=earlier,
                keeps_shards=self.engine is not None,
            ) as folder:
                manifest, reused_count = self._build(folder, earlier, files)
        except DataError as error:
            check_unchanged(self.inputs.shards, self.inputs.infos)  # explains the defect better
            if error.defect in DAMAGED_RECORDS:
                error.advise("Nothing was written.")
            raise
        return ReshardReport.from_manifest(
            self.folder, manifest, is_new=True, reused_count=reused_count
        )

    def _earlier(self, files: Sequence[str]) -> Manifest | None:
        return publishing.existing_dataset(
            self.folder,
            self.fingerprint,
            files,
            has_label_map=self.inputs.has_label_map,
            overwrite=self.overwrite,
        )

    def _build(
        self, folder: Location, earlier: Manifest | None, files: list[str]
    ) -> tuple[Manifest, int]:
        """Write the dataset; return its manifest and the number of shards of an earlier run.

        The names of the shards are stored in `files` as soon as they are known.
        """
        inputs, workers, options = self.inputs, self.workers, self.options
        passes = 1 if options.where is None else 2
        workers.total = passes * inputs.size_bytes
        records, notices = open_records(inputs, folder, workers, is_shared=self.engine is not None)
        workers.total += passes * (sum(records.sizes) - inputs.size_bytes)
        if options.edits is not None and inputs.schema is None:
            workers.total += sum(records.sizes)
            schemas = workers.each(
                lambda number: self._survey(records, number), range(len(records))
            )
            self.check_options(Schema.merged(schemas))
        plan = make_plan(options, inputs, records, self._choose(records))
        notices += plan.notices
        workers.total += plan.size_bytes - sum(records.sizes)
        files[:] = [shard.file for shard in plan.shards]
        self._earlier(files)
        note_files(folder, files)
        known = self._known_schemas(plan)
        job = CopyJob(
            self.fingerprint,
            plan.compression,
            inputs.versions(),
            tuple(plan.pools.keys() - known.keys()),
            options.edits,
            trusting=not self.overwrite,
        )
        results = job.run(plan.shards, plan.spans(), records, folder, workers, self.engine, earlier)
        manifest = self._manifest(plan, results, known, records, notices)
        publishing.publish_dataset(
            folder, manifest, has_label_map=inputs.has_label_map, earlier=earlier
        )
        return manifest, sum(result.was_reused for result in results)

    def _survey(self, records: InputRecords, number: int) -> Schema:
        survey = SchemaSurvey()
        if records.counts[number]:
            for block in records.shards[number].blocks():
                with located(records.given[number].location, block.position):
                    survey.update(block.buffer, block.starts, block.lengths)
                self.workers.advance(len(block.frames()))
        return survey.finish().packed()

    def _choose(self, records: InputRecords) -> dict[int, MatchedRecords] | None:
        where, selection = self.options.where, self.selection
        if where is None and selection.numbers is None:
            return None

        def choose(number: int) -> MatchedRecords:
            flags = selection.flags(records.given[number].location, records.counts[number])
            return choose_records(records, number, where, flags, self.workers.advance)

        chosen = self.workers.each(choose, range(len(records)))
        if where is not None:
            where.check_features_found()
        return dict(enumerate(chosen))

    def _known_schemas(self, plan: ReshardPlan) -> dict[str, Schema]:
        """Return the schemas of unchanged splits, if known from manifests."""
        options = self.options
        if options.edits is not None or options.splits is not None:
            return {}
        return {
            split: schema
            for split, pool in plan.pools.items()
            if pool.has_all_records
            and (schema := self.inputs.schemas.get(split)) is not None
            and schema.record_count == plan.counts[split] == len(pool)
        }

    def _manifest(
        self,
        plan: ReshardPlan,
        results: Sequence[ShardResult],
        schemas: dict[str, Schema],
        records: InputRecords,
        notices: list[str],
    ) -> Manifest:
        inputs, edits = self.inputs, self.options.edits
        provenance: dict[str, Any] = {
            "reshard": self.options.to_json(),
            "fingerprint": self.fingerprint,
            "source": {
                "kind": "Shards",
                "files": list(inputs.names),
                "provenance": list(inputs.provenance),
            },
            "records_in": sum(records.counts),
            "bytes_in": inputs.size_bytes,
            "notices": notices,
        }
        manifest = publishing.make_manifest(
            plan.pools,
            zip([shard.split for shard in plan.shards], results, strict=True),
            plan.compression,
            self.class_names,
            provenance,
            schemas=schemas,
            arrow_schema=None if edits else inputs.arrow_schema,
            keypoint_classes=self.keypoint_classes,
        )
        notices += [  # `provenance` has the same list
            f"feature {key!r} has several kinds"
            for section in manifest.schema.sections.values()
            for key, feature in section.items()
            if feature.kind == "mixed"
        ]
        if edits is not None:
            notices += edits.stale_texts(manifest.schema)
        if manifest.schema.omission is not None:
            notices.append(manifest.schema.omission)
        return manifest
