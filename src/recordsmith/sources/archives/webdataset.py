"""WebDataset: tar archives whose members form samples by name.

`0001.jpg`, `0001.cls` and `0001.json` are one sample: its key is the path up to the first dot of
the last part, the rest is the extension. Members of a sample need not be adjacent. Archive headers
are listed once, and members are read with their sample.
"""

from __future__ import annotations

import glob
import io
import json
import re
import tarfile
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recordsmith.dataset import is_split_name, json_fault
from recordsmith.format.example import Kind
from recordsmith.format.example.keys import CLASS_LABEL, FILENAME, FORMAT, IMAGE, MASK, MASK_FORMAT
from recordsmith.format.wire import HEAD_BYTES, detect_other_format
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.sources.archives.stored_array import npy_features
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_tree import PathSource
from recordsmith.sources.files.files_reader import FilesReader, below_common_folder, versions_of
from recordsmith.sources.files.images import image_features
from recordsmith.sources.files.paths import common_version, is_folder, last_name, with_slashes
from recordsmith.sources.files.text_file import inflated, is_gzip
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice, join_names, raise_problems, summarize_paths
from recordsmith.sources.samples import Note, Sample, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.sources.tables.json_rows import (
    KeyKinds,
    as_json_text,
    as_text,
    flat_column,
    restore_base64,
)
from recordsmith.sources.tables.precision import LOST_DIGITS, PrecisionLoss
from recordsmith.stores import FolderEntry, Location, ObjectReader, PlaceLike, ScratchFile
from recordsmith.support.errors import DataError, OptionError, SourceError, accessing, located
from recordsmith.support.problems import Problems
from recordsmith.support.words import count

EMPTY_KINDS = "recordsmith/empty"
"""A key in exported JSON with the kinds of empty lists of numbers, which do not show it."""

MEMBER = "member"
"""The key of an object in exported JSON that stands for the bytes of another member."""

MAX_EXTENSIONS = 10_000
_EMPTY_VALUES: dict[Kind, Any] = {"int64": 0, "float": 0.0}
_SUFFIXES = (".tar", ".tar.gz", ".tgz")
_MASKS = ("seg", "mask")
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_DIGITS_BEHIND = re.compile(r"[-_.]?\d*$")
_MAX_ARCHIVES = 1_000_000
_CLASH = "features occur in two members of a sample; the first was used"
_SECOND_IMAGE = "samples have a second image, which was stored under its extension"
_BLOCK_BYTES = 512
_SEARCHED_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 16
_EXPECTED_FORMATS = ("a tar archive", "a gzip of something else")


