"""Groups of samples, such as all images of a patient, which stay in one split; and splits by name.

All groups of a job are combined in `with_groups`: those of the source, of a pattern, and of tables.
"""

from __future__ import annotations

import csv
import io
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from itertools import islice

import numpy as np

from recordsmith.dataset import text_of
from recordsmith.sources.classes import compile_pattern, match_names
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.paths import path_endings, with_slashes
from recordsmith.sources.numbered import Coding, RowNames, SampleTable, collect
from recordsmith.sources.problems import count_notice, join_names
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import sort_splits
from recordsmith.stores import Location, as_location, read_document
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.joining import joined
from recordsmith.support.problems import Problems
from recordsmith.support.words import count


def with_groups(
    listing: Listing,
    group_pattern: str | None = None,
    groups: str | None = None,
    others: Iterable[Coding] = (),
) -> Listing:
    """Add groups to those that a source has: samples that share any group are in one.

    Args:
        group_pattern: a regular expression that finds the group in the path of each image, or in
            the group that the source has for each row or record.
        groups: a CSV file with the columns name and group.
        others: more groups, each for all samples of the listing.

    Raises:
        OptionError: the pattern is invalid, or the samples are not images with names.
        SourceError: an image has no group, or the table is invalid.
    """
    samples = collect(listing.samples)
    codings = [*([] if samples.groups is None else [samples.groups]), *others]
    pattern = compile_pattern(group_pattern, "group_pattern")
    if pattern is not None:
        root = getattr(listing.reader, "root", None)
        if samples.groups is not None and isinstance(samples.names, RowNames):
            names, group_of = samples.groups
            found, numbers = match_names(pattern, names, root, "group")
            codings[0] = found, np.where(group_of >= 0, numbers[group_of], -1).astype(np.int32)
        else:
            names = image_names(samples, "group_pattern")
            codings.append(match_names(pattern, names, root, "group"))
    notices: list[str] = []
    if groups is not None:
        coding, notices = _from_table(samples, groups, "group", "groups")
        codings.append(coding)
    if pattern is None and len(codings) == (samples.groups is not None):
        return listing
    samples = copy(samples)
    samples.groups = join_groups(codings)
    return replace(listing, samples=samples, notices=[*listing.notices, *notices])


def with_splits(listing: Listing, table: str) -> Listing:
    """Replace the splits of a source by those of a CSV file with the columns name and split.

    Raises:
        OptionError: the samples are not images with names.
        SourceError: an image has no split, or the table is invalid.
    """
    samples = copy(collect(listing.samples))
    (names, numbers), notices = _from_table(samples, table, "split", "splits")
    splits = sort_splits(names)
    order = np.array([splits.index(name) for name in names], np.int32)
    samples.splits = splits, order[numbers]
    if own := listing.splits or [name for name in [listing.only_split] if name]:
        notices.append(f"the source's own splits {join_names(own)} not used")
    notices = [*listing.notices, *notices]
    return replace(listing, samples=samples, splits=splits, only_split=None, notices=notices)


def join_groups(codings: Sequence[Coding]) -> Coding:
    """Combine groups: samples that share one in any of the codings share one in the result.

    The name of a combined group is the first of its names in the first coding that has one.
    """
    return reduce(_join, codings)


def _join(one: Coding, other: Coding) -> Coding:
    names = [*one[0], *other[0]]
    size = len(one[0])
    order = sorted(range(len(names)), key=lambda number: (number >= size, names[number]))
    rank = np.empty(len(names), np.int64)
    rank[order] = np.arange(len(names))
    have_both = (one[1] >= 0) & (other[1] >= 0)
    pairs = rank[one[1][have_both]] * len(names) + rank[other[1][have_both] + size]
    lowest = joined(divmod(pair, len(names)) for pair in np.unique(pairs).tolist())
    roots = np.array([order[lowest.get(own, own)] for own in rank.tolist()], np.int32)
    numbers = np.where(one[1] >= 0, one[1], np.where(other[1] >= 0, other[1] + size, -1))
    return names, np.where(numbers >= 0, roots[numbers], -1).astype(np.int32)


def divided_groups(
    groups: Coding | None, split_of: Int64Array
) -> list[tuple[str, tuple[int, ...]]]:
    """Return the groups that are in several splits: name, and the first sample in each split.

    The samples of a group are in the order of their splits; `split_of` has -1 for none.
    """
    if groups is None:
        return []
    names, group_of = groups
    grouped = np.flatnonzero((group_of >= 0) & (split_of >= 0))
    pairs = group_of[grouped] * (split_of.max(initial=0) + 1) + split_of[grouped]
    _, firsts = np.unique(pairs, return_index=True)  # by group, then by split
    samples = defaultdict[int, list[int]](list)
    for number in grouped[firsts].tolist():
        samples[int(group_of[number])].append(number)
    return [(names[group], tuple(own)) for group, own in samples.items() if len(own) > 1]


