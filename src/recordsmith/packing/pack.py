"""`recordsmith.pack`: pack a source into a complete dataset, or leave the folder unchanged.

Shards are written under temporary names in a hidden folder and renamed at the end, the manifest
last. An interrupted job leaves no partial output. Rerun it to resume.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    ShardCounts,
    ShardResult,
    check_folder,
    clean_up,
    clean_up_after_kill,
    existing_dataset,
    files_to_replace,
    locked_folder,
    make_manifest,
    merge_notes,
    publish_dataset,
    writing,
)
from recordsmith.dataset import DEFAULT_TEMPLATE, Manifest
from recordsmith.errors import MOST_PROBLEMS, OptionError, Problems, SourceError, option
from recordsmith.image import ImageOptions
from recordsmith.packing.like import apply_like
from recordsmith.packing.lint_policy import LintPolicy, check_lint_policy, lint_before_packing
from recordsmith.packing.pack_report import PackReport
from recordsmith.packing.planning import Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.tfds_keys import TfdsKeys
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Source, check_source
from recordsmith.sources.problems import join_names
from recordsmith.stores import Location, PlaceLike, as_folder
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
    threads: int | None = None,
    progress: Progress | None = None,
) -> PackReport:
    """Pack a source into a folder of TFRecord shards.

    An interrupted job leaves no partial output. Rerun it to resume.

    Args:
        source: the samples, such as `ImageFolder("flowers")`; or a dataset of Hugging Face, or a
            table of pyarrow, Polars, pandas or DuckDB.
        out: the folder of the dataset; created if it does not exist.
        splits: the share of each split; the shares add up to 1. None for the splits of the source,
            or a single split, train.
        resplit: which splits of the source to divide into `splits`; the others are kept. Needed if
            the source has several splits. With all of them, test samples may move into training.
        shards: the number of shards of each split: one number for all, or a dict by split.
        shard_size_bytes: the approximate size of a shard, instead of `shards`; default 256 MB.
        seed: seed of the shuffle, which also assigns samples to splits.
        stratify: split each class separately, so that all splits have the same class balance.
        shuffle: False keeps the samples in the order of the source.
        image_options: how to store images: re-encoded, resized or shrunk; None keeps their bytes.
        keys: new feature names by canonical key, with None for features to leave out; or a preset:
            slim, raw-pairs, rows-cols, label-text-encoded, or tfds, whose folder
            TensorFlow Datasets loads.
        shard_names: a template for file names, with {split}, {shard} and {shards}.
        compression: none (the default, because images are already compressed), gzip or zlib.
        check_images: decode every image completely, with the decoders used in training. By
            default, only headers and the checksums inside PNGs are checked, and neither in rows
            and records that are packed unchanged.
        like: another dataset, whose keys, image options, compression and class numbers are used, so
            that `append` can add the records to it. Classes are matched by name.
        skip_errors: skip and report unreadable samples. By default, the job tries all samples and
            then fails with a list of the unreadable ones.
        lint: checks of names, classes, orphans and some images before packing: "warn" adds them to
            the report, "strict" packs nothing if there are errors or warnings; or a function that
            is called with the `LintReport` before packing.
        overwrite: replace an existing dataset.
        threads: the number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with numbers of samples.

    Returns:
        A report. The same listing, options and seed give the same bytes in every shard, for any
        number of threads and after any number of interruptions.

    Raises:
        SourceError: the source is empty, samples are unreadable, or `lint` is strict and found
            something.
        OptionError: options conflict with each other or with the data, or the folder holds another
            dataset.
        FileAccessError: a folder cannot be read or written, or the disk is full.

    Example:
        rs.pack(rs.ImageFolder("flowers"), "out", splits={"train": 0.8, "test": 0.2})
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
    return pack_from_recipe(
        recipe,
        source,
        out,
        skip_errors=skip_errors,
        lint=lint,
        overwrite=overwrite,
        threads=threads,
        progress=progress,
    )