class WebDataset(PathSource):
    """The samples of tar archives in WebDataset format.

    The extension of a member, in lower case, decides which features it becomes:

    - an image (`jpg`, `png`, `webp`, …): `image/encoded` and the other image features;
    - `seg.png`, `mask.png`, also in other image formats: `image/segmentation/class/encoded` and
      `/format`;
    - `cls`: `image/class/label`, an integer;
    - `json`: each field of the object becomes a feature; nested values become JSON text, null is
      left out, `{"base64": "..."}` becomes bytes, and `{"member": "x.png"}` those of that
      member of the sample; its `image/filename`, even null, overrides the
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
        super().__init__(path)

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
        walk = _Walk(dict(zip(names, paths, strict=True)), files)
        samples = collect(walk)
        if not len(samples):
            raise SourceError(
                f"no samples in {join_names(map(str, paths))}: found "
                f"{summarize_paths(walk.skipped)}; expected members such as 0001.jpg and 0001.cls",
                path=self.path,
            )
        walk.check_folders()
        notices = walk.notices(len(samples))
        json_kinds, text_keys = walk.json_kinds.finish(notices)
        has_splits = samples.splits is not None and samples.splits[1].min() >= 0
        splits = sort_splits(samples.splits[0]) if samples.splits and has_splits else ()
        if len(splits) < 2:
            samples.splits = None
        reader = TarReader(
            root,
            files,
            tuple(json_kinds.items()),
            tuple(sorted(text_keys)),
            tuple(filter(_is_npy, walk.extensions)),
        )
        listing = Listing(
            samples,
            reader.having(walk.archives),
            notices=tuple(notices),
            splits=splits if len(splits) > 1 else (),
            only_split=only_split(splits, self.root),
        )
        return listing.with_account(self._files_account(Role.RECORDS, paths))

    def describe(self) -> Mapping[str, Any]:
        if self.root:
            return {"kind": "WebDataset", "folder": last_name(self.path)}
        return {"kind": "WebDataset", "files": self.path.name}

    def _find_archives(self) -> Sequence[Location]:
        path, text = self.path, str(self.path)
        is_pattern = _BRACES.search(text) or glob.has_magic(text)
        if is_pattern and not path.exists() and not path.is_folder():
            matches = (
                [Location(path.store, key) for key in _expanded(path.key, text)]
                if _BRACES.search(text)
                else path.glob()
            )
            if not matches:
                raise SourceError("no file matches this pattern", path=text)
            return matches
        if not is_folder(path):
            return [path]
        entries = _visible_entries(path)
        folders = [path / entry.name for entry in entries if entry.kind == "folder"]
        archives = _archives(path) or [a for folder in folders for a in _archives(folder)]
        if self._tree is not None:
            archives = [path for path in archives if not self._tree.leaves_out(path)]
        if not archives:
            names = summarize_paths([str(path / entry.name) for entry in entries])
            raise SourceError(f"no .tar archives; found {names}", path=path)
        return archives


class _Walk:
    """Iterates the samples of some archives, once, and collects what their members show."""

    def __init__(self, paths: Mapping[str, Location], files: Iterable[tuple[str, int]]) -> None:
        self._paths = paths
        self._version = common_version(version for _, version in files)
        self.archives: dict[str, TarFile] = {}
        self.extensions: Counter[str] = Counter()
        self.json_kinds = KeyKinds({})
        self._folders: set[str] = set()
        self.skipped: list[str] = []
        self._replaced_count = 0

    def __iter__(self) -> Iterator[Sample]:
        for name, path in self._paths.items():
            archive = self.archives[name] = TarFile(path)
            split = _archive_split(name)
            safe_names = SafeNames()
            for key, members in self._members_by_key(archive).items():
                referenced: set[str] = set()
                if "json" in members:
                    data, place = archive.read(*members["json"]), f"{path}: {key}.json"
                    referenced = self._survey_json(data, place, members)
                self.extensions.update(name for name in members if name not in referenced)
                if len(self.extensions) > MAX_EXTENSIONS:
                    raise SourceError(
                        f"more than {MAX_EXTENSIONS:,} extensions, such as {next(iter(members))!r};"
                        " expected member names of the form <key of the sample>.<extension>",
                        path=path,
                    )
                self._folders.add(key.rpartition("/")[0])
                yield Sample(
                    f"{name}/{safe_names.take(key)}",
                    sum(size for _, size in members.values()),
                    split=split,
                    version=self._version,
                    reference={
                        "file": name,
                        "key": key,
                        "members": [[extension, *place] for extension, place in members.items()],
                    },
                )

    def _update_kinds(self, row: Mapping[str, Any], place: str) -> None:
        for key, value in row.items():
            self.json_kinds.update(key, (value,), lambda _: place)

    def notices(self, sample_count: int) -> list[str]:
        """Notices on skipped and repeated members, and on extensions that some samples lack."""
        notices = count_notice(self.skipped, "member", "outside samples skipped")
        if self._replaced_count:
            notices.append(
                f"{count(self._replaced_count, 'repeated member')} replaced by the last of the name"
            )
        lacking = [
            f"{sample_count - number:,} without .{extension}"
            for extension, number in self.extensions.items()
            if number < sample_count
        ]
        if lacking:
            notices.append(f"{count(sample_count, 'sample')}, {join_names(lacking)}")
        return notices

    def check_folders(self) -> None:
        """Check that archives are not class folders, which no member of a sample names."""
        are_images = all(f".{extension}" in IMAGE_SUFFIXES for extension in self.extensions)
        if are_images and len(self._folders) > 1:
            raise SourceError(
                f"the archives contain images in folders ({join_names(sorted(self._folders))}), "
                "not samples of the WebDataset format, so their classes would be lost",
                path=next(iter(self.archives.values())).path,
                remedy="Unpack them and pack the folder.",
            )

    def _members_by_key(self, archive: TarFile) -> dict[str, dict[str, tuple[int, int]]]:
        """The offset and size of each member of an archive by key and extension."""
        samples: dict[str, dict[str, tuple[int, int]]] = {}
        for member in archive.members():
            folder, _, last = member.name.rpartition("/")
            base, _, extension = last.partition(".")
            if not base or not extension:
                self.skipped.append(f"{archive.path}: {member.name}")
                continue
            members = samples.setdefault(f"{folder}/{base}" if folder else base, {})
            self._replaced_count += extension.lower() in members
            members[extension.lower()] = (member.offset_data, member.size)
        self.skipped += [f"{archive.path}: {name}" for name in archive.skipped]
        return samples

    def _survey_json(self, data: bytes, place: str, members: Collection[str]) -> set[str]:
        """Note the kinds of its values; return the other members that it refers to."""
        try:
            parsed = _parse_json(data)
        except (ValueError, RecursionError):
            return set()  # reading the sample raises it
        referenced: set[str] = set()
        if isinstance(parsed, dict):

            def find(name: str) -> bytes | None:
                if name not in members:
                    return None
                referenced.add(name)
                return b""

            _restore_members(parsed, find)
            empty = _pop_empty_kinds(parsed)
            self._update_kinds(parsed, place)
            values = {key: _EMPTY_VALUES[kind] for key, kind in empty.items()}
            self._update_kinds(values, place)
        return referenced


class SafeNames:
    """Unique names for an archive's samples: relative paths that stay inside."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # name -> the next number to try

    def take(self, key: str) -> str:
        """The name for a key; numbered if another sample has it."""
        parts = [part for part in with_slashes(key).split("/") if part not in ("", ".", "..")]
        name = "/".join(part for part in parts if not re.fullmatch(r"[A-Za-z]:", part)) or "_"
        unique = name = name.replace("\0", "_")
        number = self._next.get(name, 1)
        while unique in self._next:
            number += 1
            unique = f"{name}~{number}"
        self._next[name] = number
        self._next.setdefault(unique, 1)
        return unique


