"""Detect how a folder or file can be read, and make the source that reads it.

Each family of sources has a module `detection` or `layout` with a function `find_candidates`. The
candidate that is chosen is the specification of the source: its format and its options.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from recordsmith.dataset import KEEP_RULES, RECORD_SUFFIXES, has_split_word, read_findings
from recordsmith.sources.boxes.known_formats import recognise_annotations
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_tree import HEAD_BYTES, MAX_TABLES, FileTree, TreeSource
from recordsmith.sources.files.foreign import check_all_fetched, check_fetched, refusal
from recordsmith.sources.files.images import has_image_name, is_image_word, is_mask_word
from recordsmith.sources.files.known_names import ARCHIVE_SUFFIXES, TABLE_SUFFIXES, is_array_name
from recordsmith.sources.files.paths import is_absolute, is_folder
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS, OPTIONS
from recordsmith.sources.layouts import (
    Confidence,
    LayoutCandidate,
    choose,
    marked,
    not_accepted,
)
from recordsmith.sources.leaving_out import FoundSamples, LeavingOut
from recordsmith.sources.left_behind import Recogniser, concerns_of
from recordsmith.sources.source import Listing, Source
from recordsmith.sources.splits import is_like_split
from recordsmith.stores import Location, PlaceLike, as_place
from recordsmith.support.errors import OptionError, SourceError, option, with_options
from recordsmith.support.explaining import check_word
from recordsmith.support.lazy import LazyTable
from recordsmith.support.words import count

_MAX_NOTICES = 100
_MAX_DATASETS = 20
_WITHOUT_IMAGES = ("shards", "tfds", "lerobot", "webdataset", "arrays")
_DATA_SUFFIXES = (".json", ".xml", ".yaml", ".yml", ".data", ".names", *TABLE_SUFFIXES)


_PLACES = frozenset(("images", "masks", "annotations", "table"))
"""Options by which the caller says which part of a folder is read; the rest is then left out."""


_FINDERS: LazyTable[Callable[[FileTree], Iterable[LayoutCandidate]]] = LazyTable(
    "recordsmith.sources",
    {
        "archives": "archives.detection.find_candidates",
        "boxes": "boxes.detection.find_candidates",
        "tables": "tables.detection.find_candidates",
        "pairs": "pairs.layout.find_candidates",
        "class_folders": "class_folders.layout.find_candidates",
    },
)
"""The detectors of the families; of equally strong readings the first family's come first."""

_OF_IMAGES = ("pairs", "class_folders")
"""The families that read folders without other files than images."""


@dataclass(frozen=True)
class Detection:
    """How a folder or file can be read.

    path: the folder or file.
    readings: by strength, the likeliest first; those of strength POSSIBLE are chosen only by
        options.
    given_format, given: the format and the options of the caller.
    tree: the folder as it was scanned, for the first listing of the source.
    found: files of findings whose samples are left out.

    Example:
        detection = rs.detect("flowers")
        rs.pack(detection.source, "packed")
    """

    path: Location
    readings: tuple[LayoutCandidate, ...]
    given_format: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    tree: FileTree | None = field(default=None, compare=False, repr=False)
    found: tuple[FoundSamples, ...] = ()

    @cached_property
    def reading(self) -> LayoutCandidate:
        """The reading that `pack` uses, with all its options.

        Raises:
            SourceError: several readings fit, and `problems` has the options that choose each; the
                only one needs an option; the folder contains several datasets, which `problems`
                has.
            OptionError: an option does not apply to the format.
        """
        return self._chosen.with_options(self.given)

    @cached_property
    def _chosen(self) -> LayoutCandidate:
        given = self.given_format, self.given
        return choose(self.path, self.readings, *given, partial(_find_datasets, self.tree))

    @cached_property
    def source(self) -> Source:
        """The source of the reading.

        Raises:
            SourceError, OptionError: as `reading`.
        """
        source: Source = FORMATS[self.reading.format](self.path, **self.reading.options)
        if self.tree is not None and isinstance(source, TreeSource):
            self.tree.explained = self.reading.left_out
            if _PLACES.isdisjoint(self.given):
                is_chosen = self.given_format is not None
                self.tree.inspector = Recogniser(self.tree, self.reading.format, is_chosen)
            source.use_tree(self.tree)
        return LeavingOut(source, self.found) if self.found else source

    def describe(self, listing: Listing) -> str:
        """What is read, for people: "images in image/, masks in label/: 30 pairs"."""
        number = count(_read_count(self.reading, listing), self.reading.noun.removesuffix("s"))
        hints = "".join(f"; {hint}" for hint in self.reading.hints.values())
        return f"{self.reading.describe()}: {number}{hints}"

    def to_json(self) -> dict[str, Any]:
        """Return format, options, count, splits, classes, account, notices and alternatives.

        Lists the samples of the source, without reading them.

        Raises:
            SourceError, OptionError: as `reading`; or there is nothing to pack.
            FileAccessError: a folder or file cannot be read.
        """
        listing = self.source.list_samples()
        others = [candidate for candidate in self.readings if candidate is not self._chosen]
        account = listing.account
        return {
            **_candidate_json(self.reading),
            "count": _read_count(self.reading, listing),
            "splits": list(listing.splits or filter(None, [listing.only_split])),
            "classes": None if listing.class_names is None else list(listing.class_names),
            "account": None if account is None else account.to_json(),
            "stops": [] if account is None else [*map(with_options, concerns_of(listing))],
            "notices": [*map(with_options, itertools.islice(listing.notices, _MAX_NOTICES))],
            "alternatives": [*map(_candidate_json, others)],
        }


