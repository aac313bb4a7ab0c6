"""Write the files of an export, choose their names, and collect problems.

Exporters write only through this module, so that no file is outside the folder or overwrites
another.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NamedTuple, Protocol

from recordsmith.dataset import Dataset
from recordsmith.dataset.selected_records import Decoder
from recordsmith.errors import MOST_PROBLEMS, Problems, SourceError
from recordsmith.example import Features
from recordsmith.example.keys import FILENAME, SOURCE_ID
from recordsmith.exporting.images import ExportedImage
from recordsmith.exporting.safe_names import LONGEST_PART_BYTES, TakenNames, safe_part, safe_parts
from recordsmith.exporting.values import get_text
from recordsmith.stores import FolderWriter

_LONGEST_MARK = len("-1000000000")  # appended to a name in use


class ChangedName(NamedTuple):
    """A name that was changed to a valid file name.

    Attributes:
        position: of the record; None for the name of a class or split.
        name: the original name.
        file: the new name, relative to the folder of the export.
    """

    position: int | None
    name: str
    file: str


class TaskFile(NamedTuple):
    """The only file that a task writes.

    Attributes:
        name: in the folder of the export.
        record_count: the number of records that the task reads.
    """

    name: str
    record_count: int


class ExportWriter:
    """The files of an export.

    Attributes:
        splits: the names of the exported splits, in order.
        part: the file of a task; None if this process writes the whole export.
        file_count, size_bytes: the files written so far.
        changed_names: names that were changed.
        problems: problems of exported records.
        skipped: records that were not exported, with the reason.
        skipped_positions: the positions of the first of them.
        dropped_features: features that were not exported -> how many records have them.
        position: of the current record.
        rename_split: returns the name that the format needs for a split.
    """

    def __init__(
        self, folder: FolderWriter, splits: Iterable[str], part: TaskFile | None = None
    ) -> None:
        self.splits = tuple(splits)
        self.part = part
        self.file_count = 0
        self.size_bytes = 0
        self.changed_names: list[ChangedName] = []
        self.problems = Problems()
        self.skipped = Problems()
        self.skipped_positions: list[int] = []
        self.dropped_features: Counter[str] = Counter()
        self.position = 0  # of the record that is exported now
        self.rename_split: Callable[[str], str] = str
        self._folder = folder
        self._actions: list[Callable[[], None]] = []
        self._taken = TakenNames()
        self._part_names: dict[tuple[str, str], str] = {}

    # -- names ---------------------------------------------------------------------------------

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve top-level names for the format itself."""
        for name in names:
            self._taken.take((name,), [("", "")])

    def split_name(self, split: str) -> str:
        """The name of a split as a part of a path."""
        return self.part_name(split, renamed=self.rename_split(split))

    def file_of(self, split: str, suffix: str) -> str:
        """The name of the file with the records of a split, or of the part of a task."""
        return f"{self.split_name(split)}{suffix}" if self.part is None else self.part.name

    def part_name(self, name: str, folder: str = "", renamed: str | None = None) -> str:
        """The name of a class or split as a part of a path in `folder`; the same on every call."""
        key = (folder, name)
        if key not in self._part_names:
            wanted = safe_part(name if renamed is None else renamed)
            (part,) = self._taken.take((wanted,), [(folder, "")])
            self._part_names[key] = part
            if part != name:
                self._change(None, name, f"{folder}/{part}" if folder else part)
        return self._part_names[key]

    def name_image(
        self,
        example: Features,
        image: ExportedImage,
        folder: str,
        *,
        flat: bool = False,
        companions: Sequence[tuple[str, str]] = (),
    ) -> tuple[str, str]:
        """Reserve a name for the image of the current record and for its companion files.

        Folders of the original name are kept below `folder`, except up to the one with the same
        name: train/images/x.jpg becomes images/x.jpg.

        Args:
            folder: the folder of the image.
            flat: drop all folders of the original name.
            companions: folder and suffix of each companion file.

        Returns:
            The name without suffix, and the suffix of the image's file.
        """
        wanted = original_name(example)
        parts = safe_parts(wanted or f"{self.position:06d}")
        is_safe = wanted is None or "/".join(parts) == wanted
        *above, last = parts
        known = [place for place, part in enumerate(above) if part in folder.split("/")]
        above = [] if flat else above[known[-1] + 1 if known else 0 :]
        stem, suffix = image.split_name(last)
        stem = stem.rstrip() or "_"  # readers of lists strip trailing spaces
        taken = self._taken.take((*above, stem), [(folder, suffix), *companions])
        path = "/".join(taken)
        if wanted is not None and not (is_safe and last == taken[-1] + suffix):
            self._change(self.position, wanted, f"{folder}/{path}{suffix}".lstrip("/"))
        return path, suffix

    def write_image(
        self,
        example: Features,
        image: ExportedImage,
        folder: str,
        *,
        mask: ExportedImage | None = None,
        masks: str = "",
        flat: bool = False,
        companions: Sequence[tuple[str, str]] = (),
    ) -> tuple[str, str]:
        """Write the image of the current record, and its mask if it has one.

        Args:
            folder, masks: the folders of image and mask.
            flat, companions: as in `name_image`.

        Returns:
            The name of the files without suffix, and the suffix of the image.
        """
        suffixes = [] if mask is None else [mask.split_name("mask.png")[1]]
        names = [(masks, suffix) for suffix in suffixes]
        name, suffix = self.name_image(
            example, image, folder, flat=flat, companions=[*names, *companions]
        )
        self.write(f"{folder}/{name}{suffix}", image.data)
        if mask is not None:
            self.write(f"{masks}/{name}{suffixes[0]}", mask.data)
        return name, suffix

    def name_key(self, example: Features, folder: str, longest_suffix: str) -> str:
        """Reserve a name without suffix and dots for the current record.

        With its folders and a suffix up to `longest_suffix` it has at most 255 bytes; folders that
        are too long are dropped.
        """
        wanted = original_name(example)
        parts = safe_parts(wanted or f"{self.position:06d}")
        stem = os.path.splitext(parts[-1])[0]
        parts = tuple(part.replace(".", "_") for part in (*parts[:-1], stem))
        if len("/".join(parts).encode()) + _LONGEST_MARK + len(longest_suffix) > LONGEST_PART_BYTES:
            parts = parts[-1:]
        key = "/".join(self._taken.take(parts, [(folder, longest_suffix)]))
        if wanted is not None and os.path.splitext(wanted)[0] != key:
            self._change(self.position, wanted, key)
        return key

    # -- files ---------------------------------------------------------------------------------

    def write(self, name: str, data: bytes) -> None:
        """Write a file; `name` is its path in the folder of the export."""
        with self.opened(name) as file:
            file.write(data)

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file for writing for the duration of the block."""
        file = self.open(name)
        yield file
        self.close(name)

    def open(self, name: str) -> BinaryIO:
        """Open a new file for writing, until `close`."""
        return self._folder.open(name)

    def close(self, name: str) -> None:
        """Close a file and count it."""
        self.size_bytes += self._folder.close(name)
        self.file_count += 1

    def temporary_file(self) -> IO[bytes]:
        """Open a temporary file, in memory while it is small."""
        return self._folder.temporary_file()

    def add_cleanup(self, action: Callable[[], None]) -> None:
        """Register an action for the end of the job, whether it succeeds or not."""
        self._actions.append(action)

    def clean_up(self) -> None:
        """Run the registered actions at the end of the job, whether it succeeds or not."""
        for action in self._actions:
            action()

    # -- reporting ----------------------------------------------------------------------------

    def warn(self, sentence: str) -> None:
        """Report a problem of the current record."""
        self.problems.add(f"record {self.position}: {sentence}")

    def skip(self, error: SourceError) -> None:
        """Report that the current record is not exported."""
        self.skipped.add(f"record {self.position}: {'; '.join(error.lines)}")
        if len(self.skipped_positions) < MOST_PROBLEMS:
            self.skipped_positions.append(self.position)

    def count_dropped(self, example: Features, kept: frozenset[str]) -> None:
        """Count the features that the format cannot hold."""
        for key, value in example.items():
            if key not in kept and len(value):
                self.dropped_features[key] += 1

    def to_json(self) -> dict[str, Any]:
        """Return everything that was counted and reported, as plain JSON values."""
        return {
            "file_count": self.file_count,
            "size_bytes": self.size_bytes,
            "changed_names": self.changed_names,
            "problems": vars(self.problems),
            "skipped": vars(self.skipped),
            "skipped_positions": self.skipped_positions,
            "dropped_features": self.dropped_features,
        }

    def merge(self, document: dict[str, Any]) -> None:
        """Add what the writer of later records has counted, from `to_json`."""
        self.file_count += document["file_count"]
        self.size_bytes += document["size_bytes"]
        self.changed_names += [ChangedName(*change) for change in document["changed_names"]]
        for problems, found in (
            (self.problems, document["problems"]),
            (self.skipped, document["skipped"]),
        ):
            problems.extend(found["first"], found["count"])
        left = MOST_PROBLEMS - len(self.skipped_positions)
        self.skipped_positions += document["skipped_positions"][:left]
        self.dropped_features.update(document["dropped_features"])

    def _change(self, position: int | None, name: str, file: str) -> None:
        self.changed_names.append(ChangedName(position, name, file))


def original_name(example: Features) -> str | None:
    """The name of the image in a record, or None."""
    return get_text(example, FILENAME) or get_text(example, SOURCE_ID)


class Divisible(ABC):
    """What exporters add whose files are independent of each other, so that tasks can write them.

    With `ExportWriter.part`, an exporter writes exactly this file, also without records.
    """

    @abstractmethod
    def part_names(self, split: str, count: int) -> Sequence[str]:
        """Return the names of the files of a split, given its name in paths, one for each task."""

    def result(self) -> Any:
        """Return what `describe` needs of the files that were written, as plain JSON values."""
        return {}

    def describe(self, results: Iterable[Any]) -> None:  # noqa: B027 - few formats need it
        """Write what describes all files.

        Args:
            results: of those that wrote the files, in order.
        """


class Exporter(Protocol):
    """Writes examples in one format, with as little memory as possible. Used by one thread."""

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        """Prepare for a dataset, given its schema and class names.

        Raises:
            OptionError: the format cannot hold such a dataset.
        """
        ...

    def add(self, example: Features, split: str, position: int) -> None:
        """Write one example.

        Raises:
            SourceError: this example cannot be exported; no part of it has been written.
        """
        ...

    def finish(self) -> None:
        """Write the remaining files, such as lists and indexes."""
        ...


class PayloadExporter(Divisible):
    """Writes the payloads of records unchanged. Used by one thread."""

    @abstractmethod
    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        """Prepare as `Exporter.begin`."""

    @abstractmethod
    def add(self, payload: bytes, split: str) -> None:
        """Write one payload."""

    @abstractmethod
    def finish(self) -> None:
        """Write the remaining files."""


class TableExporter(Divisible):
    """Writes records as columns, one split after the other. Used by one thread.

    decoder: decodes the records for `add`; made by `begin`.
    """

    decoder: Decoder

    @abstractmethod
    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        """Prepare as `Exporter.begin`, and make the decoder."""

    @abstractmethod
    def add(self, split: str, row_count: int, position: Callable[[int], int]) -> int:
        """Write the records in the decoder and empty it.

        Args:
            row_count: the number of records in the decoder.
            position: returns the position of such a record in the dataset.

        Returns:
            How many were written; the others were passed to `ExportWriter.skip`.

        Raises:
            CorruptDataError: a feature does not match the schema.
        """

    @abstractmethod
    def finish(self) -> None:
        """Write the remaining files."""