class TarFile:
    """One archive, whose members are read without unpacking, from several threads.

    A gzip-compressed archive is first decompressed into a temporary file.
    """

    def __init__(self, path: Location) -> None:
        self.path = path
        if is_gzip(path):
            self._file: ObjectReader = ScratchFile(inflated(path))
        else:
            self._file = path.open_read()
            weakref.finalize(self, self._file.close)
        self.skipped: list[str] = []

    def members(self) -> Iterator[tarfile.TarInfo]:
        """Yield the regular files in order. Links and other special members are skipped."""
        self._file.seek(0)
        stream = io.BufferedReader(self._file, _BUFFER_BYTES)
        with accessing(str(self.path)):
            try:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    while (member := archive.next()) is not None:
                        archive.members.clear()  # type: ignore[attr-defined]  # keeps memory constant
                        if member.isreg() and not member.issparse():
                            left = self._file.size_bytes - member.offset_data
                            if not 0 <= member.size <= left:  # PAX headers may state any number
                                raise ValueError(f"{member.name!r} has {member.size} bytes")
                            yield member
                        elif not member.isdir():
                            self.skipped.append(member.name)
                    end = archive.offset
            except (tarfile.TarError, ValueError, OverflowError) as error:  # sizes beyond a file's
                raise self._damaged(str(error)) from None
            finally:
                stream.detach()
        self._check_end(end)

    def read(self, offset: int, size: int) -> bytes:
        data = self._file.read_at(offset, offset + size)
        if len(data) < size:
            raise SourceError(
                "the file was truncated since it was listed: it ends at byte "
                f"{offset + len(data)}, expected {offset + size} bytes",
                path=self.path,
            )
        return data

    def _check_end(self, end: int) -> None:
        """Check for data after the end, because tarfile takes a damaged header for the end."""
        head = self._file.read_at(end, end + _BLOCK_BYTES)
        if any(head):
            raise self._damaged(f"no member header at byte {end}")
        if any(self._file.read_at(end, end + _SEARCHED_BYTES)):
            self.skipped.append("data after the end of the archive")

    def _damaged(self, reason: str) -> SourceError:
        problem, remedy = f"not a tar archive, or damaged: {reason}", "Fetch the file again."
        foreign = detect_other_format(self.path.read(0, HEAD_BYTES))
        if foreign is not None and foreign.name not in _EXPECTED_FORMATS:
            problem, remedy = f"this is {foreign.name}, not a tar archive", foreign.advice
        return SourceError(problem, path=self.path, remedy=remedy)