def _read_count(reading: LayoutCandidate, listing: Listing) -> int:
    """How many samples there are, without images that are missing."""
    account = listing.account
    images = sum(line.file_count for line in account or () if line.kind is Role.IMAGE)
    is_known = account is not None and reading.format in BOX_SUFFIXES
    return min(len(listing.samples), images) if is_known else len(listing.samples)


def _candidate_json(candidate: LayoutCandidate) -> dict[str, Any]:
    return {
        "format": candidate.format,
        "options": dict(candidate.options),
        "what": with_options(candidate.describe()),
        "noun": candidate.noun,
        "strength": candidate.confidence.name.lower(),
        "hints": [*map(with_options, candidate.hints.values())],
        "problem": with_options(candidate.problem),
    }


def detect(
    path: PlaceLike,
    format: str | None = None,
    *,
    leave_out: str | Sequence[str] = (),
    checks: str | Sequence[str] = (),
    keep: str = "first",
    **options: Any,
) -> Detection:
    """Detect how a folder or file can be read.

    Lists the folder and opens at most some dozens of files in it.

    Args:
        path: a folder, a file, or a pattern of files.
        format: how to read it; None to detect it. One of those that `recordsmith detect --help`
            lists, such as `folder` or `coco`.
        leave_out: files and folders of the folder to leave out: names, paths or patterns with `*`;
            or the samples of a file that `lint` wrote with `findings`: `@findings.jsonl`.
        checks: check of such a file whose samples are left out. A list of them; by default all
            errors and warnings about single samples.
        keep: which sample stays of each group of copies or similar images: first, largest (the
            largest image), train (the first one in that split) or none.
        options: those of `SourceOptions`, such as `images="photos"`; those that are None are
            ignored. They choose between readings: an option that only one of them accepts selects
            it.

    Returns:
        The readings. `detect(path).reading` is the one that `pack` uses, `.source` its source.

    Raises:
        SourceError: unsupported file type.
        OptionError: the format is unknown, or does not accept one of the options; or a file of
            findings is invalid, or not about this state of the source (when it is listed).
        FileAccessError: the path cannot be read.

    Example:
        >>> rs.detect("flowers").reading.format
        'folder'
    """
    names = [leave_out] if isinstance(leave_out, str) else [*leave_out]
    checks = (checks,) if isinstance(checks, str) else tuple(checks)
    check_word("keep", keep, KEEP_RULES)
    found = tuple(
        FoundSamples(read_findings(name, "leave_out"), checks, keep)
        for name in names
        if name.startswith("@")
    )
    if checks and not found:
        raise OptionError(
            f"{option('checks')} needs a file of findings",
            option="checks",
            remedy=f"Pass {option('leave_out', '@findings.jsonl')}.",
        )
    patterns = [name for name in names if not name.startswith("@")]
    return replace(_detect(path, format, patterns, options), found=found)


