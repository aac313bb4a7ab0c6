"""The folder that an export writes: its files, their names, and what there is to say of them.

An exporter writes through this and nothing else, so that no file lands outside of the folder and
none under a name that is taken. What the operating system refuses is put into words by `staging`.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

from recordsmith.example import Features
from recordsmith.example.keys import FILENAME, SOURCE_ID
from recordsmith.exporting.pictures import Picture
from recordsmith.exporting.safe_names import TakenNames, safe_part, safe_parts
from recordsmith.exporting.values import text_of
from recordsmith.files import make_folder

_IN_MEMORY_BYTES = 1 << 20


class ChangedName(NamedTuple):
    """A name that could not be kept.

    position: of the record; None if it is the name of a class or of a split.
    name: what was wanted.
    file: what it became, relative to the folder of the export.
    """

    position: int | None
    name: str
    file: str


class Outbox:
    """What an export has written, and where the next file goes.

    splits: the names of the splits that are exported, in order.
    """

    def __init__(self, folder: Path, splits: Iterable[str]) -> None:
        self.splits = tuple(splits)
        self.file_count = 0
        self.size_bytes = 0
        self.changed_names: list[ChangedName] = []
        self.problems: list[str] = []
        self.left_out: Counter[str] = Counter()
        self.position = 0  # of the record that is exported now
        self._folder = folder
        self._made: set[str] = set()
        self._open_files: dict[str, BinaryIO] = {}
        self._scratch_files: list[IO[bytes]] = []
        self._actions: list[Callable[[], None]] = []
        self._taken = TakenNames()
        self._part_names: dict[tuple[str, str], str] = {}

    # -- names ---------------------------------------------------------------------------------

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names at the top for the format itself."""
        for name in names:
            self._taken.take((name,), [("", "")])

    def split_name(self, split: str) -> str:
        """The name of a split, as a part of a path."""
        return self.part_name(split)

    def part_name(self, name: str, folder: str = "") -> str:
        """The name of a class or a split as a part of a path below `folder`, always the same."""
        key = (folder, name)
        if key not in self._part_names:
            (part,) = self._taken.take((safe_part(name),), [(folder, "")])
            self._part_names[key] = part
            if part != name:
                self._change(None, name, f"{folder}/{part}" if folder else part)
        return self._part_names[key]

    def name_picture(
        self,
        example: Features,
        picture: Picture,
        folder: str,
        *,
        flat: bool = False,
        beside: Sequence[tuple[str, str]] = (),
    ) -> tuple[str, str]:
        """Take a name for the picture of the record at hand, and for the files that go with it.

        Folders in the wanted name are kept below `folder`, but for those that it stands for itself:
        train/images/x.jpg goes to images/x.jpg.

        Args:
            folder: where its file goes.
            flat: leave out all folders of the wanted name.
            beside: folder and suffix of each other file.

        Returns:
            The name without suffix, and the suffix of the picture's file.
        """
        wanted = wanted_name(example)
        parts = safe_parts(wanted or f"{self.position:06d}")
        is_safe = wanted is None or "/".join(parts) == wanted
        *above, last = parts
        known = [place for place, part in enumerate(above) if part in folder.split("/")]
        above = [] if flat else above[known[-1] + 1 if known else 0 :]
        stem, suffix = picture.split_name(last)
        stem = stem.rstrip() or "_"  # lists of names lose spaces at their ends
        taken = self._taken.take((*above, stem), [(folder, suffix), *beside])
        path = "/".join(taken)
        if wanted is not None and not (is_safe and last == taken[-1] + suffix):
            self._change(self.position, wanted, f"{folder}/{path}{suffix}".lstrip("/"))
        return path, suffix

    def write_picture(
        self,
        example: Features,
        picture: Picture,
        folder: str,
        *,
        mask: Picture | None = None,
        masks: str = "",
        flat: bool = False,
        beside: Sequence[tuple[str, str]] = (),
    ) -> tuple[str, str]:
        """Write the picture of the record at hand, and its mask if it has one.

        Args:
            folder, masks: where the files of picture and mask go.
            flat, beside: as in `name_picture`.

        Returns:
            The name of all its files without suffix, and the suffix of the picture's.
        """
        suffixes = [] if mask is None else [mask.split_name("mask.png")[1]]
        names = [(masks, suffix) for suffix in suffixes]
        name, suffix = self.name_picture(
            example, picture, folder, flat=flat, beside=[*names, *beside]
        )
        self.write(f"{folder}/{name}{suffix}", picture.data)
        if mask is not None:
            self.write(f"{masks}/{name}{suffixes[0]}", mask.data)
        return name, suffix

    def name_key(self, example: Features, folder: str) -> str:
        """Take a name without suffix and without dots for the record at hand."""
        wanted = wanted_name(example)
        parts = safe_parts(wanted or f"{self.position:06d}")
        stem = os.path.splitext(parts[-1])[0]
        parts = tuple(part.replace(".", "_") for part in (*parts[:-1], stem))
        key = "/".join(self._taken.take(parts, [(folder, "")]))
        if wanted is not None and os.path.splitext(wanted)[0] != key:
            self._change(self.position, wanted, key)
        return key

    # -- files ---------------------------------------------------------------------------------

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file; `name` is its path in this folder."""
        with self.opened(name) as file:
            file.write(data)

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """A new file, open for writing while the block runs."""
        file = self.open(name)
        yield file
        self.close(name)

    def open(self, name: str) -> BinaryIO:
        """A new file, to be closed by `close`."""
        folder = name.rpartition("/")[0]
        parts = name.split("/")
        assert not {"", ".", ".."}.intersection(parts), name
        if folder not in self._made:
            make_folder(self._folder / folder)
            self._made.add(folder)
        file = open(f"{self._folder}/{name}", "xb")  # noqa: SIM115 - closed by close or discard
        self._open_files[name] = file
        return file

    def close(self, name: str) -> None:
        """Write what is held back, and count the file."""
        self._open_files.pop(name).close()
        self.size_bytes += os.stat(f"{self._folder}/{name}").st_size
        self.file_count += 1

    def scratch(self) -> IO[bytes]:
        """A file without a name for what must wait; in memory as long as it is small."""
        file: Any = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(self._folder))  # noqa: SIM115
        self._scratch_files.append(file)
        return self._scratch_files[-1]

    def at_end(self, action: Callable[[], None]) -> None:
        """What to do when the job is over, well or not."""
        self._actions.append(action)

    def discard(self) -> None:
        """Close what was left open: the job is over, well or not."""
        for action in self._actions:
            action()
        for file in (*self._open_files.values(), *self._scratch_files):
            with suppress(OSError):
                file.close()

    # -- what is to be said --------------------------------------------------------------------

    def tell(self, sentence: str) -> None:
        """Report something about the record at hand that is not as it should be."""
        self.problems.append(f"record {self.position}: {sentence}")

    def leave_out(self, example: Features, kept: frozenset[str]) -> None:
        """Count the features that the format has no place for."""
        for key, value in example.items():
            if key not in kept and len(value):
                self.left_out[key] += 1

    def _change(self, position: int | None, name: str, file: str) -> None:
        self.changed_names.append(ChangedName(position, name, file))


def wanted_name(example: Features) -> str | None:
    """The name that a record has for its picture, if it has one."""
    return text_of(example, FILENAME) or text_of(example, SOURCE_ID)