@dataclass(frozen=True)
class TarReader(FilesReader[TarFile]):
    """Reads samples by the offsets of their members. Elsewhere, a compressed archive is
    decompressed once.

    Some fields of JSON members become JSON text; `arrays` has the extensions of `.npy` members.
    """

    json_kinds: tuple[tuple[str, Kind], ...] = ()
    json_as_text: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        archive, reference = self.opened(sample)
        features: dict[str, Any] = {}
        problems = Problems()
        named: dict[str, Any] = {}  # its former image/filename; None if it had none
        key = sample.name.removeprefix(f"{reference['file']}/")
        places = {extension: place for extension, *place in reference["members"]}
        referenced: set[str] = set()

        def find_member(extension: str) -> bytes | None:
            if extension not in places:
                return None
            referenced.add(extension)
            return archive.read(*places[extension])

        for extension, offset, size in reference["members"]:
            place = f"{archive.path}: {reference['key']}.{extension}"
            try:
                with located(place):
                    data = archive.read(offset, size)
                    values = self._features(
                        extension, data, key, features, note, place, find_member
                    )
            except DataError:
                raise
            except SourceError as error:
                problems.extend(error.problems, error.problem_count)
                continue
            except ValueError as error:
                problems.add(f"{place}: {error}")
                continue
            for name, value in values.items():
                if name == FILENAME and extension == "json":
                    named[name] = value
                elif name in features:
                    note(_CLASH, f"{place}: {name}")
                else:
                    features[name] = value
        raise_problems(problems)
        for name in referenced:
            features.pop(name, None)
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

    def _json_features(
        self, row: Mapping[str, Any], loss: PrecisionLoss, place: str
    ) -> dict[str, Any]:
        kinds, text_keys = self._json_as
        features: dict[str, Any] = {}
        problems = Problems()
        for key, value in row.items():
            if value is None or value == []:
                features |= {} if value is None else {key: []}
                continue
            try:
                if key in text_keys:
                    features[key] = as_text(value)
                    continue
                kind = kinds.get(key, "bytes")
                items = value if isinstance(value, list) else [value]
                column = flat_column(items, kind)
                wrong = None
                if kind == "float":
                    has_integers = any(isinstance(item, int) for item in items)
                    wrong = loss.check(key, column, may_be_integers=has_integers)
                if wrong is not None:
                    large = column[wrong.argmax()]
                    raise ValueError(f"{large:.17g} does not fit a 32-bit float")
                values = list(column) if kind == "bytes" else column
                features[key] = values if isinstance(value, list) else values[0]
            except (TypeError, ValueError, OverflowError) as error:
                problems.add(f"{place}: {key!r} is {value!r:.60}; {error}")
        raise_problems(problems)
        return features

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
        find_member: Callable[[str], bytes | None],
    ) -> dict[str, Any]:
        """The features of one member; `find_member` returns the bytes of another one."""
        if f".{extension}" in IMAGE_SUFFIXES:
            if IMAGE in known:
                note(_SECOND_IMAGE, place)
                return {extension: data}
            return image_features(data, f"{key}.{extension}")
        stem, _, suffix = extension.partition(".")
        if stem in _MASKS and f".{suffix}" in IMAGE_SUFFIXES and MASK not in known:
            return {MASK: data, MASK_FORMAT: image_features(data, key)[FORMAT]}
        if extension == "cls":
            return {CLASS_LABEL: _class_number(data)}
        if extension == "json":
            parsed = _parse_json(data)
            if not isinstance(parsed, dict):
                return {"json": as_json_text(parsed)}
            _pop_empty_kinds(parsed)
            _restore_members(parsed, find_member)
            loss = PrecisionLoss()
            values = self._json_features(parsed, loss, place)
            for column in loss.columns():
                note(LOST_DIGITS, f"{place}: {column}")
            return values | {FILENAME: None} if parsed.get(FILENAME, ...) is None else values
        if _is_npy(extension):
            return npy_features(data, extension)
        return {extension: data}