def _detect(
    path: PlaceLike, format: str | None, names: Sequence[str], options: Mapping[str, Any]
) -> Detection:
    root = as_place(path)
    if names and not is_folder(root):
        raise OptionError(
            f"{option('leave_out')} leaves out what is in a folder, and {root} is a file",
            option="leave_out",
            value=names[0],
        )
    given = {name: value for name, value in options.items() if value is not None}
    if format is not None:
        _check_format(format, given)
        is_pattern = "*" in root.name or "{" in root.name
        if is_pattern or not root.is_folder():
            return Detection(root, (), format, given)  # nothing is left to detect
    if "{" in root.name or "*" in root.name or not is_folder(root):
        return Detection(root, (_read_file(root),), format, given)
    tree = FileTree(root, leave_out=[_path_below(root, name) for name in names])
    for name, below in zip(names, tree.leave_out, strict=True):
        is_inside = any(below.startswith(f"{other}/") for other in tree.leave_out)
        if tree.folders and tree.is_complete and below not in tree.matched and not is_inside:
            raise OptionError(
                option="leave_out", value=name, expected=f"a file or folder in {root}, or a pattern"
            )
    tables = itertools.islice(tree.files(".csv", ".ndjson", depth=2), MAX_TABLES)
    tree.foreign = frozenset(path for path in tables if _is_annotation(path, tree.head(path)))
    if format is None:
        check_all_fetched(tree, (*_DATA_SUFFIXES, ".txt"))
    return Detection(root, tuple(_find_candidates(tree)), format, given, tree)


def _is_annotation(path: str, head: bytes) -> bool:
    """Whether a table holds annotations instead of rows."""
    is_via = path.lower().endswith(".csv") and FORMATS["via"].box_format.matches(head)
    return is_via or recognise_annotations(path, head) is not None


def _path_below(root: Location, name: str) -> str:
    """The path of a file or folder to leave out, relative to the root if it is absolute."""
    below = as_place(name).relative_to(root) if is_absolute(name) or "://" in name else None
    return below or posixpath.normpath(name)


def _find_candidates(tree: FileTree) -> list[LayoutCandidate]:
    """The ways to read a folder, the likeliest first."""
    candidates = _candidates_of(tree)
    used = {file for c in candidates if c.format != "table" for file in c.files}
    candidates = [c for c in candidates if c.format != "table" or used.isdisjoint(c.files)]
    if any(len(c.classes) > 1 and not _are_parts(c.classes) for c in candidates):
        candidates = [*map(_without_classes, candidates)]
    candidates.sort(key=lambda candidate: -candidate.confidence)
    distinct: dict[str, LayoutCandidate] = {}
    for candidate in candidates:
        distinct.setdefault(candidate.typed(), candidate)
    candidates = [*distinct.values()]
    if candidates:
        return candidates
    if (refused := refusal(tree.root, tree.files(""))) is not None:
        raise refused
    # its error has what was found and expected; images may be without suffixes
    return [LayoutCandidate("folder", "class folders", Confidence.POSSIBLE)]


def _are_parts(names: Sequence[str]) -> bool:
    """Whether folders are numbered parts of one folder: part_1, part_2."""
    numbers = sorted(int(re.sub(r"[^0-9]", "", name)[:9] or 0) for name in names)
    is_same = len({re.sub(r"[0-9]", "", name) for name in names}) == 1
    return is_same and numbers == [*range(numbers[0], numbers[0] + len(numbers))]


def _without_classes(candidate: LayoutCandidate) -> LayoutCandidate:
    """A table of images is no better reading than class folders if it has no classes itself."""
    is_bare = candidate.format == "table" and "image_column" in candidate.options
    if not is_bare or "label_column" in candidate.options:
        return candidate
    return replace(candidate, confidence=Confidence.STRUCTURE)


def _candidates_of(tree: FileTree) -> list[LayoutCandidate]:
    has_others = any(scan.file_count > scan.image_count for scan in tree.folders.values())
    families = _FINDERS if has_others else _OF_IMAGES
    return [candidate for family in families for candidate in _FINDERS[family](tree)]


