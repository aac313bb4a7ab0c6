"""WebDataset: tar archives whose members form samples by name.

`0001.jpg`, `0001.cls` and `0001.json` are one sample: its key is the path up to the first dot of
the last part. Archive headers are listed once, and members are read with their sample.
"""

from __future__ import annotations

import glob
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from recordsmith.dataset import is_split_name
from recordsmith.errors import (
    DataError,
    OptionError,
    Problems,
    SourceError,
    located,
)
from recordsmith.example import BytesArray, Kind
from recordsmith.example.keys import CLASS_LABEL, FILENAME, FORMAT, IMAGE, MASK, MASK_FORMAT
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.sources.archives.npy import npy_features
from recordsmith.sources.archives.tar import TarFile
from recordsmith.sources.archives.tar_samples import TarSamples, empty_kinds, parsed_json
from recordsmith.sources.files.files_reader import (
    FilesReader,
    below_common_folder,
    versions_of,
)
from recordsmith.sources.files.images import image_features
from recordsmith.sources.files.paths import common_version, is_folder, last_name
from recordsmith.sources.numbered import Names, SampleTable
from recordsmith.sources.problems import join_names, raise_problems, summarize_paths
from recordsmith.sources.source import Listing, Note, Sample, ignore_note
from recordsmith.sources.splits import only_split
from recordsmith.sources.tables.json_values import KindSurvey, as_json_text, json_features
from recordsmith.sources.tables.row_columns import CategoryColumn, as_splits
from recordsmith.sources.tables.table_rows import LOST_DIGITS, LostDigits
from recordsmith.stores import FolderEntry, Location, PlaceLike, as_location, as_place

_SUFFIXES = (".tar", ".tar.gz", ".tgz")
_MASKS = ("seg", "mask")
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_DIGITS_BEHIND = re.compile(r"[-_.]?\d*$")
_MAX_ARCHIVES = 1_000_000
_CLASH = "features occur in two members of a sample; the first was used"
_SECOND_IMAGE = "samples have a second image, which was stored under its extension"


