"""Files of findings: JSON Lines, which reports write and jobs act on.

The first line describes what was examined, each other line is a place. Both directions stream, so a
file may have millions of places. What is read is untrusted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from recordsmith.dataset.documents import NOT_AS_EXPECTED, describe_fault, json_of
from recordsmith.dataset.locating.paths import locate_each
from recordsmith.dataset.record_positions import RecordPositions
from recordsmith.stores import Location, PlaceLike, ScratchFile, as_location, write_document
from recordsmith.support.errors import DataError, OptionError, option, with_options
from recordsmith.support.explaining import check_word, unknown_word

FORMAT, VERSION = "recordsmith-findings", 1
_LONGEST_FOUND = 200
_LONGEST_LINE = 1 << 16
_BUFFER_BYTES = 1 << 20

KEEP_RULES = ("first", "largest", "train", "none")

_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class FindingsHead(msgspec.Struct, frozen=True):
    """The first line of a file.

    command: what wrote it.
    dataset, source: the digest of what was examined.
    options: those that determine what is found.
    """

    format: str
    version: int
    command: str
    dataset: str | None
    source: str | None
    options: dict[str, Any]


class FoundPlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line: one place of a finding.

    check: the name of the check, defect or difference.
    group: the number of the group of places that belong together.
    name: of the sample, or file and number of the record; None if it is about a file or all data.
    position: of the record in the whole dataset; None in a source.
    pixels: height times width of the image of a member of a group.
    place: file and line, number of the object or step, where that is known.
    """

    check: str
    severity: Literal["error", "warning", "note"]
    group: _Count | None
    name: str | None
    split: str | None
    position: _Count | None
    pixels: _Count | None = None
    place: str | None = None
    found: str


class FindingsWriter:
    """Writes a file of findings, which appears whole when it is saved.

    positions: of the records of the dataset, if one is examined; None of a source.
    """

    def __init__(
        self,
        path: PlaceLike,
        command: str,
        options: Mapping[str, Any],
        *,
        overwrite: bool,
        positions: RecordPositions | None = None,
        source: str | None = None,
    ) -> None:
        """`source`: the digest of the source, if one is examined."""
        self._location = as_location(path)
        self._location.check_target(overwrite=overwrite)
        self._overwrite = overwrite
        self.positions = positions
        self._file, self._lines = ScratchFile(), list[bytes]()
        self._group_count = 0
        dataset = None if positions is None else positions.digest
        self._write(FindingsHead(FORMAT, VERSION, command, dataset, source, {**options}))

    @classmethod
    def of_dataset(
        cls,
        path: PlaceLike | None,
        command: str,
        places: Iterable[Location],
        *,
        overwrite: bool,
        **options: Any,
    ) -> FindingsWriter | None:
        """Return a writer of findings about the dataset at some places; None without a path."""
        if path is None:
            return None
        positions = None
        with suppress(DataError):  # a broken manifest, which is a finding
            positions = RecordPositions(locate_each(places))
        return cls(path, command, options, overwrite=overwrite, positions=positions)

    def save(self) -> None:
        """Write the file atomically; OptionError if it exists and must not be overwritten."""
        self._flush()
        self._file.seek(0)
        pieces = iter(lambda: self._file.read(_BUFFER_BYTES), b"")
        write_document(self._location, pieces, overwrite=self._overwrite)

    def new_group(self) -> int:
        """Return the number of another group of places."""
        self._group_count += 1
        return self._group_count

    def add(self, check: str, severity: Any, found: str, **place: Any) -> None:
        """Add a place; `place`: what is known of the other fields of `FoundPlace`."""
        found = with_options(found)
        if len(found) > _LONGEST_FOUND:
            found = f"{found[: _LONGEST_FOUND - 1]}…"
        known: dict[str, Any] = dict.fromkeys(("group", "name", "split", "position"))
        known |= {key: value for key, value in place.items() if value != ""}
        self._write(FoundPlace(check=str(check), severity=str(severity), found=found, **known))  # type: ignore[arg-type]

    def add_record(self, check: str, severity: str, path: object, record: int, found: str) -> None:
        """Add a record of a file of the dataset."""
        assert self.positions is not None
        position, split = self.positions.find(path, record)
        name = f"{str(path).rpartition('/')[2]}/{record:07d}"  # as sources of shards name it
        self.add(check, severity, found, name=name, split=split, position=position)

    def _write(self, line: msgspec.Struct) -> None:
        try:
            data = msgspec.json.encode(line)
        except UnicodeEncodeError:  # a name of a file that is not UTF-8, as in `write_json`
            fields = msgspec.to_builtins(line)
            text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
            data = text.encode("utf-8", "backslashreplace")
        self._lines.append(data + b"\n")
        if len(self._lines) >= 1 << 12:
            self._flush()

    def _flush(self) -> None:
        self._file.append(b"".join(self._lines))
        self._lines.clear()


