"""`recordsmith.pack`: from a source to a complete dataset, or to nothing.

Plan, write every shard under a temporary name, then give all of them their names, and the manifest
last. Until then no file has a final name, so a job that is stopped, runs out of disk or meets a bad
picture leaves the folder as it was. Shards that are complete wait in a hidden folder: the same job,
run again, goes on with the others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from recordsmith.building import (
    WRITING_THREADS,
    Noted,
    ShardResult,
    Shards,
    check_folder,
    clean_up,
    clean_up_after,
    earlier_dataset,
    manifest_of,
    publish_dataset,
    replaced_names,
    tidying_up,
    working_in,
)
from recordsmith.dataset import DEFAULT_TEMPLATE, Manifest
from recordsmith.errors import OptionError, SourceError
from recordsmith.files import PathLike, Progress, as_path
from recordsmith.image import PictureOptions
from recordsmith.packing.planning import Plan
from recordsmith.packing.recipe import Recipe
from recordsmith.packing.report import PackReport
from recordsmith.packing.writing import ShardJobs
from recordsmith.sources import Listing, Source
from recordsmith.work import Work, thread_count

OnError = Literal["stop", "skip"]
_LISTED = 20  # reasons in the message of an error; its `problems` has all of them


def pack(
    source: Source,
    out: PathLike,
    *,
    splits: Mapping[str, float] | None = None,
    shards: Shards | None = None,
    shard_size_bytes: int | None = None,
    seed: int = 0,
    stratify: bool = False,
    shuffle: bool = True,
    pictures: PictureOptions | None = None,
    keys: str | Mapping[str, str | None] | None = None,
    shard_names: str = DEFAULT_TEMPLATE,
    compression: str | None = None,
    on_error: OnError = "stop",
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PackReport:
    """Pack a source into a folder of TFRecord shards.

    Args:
        source: where samples come from, such as `ImageFolder("flowers")`.
        out: the folder of the dataset; made if it is not there.
        splits: share of each split, adding up to 1; None for one split, train. Where the source
            has splits of its own, those are taken, and it is said.
        shards: how many shards each split has, one number for all or one for each.
        shard_size_bytes: about how large a shard shall be instead; by default 256 MB.
        seed: of the order, and so of which sample goes to which split.
        stratify: split each class by itself, so that all splits have the same mix.
        shuffle: False keeps the samples in the order of the source.
        pictures: how pictures are stored: re-encoded, resized, shrunk; None for their bytes, as
            they are.
        keys: new names by usual keys, None for a feature to leave out; or a preset: slim,
            raw-pairs, rows-cols, label-text-encoded.
        shard_names: template of their names, with {split}, {shard} and {shards}.
        compression: none (the default: pictures are compressed already), gzip or zlib.
        on_error: what a sample that cannot be read does: stop the job with the complete list of
            such samples, or be skipped and reported.
        overwrite: replace a dataset that is there.
        threads: how many work at once; None: one for each processor, at most 8.
        progress: told the samples done and in all.

    Returns:
        What was done. The same listing, options and seed give the same bytes in every shard,
        whatever the number of threads, and however often the job was stopped and run again: then
        shards that are complete are checked and kept.

    Raises:
        SourceError: the source holds nothing to pack, or samples that cannot be read.
        OptionError: options contradict each other or the data; the folder holds another dataset.
        FileAccessError: a folder cannot be read or written, or the disk is full.
    """
    recipe = Recipe(
        splits=splits,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        seed=seed,
        stratify=stratify,
        shuffle=shuffle,
        pictures=pictures,
        keys=keys,
        shard_names=shard_names,
        compression=compression,
    )
    return pack_by(
        recipe,
        source,
        out,
        on_error=on_error,
        overwrite=overwrite,
        threads=threads,
        progress=progress,
    )


def pack_by(
    recipe: Recipe,
    source: Source,
    out: PathLike,
    *,
    on_error: OnError,
    overwrite: bool,
    threads: int | None,
    progress: Progress | None,
) -> PackReport:
    """`pack`, with the options that decide the bytes in one piece."""
    folder = check_arguments(source, out, threads)
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}; expected 'stop' or 'skip'")
    listing = source.list_samples()
    plan = recipe.plan(source, listing)
    report = PackReport(folder, notices=listing.notices)
    if listing.splits and recipe.splits is not None:
        report.notices += (
            f"the source has splits of its own, {', '.join(plan.splits)}, which were taken",
        )
    if listing.class_names is not None:
        report.class_count = sum(name is not None for name in listing.class_names)
    with working_in(folder):
        files = [shard.file for shard in plan.shards]
        earlier = earlier_dataset(
            folder,
            plan.fingerprint,
            files,
            has_label_map=listing.has_label_map,
            overwrite=overwrite,
        )
        if earlier is not None and not overwrite:
            _report_earlier(report, earlier, len(listing.samples), on_error)
            clean_up_after(folder)
            return report
        clean_up(folder, keeping=files)
        work = Work(thread_count(threads, most=WRITING_THREADS), progress)
        jobs = ShardJobs(source, listing, plan, folder, recipe.preparation(source), work)
        with tidying_up(folder, files):
            results = jobs.run(trusting=not overwrite)
            _gather(report, plan, listing, results, on_error)
            made_from = {
                "source": dict(source.describe()),
                "options": recipe.to_json(),
                "plan": plan.fingerprint,
                "bytes_in": report.bytes_in,
                "skipped": report.skipped,
            }
            manifest = manifest_of(
                plan.splits,
                zip([shard.split for shard in plan.shards], results, strict=True),
                plan.compression,
                listing.class_names,
                made_from,
            )
            if manifest.schema.remark is not None:
                report.notices += (manifest.schema.remark,)
            publish_dataset(
                folder,
                plan.fingerprint,
                manifest,
                has_label_map=listing.has_label_map,
                replaced=replaced_names(folder, plan.splits, earlier),
            )
    report.fill(manifest)
    return report


def _report_earlier(
    report: PackReport, earlier: Manifest, sample_count: int, on_error: OnError
) -> None:
    """What a finished dataset of the same plan says of itself."""
    told, bytes_in = (earlier.made_from.get(key) for key in ("skipped", "bytes_in"))
    skipped = list(map(str, told)) if isinstance(told, list) else []
    if skipped and on_error == "stop":
        raise _unreadable(skipped, sample_count)
    report.is_new = False
    report.skipped = skipped
    report.bytes_in = bytes_in if isinstance(bytes_in, int) else 0
    report.fill(earlier)


def _gather(
    report: PackReport,
    plan: Plan,
    listing: Listing,
    results: Sequence[ShardResult],
    on_error: OnError,
) -> None:
    """What all shards together have skipped and changed.

    Raises:
        SourceError: samples cannot be read, and the job shall stop at that; or a split is empty.
    """
    failures = {number: why for result in results for number, why in result.skipped.items()}
    report.skipped = [failures[number] for number in sorted(failures)]
    report.bytes_in = sum(result.bytes_in for result in results)
    report.kept_count = sum(result.was_kept for result in results)
    for result in results:
        for what, noted in result.notes.items():
            report.notes.setdefault(what, Noted()).extend(noted)
    if failures and on_error == "stop":
        raise _unreadable(report.skipped, len(listing.samples))
    counts = dict.fromkeys(plan.splits, 0)
    for shard, result in zip(plan.shards, results, strict=True):
        counts[shard.split] += result.record_count
    for split, count in counts.items():
        if not count:
            raise SourceError(
                f"no sample of split {split!r} can be read, so nothing was packed; the first: "
                + report.skipped[0],
                report.skipped,
            )


def check_arguments(source: Source, out: PathLike, threads: int | None) -> Path:
    """The folder of the dataset, if these arguments make sense.

    Raises:
        OptionError: they do not.
        FileAccessError: the folder's path cannot be used.
    """
    folder = as_path(out)
    check_source(source)
    thread_count(threads)
    root = getattr(source, "root", None)
    if root is not None and Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        is_same = os.path.realpath(folder) == os.path.realpath(root)
        where = "is the folder that is packed" if is_same else f"lies in {root}, which is packed"
        raise OptionError(f"{folder} {where}; choose one outside of it")
    check_folder(folder)
    return folder


def check_source(source: object) -> None:
    """
    Raises:
        OptionError: it is none.
    """
    if isinstance(source, (str, os.PathLike)):
        raise OptionError(
            f"{source!r} is a path; expected a source, such as recordsmith.ImageFolder({source!r})"
        )
    if not hasattr(source, "list_samples"):
        raise OptionError(
            f"{source!r} is a {type(source).__name__}; expected a source, such as "
            "recordsmith.ImageFolder(path) or recordsmith.Rows(rows)"
        )


def _unreadable(problems: list[str], sample_count: int) -> SourceError:
    listed = "".join(f"\n  {_one_line(problem)}" for problem in problems[:_LISTED])
    if len(problems) > _LISTED:
        listed += (
            f"\n  … and {len(problems) - _LISTED:,} more (all of them in the error's problems)"
        )
    return SourceError(
        f"{len(problems)} of {sample_count} samples cannot be read, so nothing was packed. Mend or "
        f"remove them, or skip them with on_error='skip':{listed}",
        problems,
    )


def _one_line(problem: str) -> str:
    """Names may hold line ends; a problem is a line."""
    return problem.replace("\n", "\\n")
