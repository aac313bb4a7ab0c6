"""What every source offers: a listing made once, and the features of one sample at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from recordsmith.example import Kind


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing to pack.

    name: unique in its source and the same at every listing, such as a relative path.
    size_bytes: about how long its record will be.
    label: number of its class, or None.
    """

    name: str
    size_bytes: int
    label: int | None = None


@dataclass(frozen=True)
class Listing:
    """What a source has.

    samples: in an order that depends on nothing but the data.
    class_names: index = label, or None where there are no classes.
    notices: what was passed over, in words: hidden files, empty classes, files of other kinds.
    """

    samples: tuple[Sample, ...]
    class_names: tuple[str, ...] | None = None
    notices: tuple[str, ...] = ()


class Source(Protocol):
    """Where samples come from. `read_features` is called from several threads at once.

    If it has a `root`, the folder that it reads, no dataset is packed into that.
    """

    def list_samples(self) -> Listing:
        """Find all samples, without reading them.

        Raises:
            SourceError: nothing is there that this source understands; says what was found and
                what was expected.
        """
        ...

    def read_features(self, sample: Sample) -> Mapping[str, Any]:
        """The features of one sample, as `encode_example` takes them.

        Raises:
            CorruptDataError: the sample cannot be read; its `path` names the file.
            FileAccessError: the operating system refused.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """What the manifest says of the source: JSON-able, with `kind`, the name of its class."""
        ...

    def kinds(self) -> Mapping[str, Kind]:
        """Kinds of features that their values may leave open, such as empty lists."""
        ...
