"""`recordsmith.pack`: pack a source into a complete dataset, or leave the folder unchanged.

Shards are written under temporary names in a hidden folder and renamed at the end, the manifest
last. An interrupted job leaves no partial output. Rerun it to resume.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from recordsmith.dataset import (
    DEFAULT_TEMPLATE,
    INTERNAL_FOLDER,
    NOT_AS_EXPECTED,
    Manifest,
    ShardCounts,
    describe_fault,
    keypoint_classes_in_json,
    keypoint_classes_to_json,
)
from recordsmith.image import ImageOptions
from recordsmith.sources import (
    Listing,
    SampleReader,
    Source,
    check_left_behind,
    join_names,
    source_of,
    with_groups,
    with_splits,
)
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.support.errors import OptionError, RecordsmithError, option, with_options
from recordsmith.support.explaining import explain_unknown
from recordsmith.support.tasks import Engine, Task, run_on
from recordsmith.support.words import suggest_names
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.building import publishing
from recordsmith.writing.building.shards import ShardResult, check_written
from recordsmith.writing.packing.pack_options import PackOptions
from recordsmith.writing.packing.pack_plan import PackJob, PackPlan, parse_result
from recordsmith.writing.packing.pack_report import PackReport, add_results, report_existing
from recordsmith.writing.packing.pack_task import PackTask, pack_shard, portable_reader
from recordsmith.writing.packing.shard_assignment import ShardAssignment, assign_shards
from recordsmith.writing.packing.together import found_groups
from recordsmith.writing.packing.writing import ShardPacker

_IMAGES = "Pass image_options=rs.ImageOptions(…)."
_EXPLAINED = {
    "class_names classes format images label_map labels masks": (
        "Pass it to a source, such as rs.ImageFolder, or to rs.detect."
    ),
    "features rename": "Pass keys, new names by old ones.",
    "group group_by group_column patient": (
        "Pass group_pattern or groups; sources such as rs.Table take group_column."
    ),
    "k n_folds n_splits": "Pass folds.",
    "folder out_dir output output_dir": "Pass out.",
    "force": "Pass overwrite=True.",
    "max_shard_size shard_size": "Pass shard_size_bytes.",
    "max_workers n_workers num_proc num_workers workers": "Pass threads.",
    "n_shards num_shards": "Pass shards.",
    "quality resize size store image_size": _IMAGES,
    "split test_size train_size val_split validation_split": (
        "Pass splits={'train': 0.8, 'test': 0.2}."
    ),
}
"""What to do instead of options that `pack` does not have."""


@explain_unknown(_EXPLAINED)
def pack(
    source: Source | Any,
    out: PlaceLike,
    *,
    splits: Mapping[str, float] | str | None = None,
    resplit: str | Sequence[str] | None = None,
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    seed: int = 0,
    stratify: bool = False,
    group_pattern: str | None = None,
    groups: str | os.PathLike[str] | None = None,
    folds: int | None = None,
    shuffle: bool = True,
    image_options: ImageOptions | None = None,
    keys: str | Mapping[str, str | None] | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    compression: str | None = None,
    check_images: bool = False,
    license: str | None = None,
    citation: str | None = None,
    numbers_of: Sequence[str] = (),
    together: str | None = None,
    like: PlaceLike | None = None,
    skip_errors: bool = False,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PackReport:
    """Pack a source into a folder of TFRecord shards.

    An interrupted job leaves no partial output. Rerun it to resume.

    Args:
        source: a path, whose type is detected as by `detect`; the samples, such as
            `ImageFolder("flowers")`; or a dataset of Hugging Face, or a table of pyarrow, Polars,
            pandas or DuckDB.
        out: the folder of the dataset; created if it does not exist.
        splits: `@` and the path of a CSV file with the columns name and split, or names and shares
            of random splits, which add up to 1. Names of the file are paths of images, or their
            last parts. None for the splits of the source, or a single split, train.
        resplit: splits of the source to divide into `splits`; the others are kept. Needed if the
            source has several splits. With all of them, test samples may move into training.
        shards: number of shards of each split. A dict has a number for each split.
        shard_size_bytes: approximate size of a shard before compression, instead of `shards`; None
            for 256MB.
        seed: random seed. It also assigns samples to splits.
        stratify: give each split the same share of every class. Groups stay whole, and the report
            has the deviations; of several classes of an image the rarest counts.
        group_pattern: regular expression that finds the group of each image in its path, such as a
            patient or a video. It is the group `group` of the match, the first group, or the whole
            match. All images of a group are in one split and in one fold. For rows and records with
            a `group_column`, its values are searched instead of paths.
        groups: CSV file with the columns name and group, instead of or in addition to
            `group_pattern`: images that share one of their groups stay together.
        folds: number of folds for cross-validation. Each record gets an int64 feature `fold`, from
            0; folds are equal parts of each split, and with `stratify` of each class.
        shuffle: False keeps the samples in the order of the source.
        image_options: how to store images: re-encoded, resized or shrunk; None keeps their bytes.
        keys: new feature names by canonical key, with None for features to leave out; or a preset:
            slim, raw-pairs, rows-cols or label-text-encoded.
        shard_names: pattern of the shard names, with {split}, {shard} and {shards}.
        compression: compression of the shards: none (the default, because images are already
            compressed), gzip or zlib.
        check_images: decode every image completely, with the decoders used in training. By default,
            only headers and the checksums inside PNGs are checked, and neither in rows and records
            that are packed unchanged.
        license: under which the data may be used, such as cc-by-4.0; the manifest keeps it.
        citation: how to cite the data, such as a BibTeX entry; the manifest keeps it.
        numbers_of: features that an order by class, weight or length needs as a number of each
            record, such as `weight`: kept next to the shards. Those of `image/class/label` and the
            steps of episodes are kept in any case; for an existing dataset, use `index`.
        together: keep the groups of copies and similar images in one split that `lint` wrote to
            this file with `findings`.
        like: use names of features, image options, compression and class numbers of this dataset,
            so that `recordsmith append` can add the records to it. Classes are matched by name.
        skip_errors: skip samples that cannot be read and report them. By default, the job tries all
            samples and then fails with a list of the unreadable ones.
        overwrite: replace an existing dataset.
        engine: what runs the tasks, such as `rs.engines.Processes(4)`; None for threads of this
            process. The bytes are the same. Rows of tables, and samples that exist only in this
            process, are packed by its threads in any case.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with numbers of samples.

    Returns:
        A report. The same listing, options and seed give the same bytes in every shard, for any
        number of threads and after any number of interruptions.

    Raises:
        SourceError: the source is empty, samples are unreadable, or a path can be read in several
            ways: `problems` has each with its options.
        OptionError: options conflict with each other or with the data, or the folder holds another
            dataset.
        FileAccessError: a folder cannot be read or written, or the disk is full.

    Example:
        rs.pack("flowers", "out", splits={"train": 0.8, "test": 0.2})
    """
    options = PackOptions(
        splits=splits,
        resplit=resplit,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        seed=seed,
        stratify=stratify,
        group_pattern=group_pattern,
        groups=None if groups is None else os.fspath(groups),
        folds=folds,
        shuffle=shuffle,
        image_options=image_options,
        keys=keys,
        shard_names=shard_names,
        compression=compression,
        check_images=check_images,
        license=license,
        citation=citation,
        numbers_of=numbers_of,
        together=together,
    )
    workers = WorkerPool(thread_count(threads, most=publishing.WRITING_THREADS), progress)
    job, reader, assignment = _prepare(source, out, options, like)
    portable = None if engine is None else portable_reader(reader)

    def write(folder: Location) -> list[ShardResult]:
        if engine is None or portable is None:
            packer = ShardPacker(reader, assignment, folder, job.options, workers)
            return packer.run(trusting=not overwrite)
        workers.total = job.sample_count
        tasks = job.tasks(assignment, portable, trusting=not overwrite)
        done = run_on(
            engine,
            (Task(pack_shard, task.number, task.name, task.size, task) for task in tasks),
            workers.advance,
        )
        return job.ordered(done.values())

    return _complete(
        job, as_folder(out), write, skip_errors, overwrite, in_this_process=portable is None
    )


def plan(source: Source | Any, out: PlaceLike, **options: Any) -> PackPlan:
    """Plan a packing job: as data, whose tasks any machines may run.

    Args:
        source: a path or the samples, as for `pack`, which other processes can read: neither rows
            of tables nor samples in memory.
        out: the folder of the dataset, which all machines write to.
        options: those options of `pack` that determine the bytes of the shards.

    Raises:
        OptionError: options conflict with each other or with the data, or other processes cannot
            read the source.
        SourceError: the source is empty.

    Example:
        plan = rs.plan(rs.ImageFolder("flowers"), "out", shards=8)
        report = rs.finish(plan, map(rs.run, plan.tasks()))
    """
    unknown = sorted(set(options) - set(vars(PackOptions())))
    if unknown:
        raise OptionError(
            f"{', '.join(map(option, unknown))} does not affect the shards, so a plan has no such "
            "option",
            option=unknown[0],
        )
    job, reader, assignment = _prepare(source, out, PackOptions(**options))
    portable = portable_reader(reader)
    if portable is None:
        raise OptionError(
            "rows of tables and samples in memory are packed by one process, without a plan",
            option="source",
            remedy="Use `pack`.",
        )
    return PackPlan(as_folder(out), job, partial(job.tasks, assignment, portable))


def run(task: PackTask | Mapping[str, Any]) -> ShardResult:
    """Run a task of a plan: write its shard and index, unless that has been done before.

    Args:
        task: from `PackPlan.tasks`, or its JSON.

    Returns:
        The result, for `finish`.

    Raises:
        OptionError: the task is invalid or of another version of recordsmith, or another job writes
            there.
        FileAccessError: this machine does not see the source, or cannot write to the folder.

    Example:
        plan = rs.plan("flowers", "out", shards=2)
        results = [rs.run(task) for task in plan.tasks()]  # on any machine
    """
    task = task if isinstance(task, PackTask) else PackTask.from_json(task)
    try:
        with (as_folder(task.out) / INTERNAL_FOLDER).locked(is_shared=True):
            publishing.check_task_folder(as_folder(task.out))
            return pack_shard(task)
    except RecordsmithError:
        raise
    except (*NOT_AS_EXPECTED, LookupError) as error:
        raise OptionError(
            f"the task for {task.name} is invalid: {describe_fault(error)}", option="task"
        ) from error


def finish(
    plan: PackPlan,
    results: Iterable[ShardResult | Mapping[str, Any]],
    *,
    skip_errors: bool = False,
    overwrite: bool = False,
) -> PackReport:
    """Complete the dataset of a plan from the results of its tasks, without reading a shard.

    Args:
        results: of all tasks, in any order, or their JSON.
        skip_errors: accept samples that could not be read and report them.
        overwrite: replace an existing dataset.

    Raises:
        OptionError: a result is missing, damaged or belongs to another plan; or as in `pack`.
        SourceError: samples are unreadable.
        FileAccessError: a shard is not in the folder, or was replaced by another job; or a folder
            cannot be written.

    Example:
        plan = rs.plan("flowers", "out", shards=2)
        results = [rs.run(task) for task in plan.tasks()]
        rs.finish(plan, results)
    """
    parsed = [  # before the folder is locked: a generator may run the tasks
        result if isinstance(result, ShardResult) else parse_result(result) for result in results
    ]
    job = plan.job
    return _complete(
        job, plan.out, lambda _: job.ordered(parsed), skip_errors, overwrite, in_this_process=False
    )


def _prepare(
    source: Source | Any, out: PlaceLike, options: PackOptions, like: PlaceLike | None = None
) -> tuple[PackJob, SampleReader, ShardAssignment]:
    """List the samples of a source and assign them to shards."""
    source, unread = source_of(source)
    if like is not None:
        from recordsmith.writing.packing.like import apply_like  # only when needed

        options, source = apply_like(options, source, like)
    folder = as_folder(out)
    _check_folder(source, folder)
    listing = source.list_samples()
    check_left_behind(listing)
    listing = replace(listing, notices=[*listing.notices, *unread])
    others = [] if options.together is None else [found_groups(listing, options.together)]
    if isinstance(options.splits, str):
        listing = with_splits(listing, options.splits)
    listing = with_groups(listing, options.group_pattern, options.groups, others)
    described = _describe(source, listing)
    assignment = assign_shards(listing, options, described)
    job = PackJob(
        assignment.fingerprint,
        str(folder.absolute()),
        described,
        options,
        assignment.splits,
        assignment.shards,
        listing.class_names,
        listing.has_label_map,
        listing.arrow_schema,
        (*map(str, listing.notices), *_divided_notice(options, assignment, listing)),
        None if listing.account is None else listing.account.to_json(),
        keypoint_classes_to_json(listing.keypoint_classes),
        {
            split: {_class_name(listing, label): found for label, found in of_split.items()}
            for split, of_split in assignment.deviations.items()
        },
    )
    return job, listing.reader, assignment


def _class_name(listing: Listing, label: int) -> str:
    names = listing.class_names or ()
    return str(names[label] if 0 <= label < len(names) and names[label] is not None else label)


def _divided_notice(
    options: PackOptions, assignment: ShardAssignment, listing: Listing
) -> tuple[str, ...]:
    """Report the splits of the source that were divided again."""
    own = listing.splits or tuple(filter(None, [listing.only_split]))
    if not own or options.splits is None or isinstance(options.splits, str):
        return ()
    resplit = options.resplit or own
    divided = [resplit] if isinstance(resplit, str) else list(resplit)
    what = f"{'split' if len(divided) == 1 else 'splits'} {join_names(divided)}"
    new = join_names(split for split in assignment.splits if split in options.splits)
    return (f"the source's {what} divided again into {new}",)


def _complete(
    job: PackJob,
    folder: Location,
    write: Callable[[Location], list[ShardResult]],
    skip_errors: bool,
    overwrite: bool,
    *,
    in_this_process: bool,
) -> PackReport:
    """Run the tasks of a job and publish the dataset, unless that has been done before."""
    if not isinstance(skip_errors, bool):
        raise OptionError(option="skip_errors", value=skip_errors, expected="True or False")
    options, names = job.options, job.class_names
    report = PackReport(
        folder,
        notices=tuple(map(with_options, job.notices)),
        account=job.account,
        deviations=job.deviations,
        images_are_checked=options.check_images,
    )
    if names is not None:
        report.class_count = sum(name is not None for name in names)
    files = [shard.file for shard in job.shards]
    with publishing.locked_folder(folder) as notices:
        report.notices += notices
        earlier = publishing.existing_dataset(
            folder, job.fingerprint, files, has_label_map=job.has_label_map, overwrite=overwrite
        )
        if earlier is not None and not overwrite:
            report_existing(report, earlier, job.sample_count, skip_errors)
            publishing.clean_up_after_kill(folder)
            return report
        with publishing.claimed_folder(
            folder,
            job.fingerprint,
            files,
            overwrite=overwrite,
            earlier=earlier,
            keeps_shards=not in_this_process,
        ) as claimed:
            publishing.clean_up(claimed, keeping=files)
            results = write(claimed)
            if not in_this_process:
                check_written(claimed, results, earlier)
            add_results(report, job, results, skip_errors)
            manifest = publishing.make_manifest(
                job.splits,
                zip([shard.split for shard in job.shards], results, strict=True),
                options.shard_compression,
                names,
                {
                    "source": job.source,
                    "options": options.to_json(),
                    "fingerprint": job.fingerprint,
                    "bytes_in": report.bytes_in,
                    **({} if job.account is None else {"account": job.account}),
                    "skipped": report.skipped,
                    "skipped_count": report.skipped_count,
                },
                arrow_schema=job.arrow_schema if options.keys is None else None,
                keypoint_classes=keypoint_classes_in_json(job.keypoint_classes),
            )
            report.notices += _unknown_features(options, manifest)
            if manifest.schema.omission is not None:
                report.notices += (manifest.schema.omission,)
            publishing.publish_dataset(
                claimed, manifest, has_label_map=job.has_label_map, earlier=earlier
            )
    report.fill(manifest)
    return report


def _unknown_features(options: PackOptions, manifest: Manifest) -> tuple[str, ...]:
    """Return a notice for each feature of `numbers_of` that no record has."""
    known = sorted({key for section in manifest.schema.sections.values() for key in section})
    return tuple(
        f"no record has the feature {key!r}, so no numbers of it are kept; "
        f"{suggest_names(key, known, 'they have no features')}"
        for key in options.numbers_of
        if manifest.schema.is_complete and key not in known
    )


def _describe(source: Source, listing: Listing) -> Mapping[str, Any]:
    """Describe a source for the manifest, with its categories and what the caller leaves out."""
    requested = () if listing.account is None else listing.account.requested
    more = {"leave_out": list(requested), "categories": dict(listing.categories)}
    return {**source.describe(), **{key: value for key, value in more.items() if value}}


def _check_folder(source: Source, folder: Location) -> None:
    """Validate the folder of the dataset, which must not be in that of the source."""
    root = getattr(source, "root", None)
    if root is not None and (source_folder := as_folder(root)).contains(folder):
        is_same = folder.identity == source_folder.identity
        where = "is the source folder" if is_same else f"is inside the source folder {root}"
        raise OptionError(
            f"{folder} {where}",
            option="out",
            value=str(folder),
            remedy="Choose a folder outside the source.",
        )
    publishing.check_folder(folder)