def _visible_entries(folder: Location) -> list[FolderEntry]:
    return [entry for entry in folder.list_entries() if not entry.name.startswith(".")]


def _archives(folder: Location) -> list[Location]:
    return [
        folder / entry.name
        for entry in _visible_entries(folder)
        if entry.name.endswith(_SUFFIXES) and entry.kind != "special"
    ]


def _class_number(data: bytes) -> int:
    text = data.strip()
    if not re.fullmatch(rb"-?\d{1,19}", text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"expected a class number, found {text[:40]!r}")
    return int(text)


def _is_npy(extension: str) -> bool:
    return extension.rpartition(".")[2] == "npy"


def _parse_json(data: bytes) -> Any:
    """Parse a JSON member, with bytes for each {"base64": ...} among the values of its object."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {json_fault(error)}") from None
    if b"base64" in data and isinstance(parsed, dict):
        restore_base64(parsed)
    return parsed


def _restore_members(row: dict[str, Any], find: Callable[[str], bytes | None]) -> None:
    """Replace each {"member": name} among the values, or in a list of such, by the bytes of it.

    Names that `find` does not know stay as they are.
    """

    def restored(value: Any) -> Any:
        if not (isinstance(value, dict) and value.keys() == {MEMBER}):
            return value
        data = find(value[MEMBER]) if isinstance(value[MEMBER], str) else None
        return value if data is None else data

    for key, value in row.items():
        row[key] = list(map(restored, value)) if isinstance(value, list) else restored(value)


def _pop_empty_kinds(row: dict[str, Any]) -> dict[str, Kind]:
    """Remove and return the kinds of empty lists, if an object has them."""
    kinds = row.get(EMPTY_KINDS)
    if not isinstance(kinds, dict) or not set(kinds.values()) <= _EMPTY_VALUES.keys():
        return {}
    return row.pop(EMPTY_KINDS)  # type: ignore[no-any-return]


def _archive_split(archive: str) -> str | None:
    folder, _, name = archive.rpartition("/")
    stem = _DIGITS_BEHIND.sub("", name.partition(".")[0])
    return next(filter(is_split_name, (folder, stem)), None)


def _expanded(pattern: str, given: str, count: int = 1) -> list[str]:
    """Expand a pattern with numbers in braces; the numbers keep the width of the first."""
    match = _BRACES.search(pattern)
    if match is None:
        return [pattern]
    low, high = map(int, match.groups())
    count *= max(0, high - low + 1)
    if not 0 < count <= _MAX_ARCHIVES:
        raise OptionError(
            f"{given} matches {count:,} archives",
            option="path",
            value=given,
            expected=f"ascending numbers and at most {_MAX_ARCHIVES:,} archives",
        )
    head, width = pattern[: match.start()], len(match[1])
    tails = _expanded(pattern[match.end() :], given, count)
    return [f"{head}{n:0{width}d}{tail}" for n in range(low, high + 1) for tail in tails]
