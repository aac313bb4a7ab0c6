"""`recordsmith.pack`: pack a source into a complete dataset, or leave the folder unchanged.

Shards are written under temporary names in a hidden folder and renamed at the end, the manifest
last. An interrupted job leaves no partial output. Rerun it to resume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    ShardCounts,
    ShardResult,
    check_folder,
    check_written,
    clean_up,
    clean_up_after_kill,
    existing_dataset,
    files_to_replace,
    locked_folder,
    make_manifest,
    publish_dataset,
    writing,
)
from recordsmith.dataset import DEFAULT_TEMPLATE, Manifest
from recordsmith.dataset.documents import NOT_AS_EXPECTED, describe_fault
from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.errors import (
    OptionError,
    RecordsmithError,
    option,
    with_options,
)
from recordsmith.image import ImageOptions
from recordsmith.linting import LintReport
from recordsmith.packing.like import apply_like
from recordsmith.packing.pack_plan import PackPlan, parse_result
from recordsmith.packing.pack_report import (
    LintPolicy,
    PackReport,
    check_lint_policy,
    collect,
    lint_before_packing,
    report_existing,
)
from recordsmith.packing.pack_task import PackTask, PackTasks, run_task
from recordsmith.packing.planning import make_plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.tfds_keys import PRESET, TfdsKeys
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Source, check_source
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.tasks import Engine, Task, completed
from recordsmith.work import Progress, Work, thread_count


def pack(
    source: Source | Any,
    out: PlaceLike,
    *,
    splits: Mapping[str, float] | None = None,
    resplit: str | Sequence[str] | None = None,
    shards: ShardCounts | None = None,
    shard_size_bytes: int | None = None,
    seed: int = 0,
    stratify: bool = False,
    shuffle: bool = True,
    image_options: ImageOptions | None = None,
    keys: str | Mapping[str, str | None] | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    compression: str | None = None,
    check_images: bool = False,
    like: PlaceLike | None = None,
    skip_errors: bool = False,
    lint: LintPolicy = "off",
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
        splits: names and shares of random splits. The shares add up to 1. None for the splits of
            the source, or a single split, train.
        resplit: splits of the source to divide into `splits`; the others are kept. Needed if the
            source has several splits. With all of them, test samples may move into training.
        shards: number of shards of each split. A dict has a number for each split.
        shard_size_bytes: approximate size of a shard before compression, instead of `shards`; None
            for 256MB.
        seed: random seed. It also assigns samples to splits.
        stratify: give each split the same share of every class.
        shuffle: False keeps the samples in the order of the source.
        image_options: how to store images: re-encoded, resized or tiled; None keeps their bytes.
        keys: new feature names by canonical key, with None for features to leave out; or a preset:
            slim, raw-pairs, rows-cols, label-text-encoded, or tfds, whose folder TensorFlow
            Datasets loads.
        shard_names: pattern of the shard names, with {split}, {shard} and {shards}.
        compression: compression of the shards: none (the default, because images are already
            compressed), gzip or zlib.
        check_images: decode every image completely, with the decoders used in training. By default,
            only headers and the checksums inside PNGs are checked, and neither in rows and records
            that are packed unchanged.
        like: use names of features, image options, compression and class numbers of this dataset,
            so that `recordsmith append` can add the records to it. Classes are matched by name.
        skip_errors: skip samples that cannot be read and report them. By default, the job tries all
            samples and then fails with a list of the unreadable ones.
        lint: checks of names, classes, orphans and some images before packing: "warn" adds them to
            the report, "strict" packs nothing if there are errors or warnings; or a function that
            is called with the `LintReport` before packing.
        overwrite: replace an existing dataset.
        engine: what runs the tasks, such as `rs.engines.Processes(4)`; None for threads of this
            process. The bytes are the same.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with numbers of samples.

    Returns:
        A report. The same listing, options and seed give the same bytes in every shard, for any
        number of threads and after any number of interruptions.

    Raises:
        SourceError: the source is empty, samples are unreadable, `lint` is strict and found
            something, or a path can be read in several ways: `problems` has each with its options.
        OptionError: options conflict with each other or with the data, or the folder holds another
            dataset.
        FileAccessError: a folder cannot be read or written, or the disk is full.

    Example:
        rs.pack("flowers", "out", splits={"train": 0.8, "test": 0.2})
    """
    recipe = Recipe(
        splits=splits,
        resplit=resplit,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        seed=seed,
        stratify=stratify,
        shuffle=shuffle,
        image_options=image_options,
        keys=keys,
        shard_names=shard_names,
        compression=compression,
        check_images=check_images,
    )
    if like is not None:
        recipe, source = apply_like(recipe, check_source(source), like)
    source, folder = _check_arguments(source, out, threads)
    check_lint_policy(lint)
    listing = source.list_samples()
    lint_report = lint_before_packing(listing, lint)
    plan = make_plan(listing, recipe, source.describe())
    job = PackPlan.of(folder, recipe, source, listing, plan)
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)

    def write(folder: Location) -> list[ShardResult]:
        if engine is None:
            jobs = ShardJobs(listing, plan, folder, recipe, work)
            return jobs.run(trusting=not overwrite)
        work.total = job.sample_count
        pack_tasks = PackTasks(
            folder, recipe, listing, plan, trusting=not overwrite, keeps_skipped=skip_errors
        )
        tasks = (
            Task(run_task, task.number, task.name, task.size, task) for task in pack_tasks.each()
        )
        with closing(completed(engine, tasks, work.advance)) as results:
            return job.ordered(result for _, result in results)

    return _complete(
        job,
        write,
        skip_errors=skip_errors,
        overwrite=overwrite,
        lint=lint_report,
        is_local=engine is None,
    )