def pack_from_recipe(
    recipe: Recipe,
    source: Source | Any,
    out: PlaceLike,
    *,
    skip_errors: bool,
    lint: LintPolicy = "off",
    overwrite: bool,
    threads: int | None,
    progress: Progress | None,
) -> PackReport:
    """Pack with a recipe, which holds the options that determine the bytes of the shards."""
    source, folder = check_arguments(source, out, threads)
    if not isinstance(skip_errors, bool):
        raise OptionError(option="skip_errors", value=skip_errors, expected="True or False")
    check_lint_policy(lint)
    listing = source.list_samples()
    lint_report = lint_before_packing(listing, lint)
    plan = recipe.plan(source, listing)
    report = PackReport(
        folder,
        notices=tuple(listing.notices),
        images_are_checked=recipe.check_images,
        lint=lint_report,
    )
    if listing.splits and recipe.splits is not None:
        report.notices += _divided_notice(recipe, plan, listing)
    if listing.class_names is not None:
        report.class_count = sum(name is not None for name in listing.class_names)
    with locked_folder(folder) as notices:
        report.notices += notices
        files = [shard.file for shard in plan.shards]
        earlier = existing_dataset(
            folder,
            plan.fingerprint,
            files,
            has_label_map=listing.has_label_map,
            overwrite=overwrite,
        )
        if earlier is not None and not overwrite:
            _report_existing(report, earlier, len(listing.samples), skip_errors)
            clean_up_after_kill(folder)
            return report
        work = Work(thread_count(threads, most=WRITING_THREADS), progress)
        with writing(
            folder, plan.fingerprint, files, overwrite=overwrite, earlier=earlier
        ) as folder:
            clean_up(folder, keeping=files)
            preparation = recipe.preparation(listing)
            jobs = ShardJobs(listing, plan, folder, preparation, work)
            results = jobs.run(trusting=not overwrite)
            _collect(report, plan, listing, results, skip_errors)
            provenance = {
                "source": dict(source.describe()),
                "options": recipe.to_json(),
                "fingerprint": plan.fingerprint,
                "bytes_in": report.bytes_in,
                "skipped": report.skipped,
                "skipped_count": report.skipped_count,
            }
            manifest = make_manifest(
                plan.splits,
                zip([shard.split for shard in plan.shards], results, strict=True),
                plan.compression,
                listing.class_names,
                provenance,
                arrow_schema=listing.arrow_schema if recipe.keys is None else None,
                tfds=listing.tfds if recipe.keys is None else None,
            )
            if isinstance(preparation.keys, TfdsKeys):
                reused = [result.file for result in results if result.was_reused]
                tfds, problems = preparation.keys.description(
                    manifest, recipe.file_names, folder, reused
                )
                manifest = dataclasses.replace(manifest, tfds=tfds)
                report.notices += tuple(problems)
            if manifest.schema.omission is not None:
                report.notices += (manifest.schema.omission,)
            publish_dataset(
                folder,
                plan.fingerprint,
                manifest,
                has_label_map=listing.has_label_map,
                replaced=files_to_replace(folder, plan.splits, earlier),
            )
    report.fill(manifest)
    return report


def _divided_notice(recipe: Recipe, plan: Plan, listing: Listing) -> tuple[str, ...]:
    """Report the splits of the source that were divided again."""
    resplit = recipe.resplit or listing.splits
    divided = [resplit] if isinstance(resplit, str) else list(resplit)
    what = f"{'split' if len(divided) == 1 else 'splits'} {join_names(divided)}"
    new = join_names(split for split in plan.splits if split in (recipe.splits or ()))
    return (f"the source's {what} divided again into {new}",)


def _report_existing(
    report: PackReport, earlier: Manifest, sample_count: int, skip_errors: bool
) -> None:
    """Fill the report from a finished dataset of the same plan."""
    skipped, count, bytes_in = map(earlier.provenance.get, ("skipped", "skipped_count", "bytes_in"))
    report.skipped = list(map(str, skipped)) if isinstance(skipped, list) else []
    report.skipped_count = count if isinstance(count, int) else len(report.skipped)
    if report.skipped and not skip_errors:
        raise _unreadable(report, sample_count)
    report.is_new = False
    report.bytes_in = bytes_in if isinstance(bytes_in, int) else 0
    report.fill(earlier)


def _collect(
    report: PackReport,
    plan: Plan,
    listing: Listing,
    results: Sequence[ShardResult],
    skip_errors: bool,
) -> None:
    """Add what was skipped and changed in all shards to the report.

    Raises:
        SourceError: samples are unreadable and must not be skipped, or a split is empty.
    """
    failures = {number: why for result in results for number, why in result.skipped.items()}
    report.skipped = [failures[number] for number in sorted(failures)[:MOST_PROBLEMS]]
    planned = sum(len(shard.samples) for shard in plan.shards)
    report.skipped_count = planned - sum(result.record_count for result in results)
    report.bytes_in = sum(result.bytes_in for result in results)
    report.reused_count = sum(result.was_reused for result in results)
    report.notes = merge_notes(results)
    if failures and not skip_errors:
        raise _unreadable(report, len(listing.samples))
    counts = dict.fromkeys(plan.splits, 0)
    for shard, result in zip(plan.shards, results, strict=True):
        counts[shard.split] += result.record_count
    for split, count in counts.items():
        if not count:
            raise SourceError(
                f"all samples of split {split!r} are unreadable, so nothing was packed; first: "
                + report.skipped[0],
                _problems(report),
            )


def check_arguments(source: object, out: PlaceLike, threads: int | None) -> tuple[Source, Location]:
    """Validate arguments and return the source and the folder of the dataset.

    Raises:
        OptionError: an argument is invalid, or the folder lies inside the source.
        FileAccessError: the path of the folder is unusable.
    """
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


def _unreadable(report: PackReport, sample_count: int) -> SourceError:
    return SourceError(
        f"{report.skipped_count} of {sample_count} samples are unreadable, so nothing was packed",
        _problems(report),
        remedy=f"Fix or remove them, or rerun with {option('skip_errors', True)}:",
        lists_problems=True,
    )


def _problems(report: PackReport) -> Problems:
    problems = Problems()
    problems.extend(report.skipped, report.skipped_count)
    return problems
