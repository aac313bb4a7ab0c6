"""Every exception that recordsmith raises, and the closed set of defect names.

    RecordsmithError
    ├── OptionError(ValueError)          the caller's: an argument or an option is wrong
    ├── SourceError(ValueError)          the source's: pictures or annotations that cannot be packed
    ├── CorruptDataError(ValueError)     the data's: a defect, with path, position and offset
    ├── FileAccessError(OSError)         the environment's: unreadable, full, in use
    │   ├── MissingFileError(FileNotFoundError)
    │   └── ForbiddenFileError(PermissionError)
    ├── MissingExtraError(ImportError)   the environment's: an optional package is not installed
    └── FunctionError(RuntimeError)      the caller's: a function that was given raised, or misled

A message says where, what was found, what was expected and what to do. Exceptions of other
libraries are translated where they enter; they never cross a public function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path


class Defect(str, Enum):
    """One thing wrong with a file. The names are stable: programs may compare them."""

    # framing
    TRUNCATED_HEADER = "truncated-header"
    TRUNCATED_PAYLOAD = "truncated-payload"
    LENGTH_CRC = "length-crc-mismatch"
    PAYLOAD_CRC = "payload-crc-mismatch"
    NOT_A_TFRECORD = "not-a-tfrecord"
    EMPTY_FILE = "empty-file"
    # compression
    BROKEN_COMPRESSION = "broken-compression"
    TRUNCATED_COMPRESSION = "truncated-compression"
    DECOMPRESSION_LIMIT = "decompression-limit"
    # payloads
    MALFORMED_EXAMPLE = "malformed-example"
    NOT_AN_EXAMPLE = "not-an-example"
    MALFORMED_MESSAGE = "malformed-message"
    MISSING_FEATURE = "missing-feature"
    FEATURE_KIND = "feature-kind-mismatch"
    FEATURE_SHAPE = "feature-shape-mismatch"
    FEATURE_VALUE = "feature-value-mismatch"
    UNEXPECTED_FEATURE = "unexpected-feature"
    # pictures
    UNREADABLE_IMAGE = "unreadable-image"
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
    BROKEN_MANIFEST = "broken-manifest"
    # what is told of a file that is not condemned
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


class RecordsmithError(Exception):
    """The root of every exception that recordsmith raises on purpose."""


class OptionError(RecordsmithError, ValueError):
    """An argument or option is wrong, or contradicts another. The caller can mend it."""


class SourceError(RecordsmithError, ValueError):
    """The source cannot be packed as it is; `problems` lists every reason, not only the first."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        """`problems` is left out where the message is the only one."""
        super().__init__(message)
        self.problems = tuple(problems) or (message,)


class CorruptDataError(RecordsmithError, ValueError):
    """The bytes are not what the format demands.

    Attributes:
        defect: which defect, from the closed set.
        path: the file, or None where only a stream or a buffer is known.
        position: the record's place in that file, counted from 0; None when no record is meant.
        offset: where that record's frame begins, in bytes from the start of the file (of the
            decompressed data, if the file is compressed); None when no place is meant.
        feature: which feature is meant, if it is known and is one.
        detail: what was found, what was expected, what to do.
    """

    def __init__(
        self,
        defect: Defect,
        detail: str,
        *,
        path: str | Path | None = None,
        position: int | None = None,
        offset: int | None = None,
        feature: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.defect = defect
        self.detail = detail
        self.path = None if path is None else str(path)
        self.position = position
        self.offset = offset
        self.feature = feature

    def __reduce__(self) -> tuple[object, ...]:
        place = self.path, self.position, self.offset, self.feature
        return (_rebuild, (self.defect, self.detail, *place))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"  # in a list, too, it says where

    def __str__(self) -> str:
        place = [] if self.path is None else [self.path]
        if self.position is not None:
            place.append(f"record {self.position}")
        if self.offset is not None:
            place.append(f"byte {self.offset}")
        where = [", ".join(place)] if place else []
        return ": ".join([*where, str(self.defect), self.detail])


def _rebuild(
    defect: Defect,
    detail: str,
    path: str | None,
    position: int | None,
    offset: int | None,
    feature: str | None,
) -> CorruptDataError:
    return CorruptDataError(
        defect, detail, path=path, position=position, offset=offset, feature=feature
    )


class FileAccessError(RecordsmithError, OSError):
    """The operating system refused: no such file, no permission, no space."""

    def __str__(self) -> str:
        if self.strerror is None:  # made again of its text, as torch does with a worker's error
            return super().__str__()
        return str(self.strerror)


class MissingFileError(FileAccessError, FileNotFoundError):
    """There is no such file or folder."""


class ForbiddenFileError(FileAccessError, PermissionError):
    """The operating system does not allow it."""


class MissingExtraError(RecordsmithError, ImportError):
    """An optional package is not installed; the message holds the pip line."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(
            f"this needs {package}, which is not installed: pip install 'recordsmith[{extra}]'"
        )
        self.extra = extra
        self.package = package

    def __reduce__(self) -> tuple[object, ...]:
        return (MissingExtraError, (self.extra, self.package))


class FunctionError(RecordsmithError, RuntimeError):
    """A function that the caller gave, such as a map, raised; `__cause__` is what it raised. Or it
    answered what cannot be used.

    Attributes:
        path, position, offset: of the record that it was called with, as in CorruptDataError; None
            where it was called with many.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        position: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.position = position
        self.offset = offset


_MOST_NAMES = 30
_MOST_COMPARED = 10_000
_LONGEST_NAME = 80


def names_like(name: str, known: Iterable[str], none: str) -> str:
    """Which of the known names may be meant by another, for the end of a message; `none` if there
    are no names.
    """
    import difflib

    known = list(known)
    # names come from files: they may be many, long, and hold line breaks
    likely = [one for one in known if len(one) <= 2 * len(str(name)) + _MOST_NAMES]
    close = difflib.get_close_matches(str(name), likely[:_MOST_COMPARED], 1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not known:
        return none
    shown = [
        one
        if one and one.isprintable() and len(one) <= _LONGEST_NAME
        else f"{one!r:.{_LONGEST_NAME}}"
        for one in known[:_MOST_NAMES]
    ]
    more = f" and {len(known) - _MOST_NAMES:,} more" if len(known) > _MOST_NAMES else ""
    return f"there are {', '.join(shown)}{more}"


@contextmanager
def located(path: str | Path, first_position: int = 0, first_offset: int = 0) -> Iterator[None]:
    """Add the path, and where counting began, to any CorruptDataError that passes.

    An error that has its path already passes unchanged: what is nearest to the data knows best.
    """
    try:
        yield
    except CorruptDataError as error:
        if error.path is None:
            error.path = str(path)
            if error.position is not None:
                error.position += first_position
            if error.offset is not None:
                error.offset += first_offset
        raise