def plan(source: Source | Any, out: PlaceLike, **options: Any) -> PackPlan:
    """Plan a packing job: as data, whose tasks any machines may run.

    Args:
        source: a path or the samples, as for `pack`.
        out: the folder of the dataset, which all machines write to.
        options: those options of `pack` that determine the bytes of the shards.

    Returns:
        The plan. Saving it or running its tasks may first write rows and samples that exist only
        in this process to the folder, for the workers.

    Raises:
        OptionError: options conflict with each other or with the data.
        SourceError: the source is empty.

    Example:
        plan = rs.plan(rs.ImageFolder("flowers"), "out", shards=8)
        report = rs.finish(plan, map(rs.run, plan.tasks()))
    """
    source, folder = _check_arguments(source, out, None)
    try:
        recipe = Recipe(**options)
    except TypeError:
        unknown = sorted(set(options) - set(vars(Recipe())))
        raise OptionError(
            f"{', '.join(map(option, unknown))} does not affect the shards, so a plan has no such "
            "option",
            option=unknown[0] if unknown else None,
        ) from None
    listing = source.list_samples()
    plan = make_plan(listing, recipe, source.describe())
    return PackPlan.of(folder, recipe, source, listing, plan)


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
    """
    task = task if isinstance(task, PackTask) else PackTask.from_json(task)
    try:
        with (as_folder(task.out) / INTERNAL_FOLDER).locked(is_shared=True):
            return run_task(task)
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
    """
    found = [  # before the folder is locked: a generator may run the tasks
        result if isinstance(result, ShardResult) else parse_result(result) for result in results
    ]
    try:
        return _complete(
            plan,
            lambda _: plan.ordered(found),
            skip_errors=skip_errors,
            overwrite=overwrite,
            is_local=False,
        )
    except RecordsmithError:
        raise
    except (*NOT_AS_EXPECTED, LookupError) as error:  # such as what TFDS's documents need
        raise OptionError(
            f"the plan or a result is invalid: {describe_fault(error)}", option="results"
        ) from error


def _complete(
    job: PackPlan,
    write: Callable[[Location], list[ShardResult]],
    *,
    skip_errors: bool,
    overwrite: bool,
    lint: LintReport | None = None,
    is_local: bool,
) -> PackReport:
    """Run the tasks of a job and publish the dataset, unless that has been done before."""
    if not isinstance(skip_errors, bool):
        raise OptionError(option="skip_errors", value=skip_errors, expected="True or False")
    folder = job.out
    report = PackReport(
        folder,
        notices=tuple(map(with_options, job.listed.notices)),
        images_are_checked=job.recipe.check_images,
        lint=lint,
    )
    if job.class_names is not None:
        report.class_count = sum(name is not None for name in job.class_names)
    files = [shard.file for shard in job.shards]
    with locked_folder(folder) as notices:
        report.notices += notices
        earlier = existing_dataset(
            folder,
            job.fingerprint,
            files,
            has_label_map=job.listed.has_label_map,
            overwrite=overwrite,
        )
        if earlier is not None and not overwrite:
            report_existing(report, earlier, job.listed.samples, skip_errors)
            clean_up_after_kill(folder)
            return report
        with writing(
            folder,
            job.fingerprint,
            files,
            overwrite=overwrite,
            earlier=earlier,
            keeps_shards=not is_local,
        ) as folder:
            clean_up(folder, keeping=files, plan=job.fingerprint)
            results = write(folder)
            if not is_local:
                check_written(folder, results, earlier)
            collect(report, job, results, skip_errors)
            manifest, problems = _manifest(job, results, report)
            report.notices += problems
            publish_dataset(
                folder,
                job.fingerprint,
                manifest,
                has_label_map=job.listed.has_label_map,
                replaced=files_to_replace(folder, job.splits, earlier),
            )
    report.fill(manifest)
    return report


def _check_arguments(
    source: object, out: PlaceLike, threads: int | None
) -> tuple[Source, Location]:
    """Validate arguments and return the source and the folder of the dataset."""
    folder = as_folder(out)
    source = check_source(source)
    thread_count(threads)
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
    check_folder(folder)
    return source, folder


def _manifest(
    job: PackPlan, results: Sequence[ShardResult], report: PackReport
) -> tuple[Manifest, tuple[str, ...]]:
    """Return the manifest of the written shards, and notices about it."""
    is_canonical, tfds = job.recipe.keys is None, job.listed.tfds
    manifest = make_manifest(
        job.splits,
        zip([shard.split for shard in job.shards], results, strict=True),
        job.recipe.shard_compression,
        job.class_names,
        {
            "source": dict(job.source),
            "options": job.recipe.to_json(),
            "fingerprint": job.fingerprint,
            "bytes_in": report.bytes_in,
            "skipped": report.skipped,
            "skipped_count": report.skipped_count,
        },
        arrow_schema=job.listed.arrow_schema if is_canonical else None,
        formats={"tfds": tfds} if is_canonical and tfds is not None else None,
    )
    notices: list[str] = []
    if job.recipe.keys == PRESET:
        keys = TfdsKeys.of(job.class_names, tfds)
        tfds, notices = keys.description(manifest, job.recipe.file_names, results)
        manifest = replace(manifest, formats={"tfds": tfds})
    if manifest.schema.omission is not None:
        notices.append(manifest.schema.omission)
    return manifest, tuple(notices)