def image_names(samples: SampleTable, argument: str) -> Sequence[str]:
    """The path of the image of each sample; an error where samples are other rows."""
    if not isinstance(samples.names, RowNames):
        return samples.names
    references = map(samples.references or (lambda _: None), range(len(samples)))
    names = [str((reference or {}).get("image") or "") for reference in references]
    if "" in names:
        raise OptionError(
            f"{option(argument)} needs samples with names, and these are rows or records",
            option=argument,
            remedy=f"Pass the column of a table, or the feature of records, with "
            f"{option('split_column' if argument == 'splits' else 'group_column')}.",
        )
    return names


# -- tables of names -------------------------------------------------------------------------------


def _from_table(
    samples: SampleTable, table: str, column: str, argument: str
) -> tuple[Coding, list[str]]:
    """The value of each sample in a column of a table, and a notice on lines without a sample."""
    location = as_location(table.removeprefix("@"))
    names = [*image_names(samples, argument)]
    find = _SampleFinder(names)
    numbers = np.full(len(names), -1, np.int32)
    lines = np.zeros(len(names), np.int64)
    values: dict[str, int] = {}
    unused, problems = [], Problems()
    for line, name, value in _read_table(location, column):
        found = find(name)
        number = values.setdefault(value, len(values))
        if not name or not value:
            problems.add(f"line {line} has no {column if name else 'name'}")
        elif not found:
            unused.append(name)
        elif len(found) > 1:
            problems.add(f"line {line}: {name!r} may be {join_names(found, 'or')}")
        elif numbers[place := find.places[found[0]]] not in (-1, number):
            problems.add(f"line {line}: {name!r} has another {column} than in line {lines[place]}")
        else:
            numbers[place], lines[place] = number, line
    if problems:
        raise SourceError(
            f"{count(problems.count, 'line')} of the table cannot be used",
            problems,
            path=location,
            remedy=f"Write the path and the {column} of each image, and each image once.",
            lists_problems=True,
        )
    without = [names[place] for place in np.flatnonzero(numbers < 0).tolist()]
    if without:
        tail = f"; lines without an image: {join_names(unused)}" if unused else ""
        raise SourceError(
            f"{len(without):,} of {len(names):,} images have no line: {join_names(without)}{tail}",
            without,
            path=location,
            remedy=f"Add a line with the {column} of each, or leave them out with "
            f"{option('leave_out')}.",
        )
    return ([*values], numbers), count_notice(unused, "line", f"of {location.name} without image")


def _read_table(location: Location, column: str) -> Iterator[tuple[int, str, str]]:
    """The number, the name and the value of each line of a CSV file; empty where it has none."""
    try:
        text = text_of(read_document(location))
    except ValueError as error:
        raise SourceError(f"not a table: {error}", path=location) from None
    head = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    try:
        columns = [cell.strip().lower() for cell in next(rows, [])]
        if not {"name", column} <= {*columns}:
            raise SourceError(
                f"the first line is {head.strip()[:60]!r}; expected the columns name and {column}",
                path=location,
            )
        for row in rows:
            cells = dict(zip(columns, map(str.strip, row), strict=False))
            if any(cells.values()):
                yield rows.line_num, cells.get("name", ""), cells.get(column, "")
    except csv.Error as error:
        raise SourceError(f"not CSV: {error}", path=location, line=rows.line_num) from None


class _SampleFinder:
    """Finds samples by the paths of their images, longer paths that end with these, or bare names.

    Bare names may have another suffix of images, or none. It searches names of samples, where
    `FileIndex` searches a folder.

    places: the number of each path.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.places: Mapping[str, int] = {name: number for number, name in enumerate(names)}
        self._bare: dict[str, list[str]] = {}
        for name in names:
            base = posixpath.basename(name)
            for bare in {base, _without_suffix(base)}:
                self._bare.setdefault(bare, []).append(name)

    def __call__(self, name: str) -> list[str]:
        path = with_slashes(name)
        if path in self.places:
            return [path]
        if "/" in path:
            return [*islice(filter(self.places.__contains__, path_endings(path)), 1)]
        return self._bare.get(path) or self._bare.get(_without_suffix(path), [])


def _without_suffix(name: str) -> str:
    return posixpath.splitext(name)[0] if has_image_name(name) else name
