"""The folder that a dataset is built in: held by one job, and looked at before that writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from recordsmith.building.publishing import small_files_of
from recordsmith.dataset import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    parse_shard_name,
    read_begun,
    read_manifest,
)
from recordsmith.errors import CorruptDataError, FileAccessError, OptionError
from recordsmith.files import (
    accessing,
    exclusive,
    list_folder,
    make_internal_folder,
    size_of,
)

WRITING_THREADS = 8
"""So many write shards at most if nobody says another number: more wait for the disk."""


def check_folder(folder: Path) -> None:
    """
    Raises:
        OptionError: there is a file of this name.
        FileAccessError: its path cannot be used.
    """
    with accessing(folder, "write"), suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            raise OptionError(f"{folder} is a file; expected the name of a folder")


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Hold the folder for this job; leave no empty folders behind."""
    is_new = not folder.exists()
    internal = make_internal_folder(folder)
    try:
        with exclusive(folder):
            yield
    finally:
        with suppress(OSError):
            internal.rmdir()
            if is_new:
                folder.rmdir()


def earlier_dataset(
    folder: Path, fingerprint: str, files: Sequence[str], *, has_label_map: bool, overwrite: bool
) -> Manifest | None:
    """The dataset that is in the folder already: the same one, or with `overwrite` any.

    Args:
        fingerprint: of the job that would build it.
        files: the names of its shards.

    Raises:
        OptionError: it is another one, or there are files in the way, and overwrite is not said.
    """
    try:
        manifest = read_manifest(folder)
    except CorruptDataError:
        if not overwrite:
            raise
        manifest = None
    if overwrite:
        return manifest
    if manifest is not None:
        if manifest.made_from.get("plan") != fingerprint:
            raise OptionError(
                f"{folder} holds another dataset of {manifest.record_count} records, made from "
                "other files or with other options; choose another folder, or say overwrite=True "
                "to replace it"
            )
        return manifest if _is_complete(folder, manifest, has_label_map=has_label_map) else None
    begun = read_begun(folder)
    if begun is not None and begun.plan == fingerprint:
        return None  # this very job was killed while it gave its files their names
    if begun is not None and begun.base:
        raise OptionError(
            f"{folder} holds a dataset to which records were to be appended; that job was stopped. "
            "Run it again: it finishes the dataset. Or say overwrite=True to replace it."
        )
    wanted = {*files, LABELS_NAME, LABEL_MAP_NAME, *(begun.removing if begun else ())}
    splits = {number.split for file in files if (number := parse_shard_name(file))}
    in_the_way = [
        entry.name
        for entry in list_folder(folder)
        if entry.name in wanted
        or ((number := parse_shard_name(entry.name)) and number.split in splits)
    ]
    if in_the_way:
        raise OptionError(
            f"{folder} holds {in_the_way[0]} already, and no manifest says where it comes from; "
            "choose another folder, or say overwrite=True to replace it"
        )
    return None


def _is_complete(folder: Path, manifest: Manifest, *, has_label_map: bool) -> bool:
    """Whether all its files are there in their size; what is in them is for `verify` to say."""
    expected = {shard.file: shard.size_bytes for shard in manifest.shards}
    small_files = small_files_of(manifest, has_label_map=has_label_map)
    expected |= {name: len(data) for name, data in small_files.items() if name != MANIFEST_NAME}
    try:
        return all(size_of(folder / name) == size for name, size in expected.items())
    except FileAccessError:
        return False
