"""`recordsmith.lint`: find what is wrong with a source before it is packed."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, closing
from typing import Any

import numpy as np

from recordsmith.checking.class_rules import are_drawn_for_viewing
from recordsmith.checking.linting.class_check import check_classes
from recordsmith.checking.linting.duplicate_check import (
    SIMILAR_CHECKS,
    DuplicateCheck,
    check_duplicates,
    check_similar,
)
from recordsmith.checking.linting.episode_check import (
    FRAME_CHECKS,
    EpisodeFacts,
    compare_episodes,
)
from recordsmith.checking.linting.group_check import check_groups
from recordsmith.checking.linting.lint_places import LintPlaces
from recordsmith.checking.linting.lint_report import Findings, LintExample, LintReport, all_checks
from recordsmith.checking.linting.sample_check import (
    PIXEL_CHECKS,
    ImageCheck,
    MaskValues,
    SampleCheck,
)
from recordsmith.checking.linting.sample_images import place_of
from recordsmith.dataset import FindingsWriter, RecordPositions, as_places, locate_each
from recordsmith.sources import (
    Check,
    Flaw,
    LintCheck,
    Listing,
    Sample,
    SamplesAhead,
    SampleTable,
    Source,
    collect,
    source_digest,
    source_of,
    with_groups,
)
from recordsmith.stores import PlaceLike
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import option, shown_value
from recordsmith.support.explaining import unknown_word
from recordsmith.support.work import Progress, WorkerPool, thread_count

_AT_ONCE = 32  # samples of one task
_AHEAD = 4  # tasks for each thread


def lint(
    source: Source | Any,
    *,
    deep: bool = True,
    ignore: Iterable[str] = (),
    only: Iterable[str] = (),
    group_pattern: str | None = None,
    groups: str | os.PathLike[str] | None = None,
    findings: PlaceLike | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LintReport:
    """Check the images and annotations of a source before packing it.

    Reads every sample and decodes every image and mask once.

    Args:
        source: a path or the samples, as for `pack`. Pass annotations with `boxes="stop"`, the
            default: other policies change invalid boxes, and `lint` reports them as notes.
        deep: False to check only names, classes and orphans, without opening images.
        ignore: check to leave out, such as similar-images. A list of them.
        only: check to run, instead of all. A list of them; images are not decoded if no check needs
            their pixels.
        group_pattern: regular expression that finds the group of each image in its path, as for
            `pack`: a group in two splits is reported.
        groups: CSV file with the columns name and group, as for `pack`.
        findings: also write all places to this file, for `leave_out`, `together` and `without`:
            every sample with a finding, and all members of the groups of copies and similar images.
        overwrite: replace existing files.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done, total)` with numbers of samples.

    Returns:
        The findings, worst first, each with its check, severity, count and examples.

    Raises:
        SourceError: the source cannot be listed.
        OptionError: an argument is invalid, such as the name of a check; or the file `findings`
            exists.
        FileAccessError: a folder or an annotation file cannot be read.

    Example:
        >>> report = rs.lint(rs.ImageFolder("flowers"))
        >>> report.is_clean, report.findings
        (True, [])
    """
    source, _ = source_of(source)
    selected = _parse_checks(only, "only") or {*all_checks()}
    if selected & SIMILAR_CHECKS:
        selected.add(DuplicateCheck.ALIKE_IMAGES)  # says why the others may be missing
    selected -= _parse_checks(ignore, "ignore")
    work = WorkerPool(thread_count(threads), progress)
    groups = None if groups is None else os.fspath(groups)
    listing = with_groups(source.list_samples(), group_pattern, groups)
    writer = None
    if findings is not None:
        paths = listing.dataset_paths
        writer = FindingsWriter(
            findings,
            "lint",
            {"deep": deep, "ignored": [str(c) for c in all_checks() if c not in selected]},
            overwrite=overwrite,
            positions=None if paths is None else RecordPositions(locate_each(as_places(paths))),
            source=source_digest(listing),
        )
    report = lint_listing(listing, work, deep=deep, selected=selected, writer=writer)
    if writer is not None:
        writer.save()
    return report


def _parse_checks(names: Iterable[str], argument: str) -> set[LintCheck]:
    names = [names] if isinstance(names, str) else [*names]
    known = {str(check): check for check in all_checks()}
    for name in names:
        if name not in known:
            problem = f"unknown check {shown_value(name)} in {option(argument)}"
            raise unknown_word(argument, name, known, problem)
    return {known[name] for name in names}


def lint_listing(
    listing: Listing,
    work: WorkerPool,
    *,
    deep: bool,
    selected: Collection[LintCheck] | None = None,
    writer: FindingsWriter | None = None,
) -> LintReport:
    """Check the samples of a listing; see `lint`. A writer gets all places."""
    selected = all_checks() if selected is None else selected
    findings = Findings()
    columns = collect(listing.samples)
    splits = _split_numbers(listing, columns)
    places = None if writer is None else LintPlaces(writer, listing, columns, splits, selected)
    report = LintReport(len(columns), is_deep=deep)
    if deep:
        counts = _check_samples(listing, splits, work, findings, report, selected, places)
    else:
        counts = _label_counts(columns, splits, listing)
    check_groups(listing, columns, splits, findings)
    _add_notices(listing, findings)
    if places is not None:
        places.add_divided_groups()
        places.add_all(findings)
    names = [name for name in listing.class_names or () if name is not None]
    report.classes = _by_name(counts, listing)
    check_classes(names, report.classes, findings)
    report.findings = [finding for finding in findings.sorted() if finding.check in selected]
    if deep:
        _keep_samples(report, listing)
    return report


def _check_samples(
    listing: Listing,
    splits: Int64Array,
    work: WorkerPool,
    findings: Findings,
    report: LintReport,
    selected: Collection[LintCheck],
    places: LintPlaces | None,
) -> Counter[tuple[str | None, int]]:
    """Read and check every sample; return the number of images by split and label."""
    samples = listing.samples
    work.total = len(samples)
    contents, annotations, shapes, pixels = array("Q"), array("Q"), bytearray(), array("Q")
    counts: Counter[tuple[str | None, int]] = Counter()
    mask_values: MaskValues = {}
    episodes: dict[int, EpisodeFacts] = {}
    starts = range(0, len(samples), _AT_ONCE)
    with ExitStack() as stack:
        samples_ahead = stack.enter_context(SamplesAhead(listing.reader, work.threads))
        check = SampleCheck(
            listing.reader,
            listing.class_names,
            samples_ahead,
            decode=not (PIXEL_CHECKS | {*DuplicateCheck}).isdisjoint(selected),
            decode_frames=not (PIXEL_CHECKS | FRAME_CHECKS).isdisjoint(selected),
        )
        checked = stack.enter_context(
            closing(
                work.in_order(
                    lambda start: check.check(samples[start : start + _AT_ONCE]),
                    starts,
                    ahead=_AHEAD * work.threads,
                )
            )
        )
        for part in checked:
            findings.extend(part.findings)
            if places is not None:
                places.add_all(part.findings, first=len(contents))
                pixels.extend(part.pixels)
            report.image_count += part.image_count
            episodes |= {len(contents) + row: facts for row, facts in part.episodes.items()}
            contents.extend(part.contents)
            annotations.extend(part.annotations)
            shapes += part.shapes
            for key, (name, values) in part.mask_values.items():
                mask_values.setdefault(key, (name, set()))[1].update(values)
            counts.update(part.classes)
            work.advance(len(part.contents))
    if not {*DuplicateCheck}.isdisjoint(selected):
        first, pairs = check_duplicates(
            contents, annotations, splits.tolist(), samples, listing.reader, findings
        )
        if not SIMILAR_CHECKS.isdisjoint(selected):
            pairs |= check_similar(shapes, first, splits, samples, listing.reader, findings)
        if places is not None:
            places.add_copies(pairs, pixels)
    for key, (name, values) in mask_values.items():
        if are_drawn_for_viewing(values):
            findings.add(ImageCheck.MASK_0_255, LintExample(name, f"the values of {key!r}"))
    if places is not None:
        findings.places.clear()  # groups have those of duplicates; the values of masks have none
        places.add_same_episodes({number: facts.digest for number, facts in episodes.items()})
    compare_episodes(episodes, splits, samples, listing.reader, findings)
    findings.number = None
    return counts


def _split_numbers(listing: Listing, columns: SampleTable) -> Int64Array:
    """The number of the split of each sample; 0 without splits."""
    if not listing.splits or columns.splits is None:
        return np.zeros(len(columns), np.int64)
    return columns.splits[1].astype(np.int64)


def _label_counts(
    columns: SampleTable, splits: Int64Array, listing: Listing
) -> Counter[tuple[str | None, int]]:
    """The number of images by split and label, where the listing has labels."""
    if columns.labels is None or listing.class_names is None:
        return Counter()
    names = columns.splits[0] if listing.splits and columns.splits is not None else [None]
    most = len(listing.class_names)
    counts: Counter[tuple[str | None, int]] = Counter()
    has_label = columns.labels >= 0
    pairs = splits[has_label] * most + columns.labels[has_label]
    for pair, count in enumerate(np.bincount(pairs, minlength=0)):
        if count:
            counts[names[pair // most], pair % most] = int(count)
    return counts


def _by_name(
    counts: Mapping[tuple[str | None, int], int], listing: Listing
) -> dict[str, dict[str, int]]:
    """The number of images of each class in each split; empty if no image has a class."""
    names = listing.class_names
    if not counts or names is None:
        return {}
    by_split: dict[str, dict[str, int]] = {split: {} for split in listing.splits or ("",)}
    for (split, label), count in sorted(counts.items(), key=lambda item: item[0][1]):
        name = names[label] if 0 <= label < len(names) else None
        if name is not None:
            of_split = by_split.setdefault(split or "", {})
            of_split[name] = of_split.get(name, 0) + count
    return by_split


def _add_notices(listing: Listing, findings: Findings) -> None:
    roots = [f"{getattr(listing.reader, name, None)}/" for name in ("root", "mask_root")]
    for notice in listing.notices:
        if not isinstance(notice, Flaw):
            findings.add(Check.SKIPPED, LintExample("", notice))
        else:
            files = (file.removeprefix(roots[0]).removeprefix(roots[1]) for file in notice.files)
            examples = [LintExample(file, notice.found) for file in files]
            if notice.check is Check.SKIPPED or not examples:
                examples = [LintExample("", notice)]
            findings.add(notice.check, *examples, count=notice.item_count)


def _keep_samples(report: LintReport, listing: Listing) -> None:
    """Keep the samples of the examples, so that a page can draw them."""
    needed = {
        name
        for finding in report.findings
        for example in finding.examples
        for name in (example.file, example.other)
        if name
    }
    kept: dict[str, Sample] = {}
    if needed:
        for sample in listing.samples:
            name, _ = place_of(listing.reader, sample)
            if name in needed:
                kept[name] = sample
                if len(kept) == len(needed):
                    break
    report.keep(kept, listing.reader)
