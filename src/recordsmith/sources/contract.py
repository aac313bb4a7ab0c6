"""What every source offers: a listing made once, and what is in one sample at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from recordsmith.errors import OptionError
from recordsmith.example import Kind, SequenceExample

Content: TypeAlias = Mapping[str, Any] | SequenceExample | bytes
"""What a sample becomes: features as `encode_example` takes them, context and feature lists as
`encode_sequence_example` takes them, or a payload that is stored as it is."""

_Known = TypeVar("_Known")

Note: TypeAlias = Callable[[str, str], None]
"""`note(what, where)`: something in a sample was changed or left out, or should be known.

what: a sentence without numbers or names, the same for all of its kind, as they are counted:
"a box that reaches outside of its picture was cut off at the edge".
where: file, line and what was found there: "a.xml, line 17: raccoon, xmax 652 of 650".
"""


def unheard(what: str, where: str) -> None:
    """A note that nobody wants."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing to pack.

    name: unique in its source and the same at every listing, such as a relative path.
    size_bytes: about how long its record will be.
    label: number of its class, or None.
    split: the split that it belongs to, where the source has splits of its own.
    group: samples of one group (a patient, a video) stay in one split; None: it is on its own.
    version: a number that is another one when the content is: a time of change in nanoseconds, a
        checksum. None if the source cannot tell. A job that was stopped goes on where it was only
        with samples that have not changed since.
    """

    name: str
    size_bytes: int
    label: int | None = None
    split: str | None = None
    group: str | None = None
    version: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Listing:
    """What a source has.

    samples: in an order that depends on nothing but the data; a tuple, or for tables a sequence
        that makes each sample when it is asked for.
    class_names: index = label; None where there are no classes. A label without a name (0 where
        they count from 1, gaps) is None in the tuple.
    notices: what was passed over, in words: hidden files, empty classes, files of other kinds.
    splits: names of the source's own splits, in order; then each sample has one of them.
    has_label_map: its labels are those of a label map, so `label_map.pbtxt` is written.
    """

    samples: Sequence[Sample]
    class_names: tuple[str | None, ...] | None = None
    notices: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    has_label_map: bool = False


def look_up(known: Mapping[str, _Known], sample: Sample) -> _Known:
    """What a source knows of a sample by its name.

    Raises:
        OptionError: it is not from a listing of that source.
    """
    try:
        return known[sample.name]
    except KeyError:
        raise not_listed(sample) from None


def not_listed(sample: Sample) -> OptionError:
    """The error for a sample of another source, or of none."""
    return OptionError(f"{sample!r} is not from a listing of this source")


class Source(Protocol):
    """Where samples come from. It is listed first; then `read_sample` is called in many threads.

    If it has a `root`, the folder that it reads, no dataset is packed into that.
    """

    def list_samples(self) -> Listing:
        """Find all samples, without reading them.

        Raises:
            SourceError: nothing is there that this source understands; says what was found and
                what was expected.
        """
        ...

    def read_sample(self, sample: Sample, note: Note = unheard) -> Content:
        """What one sample holds; whatever was changed or left out in it goes to `note`.

        Raises:
            OptionError: the sample is from no listing of this source.
            CorruptDataError: the sample cannot be read; its `path` names the file.
            SourceError: its annotations are wrong; `problems` has each of them, with its place.
            FileAccessError: the operating system refused.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """What the manifest says of the source: JSON-able, the same wherever it lies.

        `kind` is the name of its class; `folder`, `file` or `files` the last part of where it was
        read. All others are its options, as far as they decide what its samples hold: a job goes
        on where it was only if they are equal.
        """
        ...

    def kinds(self) -> Mapping[str, Kind]:
        """Kinds of features that their values may leave open, such as empty lists."""
        ...