class FindingsFile:
    """A file of findings that was written before. Its lines are read when they are needed."""

    def __init__(self, path: PlaceLike, argument: str = "findings") -> None:
        """`argument`: the option that names the file, for errors."""
        name = path.removeprefix("@") if isinstance(path, str) else path
        self.location: Location = as_location(name)
        self._argument = argument
        with self._opened() as file:
            self.head: FindingsHead = self._parse(file.readline(_LONGEST_LINE), 1, FindingsHead)
        if (self.head.format, self.head.version) != (FORMAT, VERSION):
            found = f"it has format {self.head.format!r:.40} and version {self.head.version}"
            raise self.line_error(1, found, f"{FORMAT!r} and {VERSION}")

    def __iter__(self) -> Iterator[FoundPlace]:
        """Yield the places, in the order of the lines."""
        return (place for _, place in self.numbered())

    def numbered(self) -> Iterator[tuple[int, FoundPlace]]:
        """Yield the number of each line, from 2, and its place."""
        with self._opened() as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if number > 1 and not line.isspace():
                    yield number, self._parse(line, number, FoundPlace)

    def check_dataset(self, digest: str) -> None:
        """Raise OptionError if the findings are not about this state of the dataset."""
        self._check("dataset", digest, self.head.dataset)

    def check_source(self, digest: str) -> None:
        """Raise OptionError if the findings are not about this listing of the source."""
        self._check("source", digest, self.head.source)

    def _check(self, kind: str, digest: str, own: str | None) -> None:
        if own == digest:
            return
        problem = f"it is about another {kind}, or about it before it changed: digest {own}"
        expected, remedy = f"digest {digest}", f"Run `recordsmith {self.head.command}` again"
        if own is None:
            problem, expected = f"it is not about a {kind}", f"findings of a {kind}"
            remedy = f"Run `recordsmith lint` on the {kind}"
        elif kind == "source":
            remedy += " with the same options of the source"
        raise self._error(problem, expected, f"{remedy}.")

    def line_error(self, number: int, problem: str, expected: str = "") -> OptionError:
        """Return the error for a line."""
        remedy = f"Pass a file of `lint`, `stats`, `verify` or `diff` with {option('findings')}."
        return self._error(problem, expected, remedy, f", line {number:,}")

    def _error(self, problem: str, expected: str, remedy: str, line: str = "") -> OptionError:
        path = str(self.location)
        return OptionError(
            f"{path}{line}: {problem}",
            option=self._argument,
            value=path,
            expected=expected,
            remedy=remedy,
        )

    def _opened(self) -> io.BufferedReader:
        raw: Any = self.location.open_read()
        return io.BufferedReader(raw, _BUFFER_BYTES)

    def _parse(self, line: bytes, number: int, kind: Any) -> Any:
        if len(line) >= _LONGEST_LINE:
            raise self.line_error(number, "it is too long", f"at most {_LONGEST_LINE:,} bytes")
        with suppress(ValueError, RecursionError):  # or it has a name that is not UTF-8
            return msgspec.json.decode(line, type=kind)
        try:
            return msgspec.convert(json_of(line.strip()), kind)
        except NOT_AS_EXPECTED as error:
            what = "the head of a file of findings" if kind is FindingsHead else "a place"
            raise self.line_error(number, f"not {what}: {describe_fault(error)}") from None


def read_findings(path: PlaceLike, argument: str = "findings") -> FindingsFile:
    """Open a file of findings, whose name may begin with `@`.

    Args:
        argument: the option that names it, for errors.

    Raises:
        OptionError: it is not such a file; later, when lines are read, that one is invalid.
        FileAccessError: it cannot be read.
    """
    return FindingsFile(path, argument)


def chosen(
    findings: FindingsFile, checks: Sequence[str] | str = (), keep: str = "first"
) -> Iterator[tuple[int, FoundPlace]]:
    """Yield the places whose records are to be removed, with the numbers of their lines.

    Reads the file twice; memory grows with the number of groups only.

    Args:
        checks: whose places count; none for all errors and warnings about single records.
        keep: which place of each group stays: the first, the one with the largest image, the first
            one in the split train (without one, the first), or none. A check across splits
            (`…-across-splits`) keeps all places of its group that are in the split of that one.

    Raises:
        OptionError: the file has places, but none of a check; the rule is unknown, or a line is
            invalid.
    """
    names = [checks] if isinstance(checks, str) else [*checks]
    check_word("keep", keep, KEEP_RULES)
    kept: dict[int, FoundPlace] = {}
    known = dict[str, None]()
    for place in findings:
        known[place.check] = None
        if place.group is not None and _is_chosen(place, names):
            best = kept.setdefault(place.group, place)
            if _is_better(place, best, keep):
                kept[place.group] = place
    for name in names:
        if known and name not in known:
            problem = f"{findings.location} has no places of {name!r}"
            raise unknown_word("checks", name, known, problem)
    for number, place in findings.numbered():
        if _is_chosen(place, names) and not (
            place.group is not None and keep != "none" and _stays(place, kept[place.group])
        ):
            yield number, place


def _is_chosen(place: FoundPlace, names: Sequence[str]) -> bool:
    if names:
        return place.check in names
    return place.severity != "note" and (place.name is not None or place.position is not None)


def _is_better(place: FoundPlace, best: FoundPlace, keep: str) -> bool:
    """Whether a place stays instead of an earlier one of its group."""
    if keep == "largest":
        return (place.pixels or 0) > (best.pixels or 0)
    return keep == "train" and place.split == "train" != best.split


def _stays(place: FoundPlace, best: FoundPlace) -> bool:
    if place.check.endswith("-across-splits"):
        return place.split == best.split
    return (place.name, place.position) == (best.name, best.position)
