"""Samples, and what reads them, also in another process.

A source only lists. The reader of its listing reads a sample by its reference; both are JSON, so
another process reads the same sample without listing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from recordsmith.format.example import Kind, SequenceExample
from recordsmith.stores import Location, as_place
from recordsmith.support.errors import OptionError
from recordsmith.support.explaining import unknown_word
from recordsmith.support.lazy import LazyTable

Content: TypeAlias = Mapping[str, Any] | SequenceExample | bytes
"""The content of a sample: features for `encode_example`, context and feature lists for
`encode_sequence_example`, or a payload that is stored unchanged."""

Note: TypeAlias = Callable[[str, str], None]
"""`note(what, where)` records that something in a sample was changed, left out or noteworthy.

what: a plural clause without numbers, names or options, because reports count equal notes and
print the number in front of it: "boxes were clipped to their image".
where: file, line and value: "a.xml, line 17: raccoon, xmax 652 of 650".
"""


def ignore_note(what: str, where: str) -> None:
    """Ignore a note."""


@dataclass(unsafe_hash=True, slots=True)  # frozen takes longer to create, and there are millions
class Sample:
    """One sample to pack, which becomes one record.

    A `SampleReader` reads it, also in another process: both are JSON.

    name: unique in its source and stable between listings, such as a relative path.
    size_bytes: approximate size of its record.
    label: number of its class, or None.
    split: its split, if the source has splits of its own.
    group: samples of one group (a patient, a video) stay in one split; None if it has no group.
    version: changes when the content changes: `Store.version_number`, which for local files is the
        modification time in nanoseconds, or a checksum.
        None for a source without version information. An interrupted job resumes only with
        samples that have not changed.
    reference: where its content is, in plain JSON values that the reader of the source understands:
        keys relative to the reader's root, ranges of bytes, numbers of rows, or the annotation
        itself. None if the name says it all.
    """

    name: str
    size_bytes: int
    label: int | None = None
    split: str | None = None
    group: str | None = None
    version: int | None = field(default=None, compare=False)
    reference: Mapping[str, Any] | None = field(default=None, hash=False)

    def to_json(self) -> dict[str, Any]:
        """Return the sample as plain JSON values, without what is None."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Sample:
        """Restore a sample from `to_json`."""
        return cls(**document)


class SampleReader(Protocol):
    """Reads the samples of a listing, in several threads or in another process.

    It holds what all samples have in common, such as class names and options, and no sample. Make
    it a frozen dataclass that inherits from `StoredReader`.
    """

    def read(self, sample: Sample, note: Note = ignore_note) -> Content:
        """Read the content of one sample.

        Args:
            sample: from a listing of the same source.
            note: called for whatever was changed or left out.

        Raises:
            CorruptDataError: the sample cannot be read; `path` is the file.
            SourceError: its annotations are wrong; `problems` lists each one with its place.
            FileAccessError: a file cannot be read.
        """
        ...

    def kinds(self) -> Mapping[str, Kind]:
        """Kinds of the features whose values may not show it, such as empty lists."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, from which `open_reader` makes an equal reader elsewhere.

        Raises:
            OptionError: the samples exist only in this process.
        """
        ...


READERS: LazyTable[Any] = LazyTable(
    "recordsmith.sources",
    {
        "AnnotatedReader": "boxes.reader.AnnotatedReader",
        "ArrayReader": "archives.arrays.ArrayReader",
        "CaptionedReader": "class_folders.captioned_images.CaptionedReader",
        "ImageReader": "class_folders.image_folder.ImageReader",
        "LeRobotReader": "archives.lerobot.LeRobotReader",
        "PairReader": "pairs.image_pairs.PairReader",
        "ShardReader": "archives.shards.ShardReader",
        "TableReader": "tables.table_reader.TableReader",
        "TarReader": "archives.webdataset.TarReader",
        "TfdsReader": "archives.tfds.TfdsReader",
    },
)
"""The readers of samples that a task of another process can make, by the names of their classes."""


class StoredReader:
    """A reader whose fields are plain JSON values, tuples and Locations: `to_json`, `from_json`.

    Subclasses register themselves in `READERS`, so that `open_reader` finds them by their names.

    may_have_other_classes: whether some labels have other class names than those of the listing.
    """

    may_have_other_classes: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "read"):
            READERS[cls.__name__] = cls

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]
        return {"reader": type(self).__name__} | {
            name: {"location": str(value.absolute())} if isinstance(value, Location) else value
            for name, value in values.items()
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            **{name: _restored(value) for name, value in document.items() if name != "reader"}
        )


def open_reader(document: Mapping[str, Any]) -> SampleReader:
    """Make a reader from the JSON that `SampleReader.to_json` returned.

    Raises:
        OptionError: the document is not that of a reader.
    """
    name = str(document.get("reader"))
    if name not in READERS:
        raise unknown_word("document", name, READERS)
    return READERS[name].from_json(document)  # type: ignore[no-any-return]


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping) and value.keys() == {"location"}:
        return as_place(value["location"])
    if isinstance(value, list):
        return tuple(map(_restored, value))
    return value


def unlisted_error(sample: Sample) -> OptionError:
    """The error for a sample that this source did not list."""
    return OptionError(
        f"sample {sample.name!r} is not from a listing of this source",
        option="sample",
        value=sample.name,
    )
