"""Files of findings: JSON Lines, which reports write and jobs act on.

The first line says what was examined, each other line is a place. Both directions stream, so a file
may have millions of places. What is read is untrusted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from recordsmith.dataset.documents import NOT_AS_EXPECTED, describe_fault, json_fault
from recordsmith.dataset.locating import locate_each
from recordsmith.dataset.record_positions import RecordPositions
from recordsmith.stores import Location, PlaceLike, ScratchFile, as_location, write_document
from recordsmith.support.errors import DataError, OptionError, option, with_options
from recordsmith.support.explaining import check_word, unknown_word

FORMAT, VERSION = "recordsmith-findings", 1
_LONGEST_FOUND = 200
_LONGEST_LINE = 1 << 16
_BUFFER_BYTES = 1 << 20

KEEP_RULES = ("first", "largest", "train", "none")

_ALWAYS = ("group", "name", "split", "position")

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


class FoundPlace(msgspec.Struct, frozen=True):
    """A line: one place of a finding.

    check: the name of the check, defect or difference.
    group: a number that places have in common which belong together; None without others.
    name: of the sample, or file and number of the record; None if it is about a file or all data.
    position: of the record in the whole dataset; None of a source.
    pixels: height times width of the image of a member of a group.
    place: file and line, number of the object or step, where that is known.
    """

    check: str
    severity: Literal["error", "warning", "note"]
    group: _Count | None
    name: str | None
    split: str | None
    position: _Count | None
    found: str
    pixels: _Count | None = None
    place: str | None = None

    @property
    def is_chosen_by_default(self) -> bool:
        return self.severity != "note" and (self.name is not None or self.position is not None)


class FindingsWriter:
    """Writes a file of findings, which appears whole when it is saved.

    positions: of the records of the dataset, if one is examined.
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
        head = FindingsHead(FORMAT, VERSION, command, dataset, source, {**options})
        self._write(msgspec.structs.asdict(head))

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
        """Return what writes about the dataset at some places; None without a path."""
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

    def add(self, check: str, severity: str, found: str, **place: Any) -> None:
        """Add a place; `place`: what is known of the other fields of `FoundPlace`."""
        found = with_options(found)
        if len(found) > _LONGEST_FOUND:
            found = f"{found[: _LONGEST_FOUND - 1]}…"
        line = {"check": str(check), "severity": str(severity), **dict.fromkeys(_ALWAYS)}
        line |= {key: value for key, value in place.items() if value or value == 0}
        self._write({**line, "found": found})

    def add_record(self, check: str, severity: str, path: object, record: int, found: str) -> None:
        """Add a record of a file of the dataset."""
        assert self.positions is not None
        position, split = self.positions.find(path, record)
        name = f"{str(path).rpartition('/')[2]}/{record:07d}"  # as sources of shards name it
        self.add(check, severity, found, name=name, split=split, position=position)

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            data = msgspec.json.encode(line)
        except UnicodeEncodeError:  # a name of a file that is not UTF-8, as in `write_json`
            text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
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
        remedy = f"Run `recordsmith {self.head.command}` again"
        if own is None:
            problem, expected = f"it is not about a {kind}", f"findings of a {kind}"
            remedy = f"Run `recordsmith lint` on the {kind}"
        else:
            problem = f"it is about another {kind}, or about it before it changed: digest {own}"
            expected = f"digest {digest}"
            remedy += " with the same options of the source" if kind == "source" else ""
        raise OptionError(
            f"{self.location}: {problem}",
            option=self._argument,
            value=str(self.location),
            expected=expected,
            remedy=f"{remedy}.",
        )

    def line_error(self, number: int, problem: str, expected: str = "") -> OptionError:
        """Return the error for a line."""
        return OptionError(
            f"{self.location}, line {number:,}: {problem}",
            option=self._argument,
            value=str(self.location),
            expected=expected,
            remedy="Pass a file that `lint`, `stats`, `verify` or `diff` wrote with "
            f"{option('findings')}.",
        )

    def _opened(self) -> io.BufferedReader:
        raw: Any = self.location.open_read()
        return io.BufferedReader(raw, _BUFFER_BYTES)

    def _parse(self, line: bytes, number: int, kind: Any) -> Any:
        if len(line) >= _LONGEST_LINE:
            raise self.line_error(number, "it is too long", f"at most {_LONGEST_LINE:,} bytes")
        try:
            return msgspec.json.decode(line, type=kind)
        except (ValueError, RecursionError):  # or it has a name that is not UTF-8
            pass
        try:
            return msgspec.convert(json.loads(line), kind)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            fault = "it is empty" if not line else f"it is not JSON: {_fault(error)}"
        except NOT_AS_EXPECTED as error:
            fault = f"it is not a place: {describe_fault(error)}"
            if kind is FindingsHead:
                fault = f"it is not the head of a file of findings: {describe_fault(error)}"
        raise self.line_error(number, fault) from None


def _fault(error: Exception) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else json_fault(error)  # type: ignore[arg-type]


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
        if not _is_chosen(place, names):
            continue
        if place.group is not None and keep != "none":
            best = kept[place.group]
            is_across = place.check.endswith("-across-splits")
            if place.split == best.split if is_across else _is_same(place, best):
                continue
        yield number, place


def _is_chosen(place: FoundPlace, names: Sequence[str]) -> bool:
    return place.check in names if names else place.is_chosen_by_default


def _is_same(place: FoundPlace, other: FoundPlace) -> bool:
    return (place.name, place.position) == (other.name, other.position)


def _is_better(place: FoundPlace, best: FoundPlace, keep: str) -> bool:
    """Whether a place stays instead of an earlier one of its group."""
    if keep == "largest":
        return (place.pixels or 0) > (best.pixels or 0)
    return keep == "train" and place.split == "train" != best.split
