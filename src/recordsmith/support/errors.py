"""Every exception that recordsmith raises, and the closed set of defect names.

    RecordsmithError
    ├── OptionError(ValueError)          the caller: an argument or option is invalid
    ├── SourceError(ValueError)          the source: images or annotations that cannot be packed
    ├── DataError(ValueError)            the data: with path, record and offset
    │   ├── CorruptDataError(DataError)  damage: a defect
    │   └── NotAnExampleError(DataError) intact records of another type than was asked for
    ├── FileAccessError(OSError)         the environment: unreadable, full, in use
    │   ├── MissingFileError(FileNotFoundError)
    │   └── ForbiddenFileError(PermissionError)
    ├── MissingExtraError(ImportError)   the environment: an optional package is not installed
    └── FunctionError(RuntimeError)      the caller: a function raised or returned a bad value

Programs read the fields; each class makes its message from them, and no code branches on messages.
Exceptions of other libraries are converted where they enter and never leave a public function.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from recordsmith.support.problems import Problems
from recordsmith.support.words import printable

if TYPE_CHECKING:
    from recordsmith.support.reports import SourceLocation


class Defect(StrEnum):
    """One thing wrong with a file. The names are stable: programs may compare them.

    Example:
        >>> Defect("payload-crc-mismatch").name
        'PAYLOAD_CRC'
    """

    # framing
    TRUNCATED_HEADER = "truncated-header"
    TRUNCATED_PAYLOAD = "truncated-payload"
    LENGTH_CRC = "length-crc-mismatch"
    PAYLOAD_CRC = "payload-crc-mismatch"
    NOT_A_TFRECORD = "not-a-tfrecord"
    # compression
    BROKEN_COMPRESSION = "broken-compression"
    TRUNCATED_COMPRESSION = "truncated-compression"
    DECOMPRESSION_LIMIT = "decompression-limit"
    # payloads
    MALFORMED_EXAMPLE = "malformed-example"
    NOT_AN_EXAMPLE = "not-an-example"
    MISSING_FEATURE = "missing-feature"
    FEATURE_KIND = "feature-kind-mismatch"
    FEATURE_SHAPE = "feature-shape-mismatch"
    FEATURE_VALUE = "feature-value-mismatch"
    UNEXPECTED_FEATURE = "unexpected-feature"
    EMPTY_EPISODE = "empty-episode"
    EPISODE_FLAGS = "episode-flags-mismatch"
    # images
    UNREADABLE_IMAGE = "unreadable-image"
    DAMAGED_IMAGE = "damaged-image"
    IMAGE_SIZE = "image-size-mismatch"
    IMAGE_FORMAT = "image-format-mismatch"
    # datasets
    UNFINISHED_DATASET = "unfinished-dataset"
    MISSING_SHARD = "missing-shard"
    UNREADABLE_SHARD = "unreadable-shard"
    SHARD_SIZE = "shard-size-mismatch"
    SHARD_CHECKSUM = "shard-checksum-mismatch"
    RECORD_COUNT = "record-count-mismatch"
    SWAPPED_SHARD = "swapped-shard"
    EXTRA_SHARD = "extra-shard"
    LABELS = "labels-mismatch"
    COLUMNS = "columns-mismatch"
    BROKEN_MANIFEST = "broken-manifest"
    # notices: nothing is wrong with the file
    EMPTY_FILE = "empty-file"
    TRANSIENT_READ = "transient-read"
    CHANGING_SHARD = "changing-shard"

    def __str__(self) -> str:
        return self.value


DAMAGED_RECORDS = frozenset(
    {
        Defect.TRUNCATED_HEADER,
        Defect.TRUNCATED_PAYLOAD,
        Defect.LENGTH_CRC,
        Defect.PAYLOAD_CRC,
        Defect.BROKEN_COMPRESSION,
    }
)
"""Records are lost to these, and others of the file may be intact: `salvage` rescues them."""

_SHOWN = frozenset(  # `head` prints the records; with a wrong checksum, only the viewer shows them
    {
        Defect.PAYLOAD_CRC,
        Defect.MALFORMED_EXAMPLE,
        Defect.NOT_AN_EXAMPLE,
        Defect.MISSING_FEATURE,
        Defect.FEATURE_KIND,
        Defect.FEATURE_SHAPE,
        Defect.FEATURE_VALUE,
        Defect.UNEXPECTED_FEATURE,
        Defect.EMPTY_EPISODE,
        Defect.EPISODE_FLAGS,
        Defect.UNREADABLE_IMAGE,
        Defect.DAMAGED_IMAGE,
        Defect.IMAGE_SIZE,
        Defect.IMAGE_FORMAT,
    }
)


_OPTION = re.compile("\ue000(\\w+)(?:=([^\ue001]*))?\ue001")
_LONGEST_VALUE = 80
_NOT_GIVEN: Any = object()

OptionName: TypeAlias = Callable[[str, str | None], str]
"""What an option is called: from its name in Python, and a value as a Python literal or None."""


def option(name: str, value: object = None) -> str:
    """How a message mentions an option, so that each interface shows its own name for it.

    Example:
        >>> str(OptionError(f"pass {option('overwrite', True)}"))
        'pass overwrite=True'
    """
    return f"\ue000{name}\ue001" if value is None else f"\ue000{name}={value!r}\ue001"


def option_in_python(name: str, value: str | None) -> str:
    """`overwrite=True`, or `overwrite`."""
    return name if value is None else f"{name}={value}"


_name_option: OptionName = option_in_python


@contextmanager
def naming_options(name_option: OptionName) -> Iterator[None]:
    """Use the names that an interface has for options in all messages of this process."""
    global _name_option  # noqa: PLW0603
    before, _name_option = _name_option, name_option
    try:
        yield
    finally:
        _name_option = before


def with_options(text: str) -> str:
    """Text with the names of the options that it mentions; see `naming_options`."""
    return _OPTION.sub(lambda match: _name_option(match[1], match[2]), text)


class RecordsmithError(Exception):
    """The base class of every exception that recordsmith raises on purpose.

    Each class makes its message from its fields. Names of files and text from outside may contain
    line breaks and other control characters: the message escapes them, so that no name can pass
    for another line.

    Attributes:
        problem: what is wrong, as a clause.
        remedy: what to do about it, as one or more sentences; empty if that is obvious.

    Example:
        try:
            rs.pack("no such folder", "new")
        except rs.RecordsmithError as error:
            print(error)
    """

    def __init__(self, problem: str = "", *, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the message, before control characters are escaped."""
        return tuple(map(with_options, self._lines()))

    @property
    def unnamed(self) -> str:
        """The lines in one, for another process, whose interface names the options."""
        return "; ".join(self._lines())

    def __str__(self) -> str:
        if self.problem.startswith(f"Caught {type(self).__name__} in "):
            return self.problem  # PyTorch made it from the traceback of a worker's error
        return "\n".join(map(printable, self.lines))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def advise(self, remedy: str) -> None:
        """Add a sentence about what to do."""
        self.remedy = f"{self.remedy} {remedy}".lstrip()

    def to_json(self) -> dict[str, Any]:
        """The class, the message and the fields that are set, as a JSON-able dict."""

        def named(value: Any) -> Any:
            if isinstance(value, tuple):
                return [*map(named, value)]
            if not isinstance(value, str) or isinstance(value, Defect):
                return value
            return with_options(value)

        fields = {
            name: named(value)
            for name, value in vars(self).items()
            if not name.startswith("_") and value not in (None, "", ())
        }
        message = "\n".join(map(printable, self.lines))
        return {"error": type(self).__name__, "message": message, **fields}

    def _lines(self) -> tuple[str, ...]:
        return (_sentences(self._clause(), self.remedy),)

    def _clause(self) -> str:
        return self.problem


