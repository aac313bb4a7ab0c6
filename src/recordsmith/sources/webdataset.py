"""WebDataset: tar archives whose members belong together by their names.

`0001.jpg`, `0001.cls` and `0001.json` are one sample: its key is what stands before the first dot
of the last part of the path. The headers of archives are listed once, and members are read when
their sample is. Names are only names here: nothing is written, and they are made safe.
"""

from __future__ import annotations

import glob
import os
import re
from array import array
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from recordsmith.dataset import is_split_name
from recordsmith.errors import CorruptDataError, OptionError, SourceError, located
from recordsmith.example import BytesArray, Kind
from recordsmith.example.keys import CLASS_LABEL, FORMAT, MASK, MASK_FORMAT, PICTURE
from recordsmith.files import PathLike, as_path, is_folder, is_special, list_folder
from recordsmith.image import PICTURE_SUFFIXES
from recordsmith.sources.contract import Listing, Note, Sample, unheard
from recordsmith.sources.folders import leads_to_folder
from recordsmith.sources.json_values import KindSurvey, as_json_text, json_features
from recordsmith.sources.marks import Coded, as_splits
from recordsmith.sources.npy import npy_features
from recordsmith.sources.numbered import Names, NumberedSamples, number_of
from recordsmith.sources.pictures import picture_features
from recordsmith.sources.tar import TarFile
from recordsmith.sources.tar_samples import TarSamples, parsed_json
from recordsmith.sources.versions import version_of_files
from recordsmith.sources.wording import some, tally

_SUFFIXES = (".tar", ".tar.gz", ".tgz")
_MASKS = ("seg.png", "mask.png")
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_DIGITS_BEHIND = re.compile(r"[-_.]?\d*$")
_MOST_ARCHIVES = 1_000_000
_CLASH = "two members of a sample would be the same feature: the first counts"


