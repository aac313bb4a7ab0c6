"""Write the files of an export, choose their names, and collect problems.

Exporters write only through this module, so that no file is outside the folder or overwrites
another.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, BinaryIO, NamedTuple

from recordsmith.exporting.images import ExportedImage
from recordsmith.exporting.safe_names import LONGEST_PART_BYTES, TakenNames, safe_part, safe_parts
from recordsmith.exporting.standard_names import StandardNames
from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import first_text
from recordsmith.format.example.keys import FILENAME, SOURCE_ID
from recordsmith.stores import FolderWriter
from recordsmith.support.errors import SourceError
from recordsmith.support.problems import MAX_PROBLEMS, Problems

_LONGEST_MARK = len("-1000000000")  # appended to a name in use


class ChangedName(NamedTuple):
    """A name that was changed to a valid file name.

    position: of the record; None for the name of a class or split.
    name: the original name.
    file: the new name, relative to the folder of the export.
    """

    position: int | None
    name: str
    file: str


@dataclass
class ExportTally:
    """What was counted and reported; that of a task travels to the job.

    splits: the number of exported records of each split.
    problems: of exported records.
    skipped, skipped_positions: the records that were not exported, and the first of them by their
        positions in the dataset.
    dropped_features: features that the format cannot hold, and how many records have them.
    """

    splits: Counter[str] = field(default_factory=Counter)
    file_count: int = 0
    size_bytes: int = 0
    changed_names: list[ChangedName] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    skipped: Problems = field(default_factory=Problems)
    skipped_positions: list[int] = field(default_factory=list)
    dropped_features: Counter[str] = field(default_factory=Counter)

    def merge(self, other: ExportTally) -> None:
        """Add that of later records."""
        self.splits += other.splits
        self.file_count += other.file_count
        self.size_bytes += other.size_bytes
        self.changed_names += other.changed_names
        self.problems.extend(other.problems)
        self.skipped.extend(other.skipped)
        left = MAX_PROBLEMS - len(self.skipped_positions)
        self.skipped_positions += other.skipped_positions[:left]
        self.dropped_features += other.dropped_features


class ExportWriter:
    """The files of an export.

    splits: the names of the exported splits, in order.
    tally: what was written and reported.
    names: of the features in the records; those that exporters get have standard keys.
    position: of the record that is exported now, in the dataset.
    rename_split: returns the name that a format needs for a split.
    """

    def __init__(self, folder: FolderWriter, splits: Iterable[str], names: StandardNames) -> None:
        self.splits = tuple(splits)
        self.names = names
        self.tally = ExportTally()
        self.position = 0
        self.rename_split: Callable[[str], str] = str
        self._folder = folder
        self._taken = TakenNames()
        self._part_names: dict[tuple[str, str], str] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Reserve top-level names for the format itself."""
        for name in names:
            self._taken.take((name,), [("", "")])

    def split_name(self, split: str) -> str:
        """The name of a split as a part of a path."""
        return self.part_name(split, renamed=self.rename_split(split))

    def part_name(self, name: str, folder: str = "", renamed: str | None = None) -> str:
        """The name of a class or split as a part of a path in `folder`; the same on every call."""
        key = (folder, name)
        if key not in self._part_names:
            safe = safe_part(name if renamed is None else renamed)
            (part,) = self._taken.take((safe,), [(folder, "")])
            self._part_names[key] = part
            if part != name:
                self._change(None, name, f"{folder}/{part}" if folder else part)
        return self._part_names[key]

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
        """Write the image of the current record and its mask; `companions` get the same name.

        Folders of the original name are kept below `folder`, except up to the one with the same
        name: train/images/x.jpg becomes images/x.jpg.

        Returns:
            The name of the files without suffix, and the suffix of the image.
        """
        original = original_name(example)
        parts = safe_parts(original or f"{self.position:06d}")
        is_safe = original is None or "/".join(parts) == original
        *above, last = parts
        known = [number for number, part in enumerate(above) if part in folder.split("/")]
        above = [] if flat else above[known[-1] + 1 if known else 0 :]
        stem, suffix = image.split_name(last)
        stem = stem.rstrip() or "_"  # readers of lists strip trailing spaces
        files = [(folder, suffix), *companions]
        if mask is not None:
            files.append((masks, mask.split_name("mask.png")[1]))
        taken = self._taken.take((*above, stem), files)
        name = "/".join(taken)
        if original is not None and not (is_safe and last == taken[-1] + suffix):
            self._change(self.position, original, f"{folder}/{name}{suffix}")
        self.write(f"{folder}/{name}{suffix}", image.data)
        if mask is not None:
            self.write(f"{masks}/{name}{files[-1][1]}", mask.data)
        return name, suffix

    def name_key(self, example: Features, folder: str, longest_suffix: str) -> str:
        """Reserve a name without suffix and dots for the current record.

        With its folders and a suffix up to `longest_suffix` it has at most 255 bytes; folders that
        are too long are dropped.
        """
        original = original_name(example)
        parts = safe_parts(original or f"{self.position:06d}")
        stem = os.path.splitext(parts[-1])[0]
        parts = tuple(part.replace(".", "_") for part in (*parts[:-1], stem))
        if len("/".join(parts).encode()) + _LONGEST_MARK + len(longest_suffix) > LONGEST_PART_BYTES:
            parts = parts[-1:]
        key = "/".join(self._taken.take(parts, [(folder, longest_suffix)]))
        if original is not None and os.path.splitext(original)[0] != key:
            self._change(self.position, original, key)
        return key

    def write(self, name: str, data: bytes) -> None:
        """Write a file; `name` is its path in the folder of the export."""
        self.open(name).write(data)
        self.close(name)

    def open(self, name: str) -> BinaryIO:
        """Open a new file for writing, until `close`."""
        return self._folder.open(name)

    def close(self, name: str) -> None:
        """Close a file and count it."""
        self.tally.size_bytes += self._folder.close(name)
        self.tally.file_count += 1

    def temporary_file(self) -> IO[bytes]:
        """Open a temporary file, in memory while it is small."""
        return self._folder.temporary_file()

    def warn(self, sentence: str) -> None:
        """Report a problem of the current record."""
        self.tally.problems.add(sentence, f"record {self.position}")

    def skip(self, error: SourceError) -> None:
        """Report that the current record is not exported."""
        self.tally.skipped.add("; ".join(error.lines), f"record {self.position}")
        if len(self.tally.skipped_positions) < MAX_PROBLEMS:
            self.tally.skipped_positions.append(self.position)

    def count_dropped(self, example: Features, kept: frozenset[str]) -> None:
        """Count the features that the format cannot hold."""
        for key, value in example.items():
            if key not in kept and len(value):
                self.tally.dropped_features[key] += 1

    def _change(self, position: int | None, name: str, file: str) -> None:
        self.tally.changed_names.append(ChangedName(position, name, file))


def original_name(example: Features) -> str | None:
    """The name of the image in a record, or None."""
    return first_text(example, FILENAME) or first_text(example, SOURCE_ID)