def _sentences(clause: str, remedy: str) -> str:
    if not remedy:
        return clause
    return f"{clause}{'' if clause.endswith(('.', '?', '!')) else '.'} {remedy}"


def _joined(*parts: object) -> str:
    """Parts of a clause with colons between them; empty ones are left out."""
    return ": ".join(str(part) for part in parts if part not in (None, ""))


def _place(path: str | None, **numbers: int | None) -> str:
    """Where something is: `a.csv, line 3`; empty if unknown."""
    named = (f"{name} {number}" for name, number in numbers.items() if number is not None)
    return ", ".join([*filter(None, [path]), *named])


def shown_value(value: object) -> str:
    """Return a value as a message shows it: its `repr`, shortened; its type if that has lines."""
    text = repr(value)
    if isinstance(value, str) or "\n" not in text:
        return text[:_LONGEST_VALUE]
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


class OptionError(RecordsmithError, ValueError):
    """An argument or option is invalid, or conflicts with another one.

    Attributes:
        option: its name in Python; None if the error is not about a single one.
        value: what was passed, as `repr` shows it, shortened; None if there is no value to show.
        expected: what is allowed, such as `a positive integer`.
        problem: what is wrong, where that is not simply the value.
        excerpt: lines to show below the message, such as the text with a mark under the fault.

    Example:
        >>> str(OptionError(option="batch_size", value=0, expected="a positive integer"))
        'batch_size must be a positive integer, got 0'
    """

    def __init__(
        self,
        problem: str = "",
        *,
        option: str | None = None,
        value: object = _NOT_GIVEN,
        expected: str = "",
        remedy: str = "",
        excerpt: Iterable[str] = (),
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.option = option
        self.excerpt = tuple(excerpt)
        self.value = None if value is _NOT_GIVEN else shown_value(value)
        self.expected = expected

    def _clause(self) -> str:
        if not self.expected:
            return self.problem
        if self.problem:
            return f"{self.problem}; expected {self.expected}"
        got = "" if self.value is None else f", got {self.value}"
        return f"{option(self.option or 'it')} must be {self.expected}{got}"

    def _lines(self) -> tuple[str, ...]:
        return (*super()._lines(), *self.excerpt)


class SourceError(RecordsmithError, ValueError):
    """The source cannot be packed as it is, or records cannot be exported.

    Attributes:
        path: the file or folder at fault, or None.
        line: its line, counted from 1, or None.
        sample: the name of the sample at fault, or None.
        problems: the first problems, at most 100, if there may be several; equal ones of several
            records are one line.
        problem_count: how many there are in all.
        records: the positions of the records at fault in the dataset, where they are known.

    Example:
        try:
            rs.pack(rs.Voc("flowers"), "new")
        except rs.SourceError as error:
            print(error.path, error.problems)
    """

    def __init__(
        self,
        problem: str = "",
        problems: Iterable[str] = (),
        *,
        path: object = None,
        line: int | None = None,
        sample: str | None = None,
        remedy: str = "",
        lists_problems: bool = False,
        records: Iterable[int] = (),
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.path = None if path is None else str(path)
        self.line = line
        self.sample = sample
        listed = problems if isinstance(problems, Problems) else Problems(problems)
        self.problems = tuple(listed) or (self._clause(),)
        self.problem_count = max(1, listed.count)
        self._unlisted_count = listed.unlisted_count()
        self.records = tuple(records)
        self._lists_problems = lists_problems

    def _clause(self) -> str:
        return _joined(_place(self.path, line=self.line), self.sample, self.problem)

    def _lines(self) -> tuple[str, ...]:
        if not self._lists_problems:
            return super()._lines()
        more = self._unlisted_count
        end = (f"  … and {more:,} more",) if more else ()
        return (*super()._lines(), *(f"  {problem}" for problem in self.problems), *end)


class DataError(RecordsmithError, ValueError):
    """A file is damaged (`CorruptDataError`), or has other records (`NotAnExampleError`).

    Attributes:
        defect: which defect, from the closed set; for an intact record of another type
            not-an-example.
        problem: what is wrong, as a clause.
        found, expected: the values that differ, as text, where there are such.
        path: the file, or None where only a stream or a buffer is known.
        record: the record's place in that file, counted from 0; None if no record is meant.
        offset: where that record's frame begins, in bytes from the start of the file (of the
            decompressed data, if the file is compressed); None if no place is meant.
        feature: the key of the feature at fault, or None.

    Example:
        try:
            list(rs.open("damaged.tfrecord"))
        except rs.DataError as error:
            print(f"record {error.record} of {error.path}: {error.problem}")
    """

    def __init__(
        self,
        defect: Defect,
        problem: str,
        *,
        found: str = "",
        expected: str = "",
        remedy: str = "",
        path: object = None,
        record: int | None = None,
        offset: int | None = None,
        feature: str | None = None,
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.args = (defect, problem)  # what pickle makes it from; the other fields follow
        self.defect = defect
        self.found = found
        self.expected = expected
        self.path = None if path is None else str(path)
        self.record = record
        self.offset = offset
        self.feature = feature

    @property
    def detail(self) -> str:
        """The message without the place and the name of the defect."""
        return with_options(_sentences(self._what(), self.remedy))

    @property
    def shown_place(self) -> SourceLocation | None:
        """The place of a record that a command shows; only the viewer shows wrong checksums."""
        if self.path is None or self.record is None or self.defect not in _SHOWN:
            return None
        from recordsmith.support.reports import (  # more than most errors need
            SourceLocation,
            has_viewer,
        )

        if self.defect is Defect.PAYLOAD_CRC and not has_viewer():
            return None
        return SourceLocation(self.path, self.record)

    def advise_to_show(self) -> None:
        """Advise the command that shows the record, if there is one."""
        if (place := self.shown_place) is None:
            return
        from recordsmith.support.reports import show_command

        advice = f"`{show_command([place.path], [place.record])}` shows the record."
        if advice not in self.remedy:
            self.advise(advice)

    def _what(self) -> str:
        if self.found and self.expected:
            return f"{self.problem}: found {self.found}, expected {self.expected}"
        if self.found:
            return f"{self.problem}: found {self.found}"
        return f"{self.problem}; expected {self.expected}" if self.expected else self.problem

    def _clause(self) -> str:
        place = _place(self.path, record=self.record, byte=self.offset)
        return _joined(place, self.defect, self._what())


class CorruptDataError(DataError):
    """The bytes are not what the format demands.

    Example:
        try:
            list(rs.open("damaged.tfrecord"))
        except rs.CorruptDataError as error:
            print(error.path, error.record, error.offset, error.defect)
    """


PAYLOAD_NAMES: dict[str, tuple[str, str]] = {  # singular and plural
    "Example": ("an Example", "Examples"),
    "SequenceExample": ("a SequenceExample", "SequenceExamples"),
    "ELWC": ("a ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("a TensorBoard event", "TensorBoard events"),
    "other": ("another message or plain data", "other messages or plain data"),
    "mixed": ("of several types", "of several types"),
}
_READERS = {
    "SequenceExample": "Load them with Loader, their feature lists with Steps, and windows with "
    "Episodes; or read them one by one, or as a table with to_arrow().",
    "ELWC": "Read them as a table with to_arrow(), or as bytes with records().",
    "Event": "Read this log with TensorBoard, or its records as bytes with records().",
}
_OTHER_READERS = "Read them as bytes with records(), and parse these with the class of the message."


class NotAnExampleError(DataError):
    """Intact records are not what was to be read: events, other messages, plain data, …

    Attributes:
        payload: what they are: SequenceExample, ELWC, Event, other, or mixed where only some are
            Examples.
        expected: what can be read here; empty where a single payload is meant.

    Example:
        >>> import recordsmith as rs
        >>> try:
        ...     rs.decode_example(b"hello")
        ... except rs.NotAnExampleError as error:
        ...     print(error.payload)
        other
    """

    def __init__(self, payload: str, expected: str = "") -> None:
        one, many = PAYLOAD_NAMES[payload]
        super().__init__(
            Defect.NOT_AN_EXAMPLE,
            f"the records are {many}" if expected else f"the payload is {one}, not an Example",
            expected=expected,
            remedy=(
                "Read it with decode_sequence_example."
                if payload == "SequenceExample" and not expected
                else _READERS.get(payload, _OTHER_READERS)
            ),
        )
        self.args = (payload, expected)
        self.payload = payload

    def _clause(self) -> str:
        return _joined(_place(self.path, record=self.record, byte=self.offset), self._what())


class FileAccessError(RecordsmithError, OSError):
    """The operating system refused an operation: no such file, no permission, no space.

    Attributes:
        errno: the number that the operating system gave.
        path: the file or folder.
        operation: what was tried: read, write, make folder, remove, …
        reason: why it failed.

    Example:
        try:
            rs.open("no such folder")
        except rs.FileAccessError as error:
            print(error.operation, error.path, error.reason)
    """

    def __init__(
        self,
        errno: int | str | None = None,
        reason: str = "",
        path: str | None = None,
        *,
        operation: str = "read",
        remedy: str = "",
    ) -> None:
        # PyTorch makes a worker's error again of its message alone
        text = errno if isinstance(errno, str) else ""
        RecordsmithError.__init__(self, text, remedy=remedy)
        self.args = (errno, reason) if path is None else (errno, reason, path)
        self.errno = errno if isinstance(errno, int) else None
        self.strerror = reason
        self.filename = path
        self.path = path
        self.operation = operation
        self.reason = reason

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"errno": self.errno}

    def _clause(self) -> str:
        return self.problem or _joined(f"cannot {self.operation} {self.path}", self.reason)


class MissingFileError(FileAccessError, FileNotFoundError):
    """There is no such file or folder."""


class ForbiddenFileError(FileAccessError, PermissionError):
    """Permission was denied."""


class MissingExtraError(RecordsmithError, ImportError):
    """An optional package is not installed.

    Attributes:
        extra: which extra of recordsmith installs it.
        package: what is missing.

    Example:
        >>> MissingExtraError("images", "cv2").remedy
        "Install it: pip install 'recordsmith[images]'"
    """

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(
            f"this needs {package}, which is not installed",
            remedy=f"Install it: pip install 'recordsmith[{extra}]'",
        )
        self.args = (extra, package)
        self.extra = extra
        self.package = package


@contextmanager
def needs_extra(extra: str, *packages: str) -> Iterator[None]:
    """Raise MissingExtraError if an import in the block fails because one of `packages` is missing.

    By default, the package has the name of the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in (packages or (extra,)):
            raise
        raise MissingExtraError(extra, package) from None


class FunctionError(RecordsmithError, RuntimeError):
    """A function of the caller, such as a map, raised or returned something unusable.

    `__cause__` is what it raised.

    Attributes:
        function: which one: map_examples, map_batches, filter, …; None if unknown.
        path, record, offset: of the record that it was called with, as in CorruptDataError; None
            if it was called with several.

    Example:
        def fail(example):
            raise KeyError("name")

        loader = rs.Loader(dataset, ["image/width"], batch_size=8, map_examples=fail)
        try:
            next(iter(loader))
        except rs.FunctionError as error:
            print(error.function, error.record, error.__cause__)
    """

    def __init__(
        self,
        problem: str = "",
        *,
        function: str | None = None,
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.function = function
        self.path = path
        self.record = record
        self.offset = offset


@contextmanager
def located(path: object, first_record: int = 0, first_offset: int = 0) -> Iterator[None]:
    """Add the path and the first record and offset to every DataError that is raised.

    An error that already has a path stays unchanged.
    """
    try:
        yield
    except DataError as error:
        if error.path is None:
            error.path = str(path)
            if error.record is not None:
                error.record += first_record
            if error.offset is not None:
                error.offset += first_offset
        raise


_REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENOTDIR: "part of the path is a file, not a folder",
    errno.ELOOP: "its symbolic links form a loop",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files on this machine",
    errno.EIO: "the device reported a read or write error",
}
_REMEDIES = {
    errno.ENOSPC: "Free some space, or choose another disk.",
    errno.EDQUOT: "Free some space, or choose another disk.",
    errno.EMFILE: "Raise the limit with `ulimit -n`.",
    errno.ENFILE: "Close some files, or try again later.",
    errno.EIO: "The disk may be failing: copy it first, for example with ddrescue.",
}


@contextmanager
def accessing(path: object, verb: str = "read") -> Iterator[None]:
    """Convert an OSError to a FileAccessError with the path, the operation and the reason."""
    try:
        yield
    except FileAccessError:
        raise
    except OSError as error:
        raise access_error(error, path, verb) from error


def access_error(error: OSError, path: object, verb: str = "read") -> FileAccessError:
    """Return the FileAccessError for an OSError about a path."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    kind = FileAccessError
    if isinstance(error, FileNotFoundError):
        kind = MissingFileError
    elif isinstance(error, PermissionError):
        kind = ForbiddenFileError
    name = str(path)
    remedy = _REMEDIES.get(error.errno or 0, "")
    return kind(error.errno, reason, name, operation=verb, remedy=remedy)