def _find_datasets(
    tree: FileTree | None, strongest: Sequence[LayoutCandidate]
) -> Mapping[str, str]:
    """The folders in a folder that are datasets of their own, and what each is.

    None if their names, a file next to them or a reading of the whole folder joins them.
    """
    if tree is None or (len(strongest) > 1 and len({way.format for way in strongest}) == 1):
        return {}
    folders = tree.folders
    names = [
        name
        for name in sorted(tree.inside(""))
        if tree.inside(name) or folders[name].file_count > folders[name].image_count
    ]
    used = {
        path.partition("/")[0]
        for reading in strongest
        for name in ("images", "masks", "table")
        for path in str(reading.options.get(name, "")).split(",")
    }
    is_joined = len(used - {""}) > 1 or "*" in used or any(map(is_like_split, tree.inside("")))
    has_data = any(map(_is_data, folders[""].names))
    if is_joined or has_data or not 2 <= len(names) <= _MAX_DATASETS:
        return {}
    datasets: dict[str, LayoutCandidate] = {}
    for name in itertools.filterfalse(_is_part, names):
        inner = tree.below(name)
        own = max(_candidates_of(inner), key=lambda way: way.confidence, default=None)
        if own is None or own.confidence == Confidence.POSSIBLE:
            continue
        has_classes = own.confidence > Confidence.STRUCTURE or own.format == "folder"
        is_marked = own.confidence == Confidence.MARKED and own.format in _WITHOUT_IMAGES
        if is_marked or (inner.image_counts[""] and has_classes) or not tree.image_counts[""]:
            datasets[name] = own
    is_one_format = len({own.format for own in datasets.values()}) == 1
    of_one = ("coco", "yolo", "tfds")  # these read one of them even if there are several
    has_reading = len(strongest) == 1 and strongest[0].confidence > Confidence.POSSIBLE
    reads_all = has_reading and strongest[0].format not in of_one
    if len(datasets) < 2 or (is_one_format and reads_all):
        return {}
    return {name: own.what for name, own in datasets.items()}


def _is_part(name: str) -> bool:
    """Whether a folder is named like a part or a version of a dataset."""
    is_named = is_image_word(name) or is_mask_word(name) or name.lower().startswith("annot")
    return is_named or has_split_word(name) or not name.strip("0123456789.")


def _is_data(name: str) -> bool:
    """Whether a file may belong to a dataset in the folder itself."""
    lower = name.lower().removesuffix(".gz")
    return lower.endswith(_DATA_SUFFIXES) or has_image_name(lower) or is_array_name(lower)


def _check_format(format: str, given: Mapping[str, Any]) -> None:
    check_word("format", format, FORMATS)
    for name in given:
        if name not in OPTIONS[format]:
            raise not_accepted(name, given[name], format)


def _read_file(path: Location) -> LayoutCandidate:
    """The only reading of a file or of a pattern of files."""
    from recordsmith.sources.boxes.detection import candidate_of_file
    from recordsmith.sources.tables.detection import of_file

    name = path.name.lower()
    is_archive, is_pattern = name.endswith(ARCHIVE_SUFFIXES), "{" in name or "*" in name
    if is_pattern and not is_archive:
        return marked("shards", "a pattern of files", "records")
    plain = name.removesuffix(".gz")
    if name.endswith(_DATA_SUFFIXES):
        check_fetched(path, path.read(0, HEAD_BYTES))
    if not is_pattern and (candidate := candidate_of_file(path)) is not None:
        return candidate
    if plain.endswith(TABLE_SUFFIXES):
        ending = plain.rpartition(".")[2].upper()
        return of_file(marked("table", f"a {ending} file", "rows"), path)
    if is_archive:
        what = "a pattern of tar files" if is_pattern else "a tar file"
        return marked("webdataset", what, "samples")
    if is_array_name(path.name):
        return marked("arrays", "a file of arrays")
    if any(ending in name for ending in RECORD_SUFFIXES):
        return marked("shards", "a TFRecord file", "records")
    refused = refusal(path, [path.name])
    if refused is not None:
        raise refused
    known = ", ".join((*TABLE_SUFFIXES, ARCHIVE_SUFFIXES[0], RECORD_SUFFIXES[0], ".json"))
    raise SourceError(
        f"unsupported file type; expected a folder or a file ending in {known}", path=path
    )