class WebDataset:
    """The samples of tar archives in WebDataset format.

    The extension of a member, in lower case, decides which features it becomes:

    - an image (`jpg`, `png`, `webp`, …): `image/encoded` and the other image features;
    - `seg.png`, `mask.png`, also in other image formats: `image/segmentation/class/encoded` and
      `/format`;
    - `cls`: `image/class/label`, an integer;
    - `json`: each field of the object becomes a feature; nested values become JSON text, null is
      left out, `{"base64": "..."}` becomes bytes; its `image/filename`, even null, overrides the
      name of the image member;
    - `npy`, also as the last of several extensions: its values, and its shape as `npy/shape`;
    - all others, including `txt`: their unchanged bytes as a feature with the name of the
      extension.

    Nothing is ever unpickled. If archives or their folders are named like splits
    (`train-0000.tar`, `val/0000.tar`), these are the splits.

    Example:
        >>> rs.WebDataset("train-{0000..0003}.tar")
        WebDataset('train-{0000..0003}.tar')
    """

    def __init__(self, path: PlaceLike) -> None:
        """
        Args:
            path: an archive (`.tar`, `.tar.gz`), a folder of archives, a glob pattern, or a
                pattern with numbers in braces such as `train-{0000..0003}.tar`.
        """
        self.path = as_place(path)
        self._is_location = isinstance(path, Location)

    def __repr__(self) -> str:
        return f"WebDataset({str(self.path)!r})"

    @property
    def root(self) -> Location | None:
        """The folder that is read, if it is one."""
        return self.path if self.path.is_folder() else None

    def list_samples(self) -> Listing:
        """Find all samples: reads the headers of archives, and JSON members.

        Raises:
            SourceError: there are no archives or no samples; an archive is damaged, or contains
                class folders; a JSON field has numbers in some samples and text in others.
            OptionError: a pattern matches too many archives.
            CorruptDataError: the compression of an archive is damaged.
            FileAccessError: an archive cannot be read.
        """
        paths = self._find_archives()
        root, names = below_common_folder(paths)
        files = versions_of(root, names)
        members = TarSamples()
        survey = KindSurvey({}, with_lists_as_text=True)
        joined, ends, splits = bytearray(), array("q", [0]), CategoryColumn()
        for path, archive in zip(paths, names, strict=True):
            split = _archive_split(archive)
            for name in members.add(TarFile(path), archive, survey):
                joined += f"{archive}/{name}".encode("utf-8", "surrogateescape")
                ends.append(len(joined))
                splits.append(split)
        if not len(members):
            raise SourceError(
                f"no samples in {join_names(map(str, paths))}: {members.found()}; expected members "
                "such as 0001.jpg and 0001.cls",
                path=self.path,
            )
        members.check_folders()
        notices = members.notices()
        json_kinds, json_as_text = survey.finish(
            lambda where: members.place(where[1], "json"), notices
        )
        coded = None if splits.missing_count or len(splits.values) < 2 else as_splits(splits)
        reader = TarReader(
            root,
            files,
            tuple(json_kinds.items()),
            tuple(sorted(json_as_text)),
            tuple(filter(_is_npy, members.extensions)),
        )
        return Listing(
            SampleTable(
                Names(BytesArray(joined, np.array(ends, np.int64))),
                members.sample_sizes(),
                splits=coded,
                version=common_version(version for _, version in files),
                references=members.__getitem__,
            ),
            reader.having(members.archives),
            notices=tuple(notices),
            splits=() if coded is None else tuple(coded[0]),
            only_split=only_split([] if splits.missing_count else splits.values, self.root),
        )

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "WebDataset",
            "folder" if self.root else "files": (
                last_name(self.path) if self.root else self.path.name
            ),
        }

    def _find_archives(self) -> Sequence[Location]:
        """Find the archives, in order."""
        path, text = self.path, str(self.path)
        is_pattern = _BRACES.search(text) or glob.has_magic(text)
        if is_pattern and not path.exists() and not path.is_folder():
            if _BRACES.search(text) and self._is_location:
                return [Location(path.store, key) for key in _expanded(path.key)]
            found = list(map(as_location, _expanded(text))) if _BRACES.search(text) else path.glob()
            if not found:
                raise SourceError("no file matches this pattern", path=text)
            return found
        if not is_folder(path):
            return [path]
        entries = _shown(path)
        archives = [path / entry.name for entry in entries if _is_archive(entry)]
        if not archives:
            folders = [path / entry.name for entry in entries if entry.kind == "folder"]
            archives = [
                folder / inner.name
                for folder in folders
                for inner in _shown(folder)
                if _is_archive(inner)
            ]
        if not archives:
            found_names = summarize_paths([str(path / entry.name) for entry in entries])
            raise SourceError(f"no .tar archives; found {found_names}", path=path)
        return archives