class WebDataset:
    """The samples of tar archives.

    What a sample has is told by the extensions of its members, in lower case:

    - a picture (`jpg`, `png`, `webp`, …): `image/encoded` and the other keys of pictures;
    - `seg.png`, `mask.png`: `image/segmentation/class/encoded` and `/format`;
    - `cls`: `image/class/label`, a whole number;
    - `json`: each field of the object is a feature; what is nested in it becomes JSON text, null
      is left out; its `image/filename` counts more than the name of the picture's member;
    - `npy`, also as the last of several extensions: its values, and its shape as `npy/shape`;
    - all others, also `txt`: their bytes, untouched, as a feature of that name.

    Nothing is ever unpickled. If archives, or the folders they lie in, are named after splits
    (`train-0000.tar`, `val/0000.tar`), these are the splits.
    """

    def __init__(self, path: PathLike) -> None:
        """`path`: an archive (`.tar`, `.tar.gz`), a folder of them, a glob pattern, or a pattern
        with numbers in braces, such as `train-{0000..0003}.tar`.
        """
        self.path = as_path(path)
        self._members = TarSamples()
        self._was_listed = False
        self._kinds: dict[str, Kind] = {}
        self._json_kinds: dict[str, Kind] = {}
        self._json_as_text: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"WebDataset({str(self.path)!r})"

    @property
    def root(self) -> Path | None:
        """The folder that is read, if it is one."""
        return self.path if self.path.is_dir() else None

    def list_samples(self) -> Listing:
        """Find all samples: reads the headers of the archives, and what is JSON.

        Raises:
            SourceError: there are no archives or no samples; an archive is damaged; a field of
                JSON holds numbers here and text there.
            CorruptDataError: an archive is compressed, and that is damaged.
            FileAccessError: an archive cannot be read.
        """
        paths = self._find_archives()
        folder = Path(os.path.commonpath([os.path.abspath(path.parent) for path in paths]))
        members = TarSamples()
        survey = KindSurvey({}, with_lists_as_text=True)
        joined, ends, splits = bytearray(), array("q", [0]), Coded()
        for path in paths:
            archive = Path(os.path.abspath(path)).relative_to(folder).as_posix()
            split = _split_of(archive)
            for name in members.add(TarFile(path), archive, survey):
                joined += f"{archive}/{name}".encode("utf-8", "surrogateescape")
                ends.append(len(joined))
                splits.append(split)
        if not len(members):
            raise SourceError(
                f"no samples in {some(map(str, paths))}: expected members such as 0001.jpg and "
                f"0001.cls{members.found()}"
            )
        notices = members.notices()
        self._json_kinds, self._json_as_text = survey.finish(
            lambda where: members.place(where[1], "json"), notices
        )
        self._members, self._was_listed = members, True
        shapes = [f"{name}/shape" for name in members.extensions if _is_npy(name)]
        self._kinds = self._json_kinds | dict.fromkeys(shapes, "int64")
        coded = None if splits.missing_count or len(splits.values) < 2 else as_splits(splits)
        names = Names(BytesArray(joined, np.array(ends, np.int64)))
        return Listing(
            NumberedSamples(
                names, members.sample_sizes(), splits=coded, version=version_of_files(paths)
            ),
            notices=tuple(notices),
            splits=() if coded is None else tuple(coded[0]),
        )

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read the members of one sample.

        Raises:
            SourceError: a member is not what its extension says; `problems` has each.
            CorruptDataError: its picture cannot be read.
        """
        if not self._was_listed:
            self.list_samples()
        number = number_of(sample)
        features: dict[str, Any] = {}
        problems: list[str] = []
        key = sample.name.removeprefix(f"{self._members.archive_name(number)}/")
        for extension, data in self._members.read(number):
            place = self._members.place(number, extension)
            try:
                with located(place):
                    found = self._features(extension, data, key, features, note, place)
            except CorruptDataError:
                raise
            except SourceError as error:
                problems += error.problems
                continue
            except ValueError as error:
                problems.append(f"{place}: {error}")
                continue
            for name, value in found.items():
                if name == "image/filename" and name in features:
                    if extension == "json" and isinstance(value, bytes):
                        features[name] = value  # what it was called before it got its key
                elif name in features:
                    note(_CLASH, f"{place}: {name}")
                else:
                    features[name] = value
        if problems:
            raise SourceError("; ".join(problems), problems)
        return features

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "WebDataset",
            "folder" if self.root else "files": (
                self.path.resolve().name if self.root else self.path.name
            ),
        }

    def kinds(self) -> Mapping[str, Kind]:
        return self._kinds

    def _features(
        self,
        extension: str,
        data: bytes,
        key: str,
        known: Mapping[str, Any],
        note: Note,
        place: str,
    ) -> dict[str, Any]:
        """What one member becomes.

        Raises:
            ValueError, CorruptDataError: it is not what its extension says.
        """
        if f".{extension}" in PICTURE_SUFFIXES:
            if PICTURE in known:
                note("a second picture of a sample is stored under its extension", place)
                return {extension: data}
            return picture_features(data, f"{key}.{extension}")
        if extension in _MASKS and MASK not in known:
            mask = picture_features(data, key)
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
            return json_features(parsed, self._json_kinds, self._json_as_text, note, place)
        if _is_npy(extension):
            return npy_features(data, extension)
        return {extension: data}

    def _find_archives(self) -> list[Path]:
        """The archives that the path means, in order.

        Raises:
            SourceError: there are none.
            FileAccessError: the path does not exist.
            OptionError: a pattern means too many.
        """
        text = os.fspath(self.path)
        if _BRACES.search(text) and not self.path.exists():
            return _expanded(text)
        if glob.has_magic(text) and not self.path.exists():
            found = [Path(name) for name in sorted(glob.glob(text, recursive=True))]
            if not found:
                raise SourceError(f"no file matches {text}")
            return found
        if not is_folder(self.path):
            return [self.path]
        entries = [entry for entry in list_folder(self.path) if not entry.name.startswith(".")]
        archives = [Path(entry.path) for entry in entries if _is_archive(entry)]
        if not archives:
            archives = [
                Path(inner.path)
                for entry in entries
                if leads_to_folder(entry)
                for inner in list_folder(entry.path)
                if _is_archive(inner) and not inner.name.startswith(".")
            ]
        if not archives:
            found_names = tally([entry.path for entry in entries])
            raise SourceError(f"no .tar archives in {self.path}; found {found_names}")
        return archives


def _is_archive(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(_SUFFIXES) and not is_special(entry)


def _class_number(data: bytes) -> int:
    text = data.strip()
    if not re.fullmatch(rb"-?\d{1,18}", text):
        raise ValueError(f"expected the number of a class, found {text[:40]!r}")
    return int(text)


def _is_npy(extension: str) -> bool:
    return extension.rpartition(".")[2] == "npy"


def _split_of(archive: str) -> str | None:
    """The split that the path of an archive speaks of, if any."""
    folder, _, name = archive.rpartition("/")
    stem = _DIGITS_BEHIND.sub("", name.partition(".")[0])
    for candidate in (folder, stem):
        if is_split_name(candidate):
            return candidate
    return None


def _expanded(pattern: str) -> list[Path]:
    """The paths of a pattern with numbers in braces; the numbers have as many digits as there."""
    pieces = _BRACES.split(pattern)
    choices: list[list[str]] = []
    count = 1
    for first, last in zip(pieces[1::3], pieces[2::3], strict=True):
        low, high = int(first), int(last)
        count *= max(0, high - low + 1)
        if not 0 < count <= _MOST_ARCHIVES:
            raise OptionError(
                f"{pattern} means {count:,} archives; expected numbers that go up, of at most "
                f"{_MOST_ARCHIVES:,} archives"
            )
        choices.append([f"{number:0{len(first)}d}" for number in range(low, high + 1)])
    fixed = pieces[::3]
    return [
        Path("".join(part for pair in zip(fixed, (*chosen, ""), strict=True) for part in pair))
        for chosen in product(*choices)
    ]