@dataclass(frozen=True)
class TarReader(FilesReader[TarFile]):
    """Reads samples by the offsets of their members. Elsewhere, a compressed archive is
    decompressed once.

    json_kinds: of fields in JSON members.
    json_as_text: fields that become JSON text.
    arrays: the extensions of `.npy` members.
    """

    json_kinds: tuple[tuple[str, Kind], ...] = ()
    json_as_text: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read the members of one sample."""
        archive, reference = self.opened(sample)
        features: dict[str, Any] = {}
        problems = Problems()
        named: dict[str, Any] = {}  # its former image/filename; None if it had none
        key = sample.name.removeprefix(f"{reference['file']}/")
        for extension, offset, size in reference["members"]:
            place = f"{archive.path}: {reference['key']}.{extension}"
            try:
                with located(place):
                    data = archive.read(offset, size)
                    found = self._features(extension, data, key, features, note, place)
            except DataError:
                raise
            except SourceError as error:
                problems.extend(error.problems, error.problem_count)
                continue
            except ValueError as error:
                problems.add(f"{place}: {error}")
                continue
            for name, value in found.items():
                if name == FILENAME and extension == "json":
                    named[name] = value
                elif name in features:
                    note(_CLASH, f"{place}: {name}")
                else:
                    features[name] = value
        raise_problems(problems)
        features |= named
        if features.get(FILENAME, b"") is None:
            del features[FILENAME]
        return features

    def kinds(self) -> Mapping[str, Kind]:
        return dict(self.json_kinds) | dict.fromkeys(
            (f"{name}/shape" for name in self.arrays), "int64"
        )

    @cached_property
    def _json_as(self) -> tuple[Mapping[str, Kind], frozenset[str]]:
        return dict(self.json_kinds), frozenset(self.json_as_text)

    def _open(self, name: str) -> Mapping[str, TarFile]:
        return {name: TarFile(self.checked(name))}

    def _features(
        self,
        extension: str,
        data: bytes,
        key: str,
        known: Mapping[str, Any],
        note: Note,
        place: str,
    ) -> dict[str, Any]:
        """The features of one member."""
        if f".{extension}" in IMAGE_SUFFIXES:
            if IMAGE in known:
                note(_SECOND_IMAGE, place)
                return {extension: data}
            return image_features(data, f"{key}.{extension}")
        stem, _, suffix = extension.partition(".")
        if stem in _MASKS and f".{suffix}" in IMAGE_SUFFIXES and MASK not in known:
            mask = image_features(data, key)
            return {
                MASK: data,
                MASK_FORMAT: mask[FORMAT],
            }
        if extension == "cls":
            return {CLASS_LABEL: _class_number(data)}
        if extension == "json":
            parsed = parsed_json(data)
            if not isinstance(parsed, dict):
                return {"json": as_json_text(parsed)}
            empty_kinds(parsed)
            lost = LostDigits()
            found = json_features(parsed, *self._json_as, lost, place)
            for where in lost.places():
                note(LOST_DIGITS, where)
            return found | {FILENAME: None} if parsed.get(FILENAME, ...) is None else found
        if _is_npy(extension):
            return npy_features(data, extension)
        return {extension: data}


def _shown(folder: Location) -> list[FolderEntry]:
    return [entry for entry in folder.list_entries() if not entry.name.startswith(".")]


def _is_archive(entry: FolderEntry) -> bool:
    return entry.name.endswith(_SUFFIXES) and entry.kind != "special"


def _class_number(data: bytes) -> int:
    text = data.strip()
    if not re.fullmatch(rb"-?\d{1,19}", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"expected a class number, found {text[:40]!r}")
    return int(text)


def _is_npy(extension: str) -> bool:
    return extension.rpartition(".")[2] == "npy"


def _archive_split(archive: str) -> str | None:
    """The split in the path of an archive, if any."""
    folder, _, name = archive.rpartition("/")
    stem = _DIGITS_BEHIND.sub("", name.partition(".")[0])
    for candidate in (folder, stem):
        if is_split_name(candidate):
            return candidate
    return None


def _expanded(pattern: str) -> list[str]:
    """Expand a pattern with numbers in braces; the numbers keep the width of the first."""
    pieces = _BRACES.split(pattern)
    choices: list[list[str]] = []
    count = 1
    for first, last in zip(pieces[1::3], pieces[2::3], strict=True):
        low, high = int(first), int(last)
        count *= max(0, high - low + 1)
        if not 0 < count <= _MAX_ARCHIVES:
            raise OptionError(
                f"{pattern} matches {count:,} archives",
                option="path",
                value=pattern,
                expected=f"ascending numbers and at most {_MAX_ARCHIVES:,} archives",
            )
        choices.append([f"{number:0{len(first)}d}" for number in range(low, high + 1)])
    fixed = pieces[::3]
    return [
        "".join(part for pair in zip(fixed, (*chosen, ""), strict=True) for part in pair)
        for chosen in product(*choices)
    ]
