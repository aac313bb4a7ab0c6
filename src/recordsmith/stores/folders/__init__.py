"""New folders of objects, such as exports: complete when they appear, in every store.

Other processes may write some of the objects: the process that creates the folder shares their
names, each of the others writes through `shared_folder`, and the first takes what is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from recordsmith.stores.checks import check_writable
from recordsmith.stores.folders.staging import staged, staged_attempt
from recordsmith.stores.folders.writer import (
    EXPORT_NOTE,
    FolderWriter,
    SharedFolderWriter,
    direct_folder,
)
from recordsmith.stores.local import LocalStore
from recordsmith.stores.location import Location, as_folder

__all__ = ["EXPORT_NOTE", "FolderWriter", "shared_folder", "write_folder"]


def write_folder(
    folder: Location,
    note: Mapping[str, Any],
    *,
    overwrite: bool,
    keeping: Mapping[str, str],
    report: Callable[[str], None],
) -> AbstractContextManager[FolderWriter]:
    """Write a new folder; it is complete when its note appears, at the end of the block.

    If the block raises, everything that was written is removed. On a local disk, nothing is
    visible before the end, and a folder that is replaced stays until then. Elsewhere, an earlier
    folder is removed with the first object, and a killed process leaves objects without a note;
    `overwrite` removes these.

    Args:
        note: describes the content; the names directly in the folder are added as `entries`.
        overwrite: replace the entries of an earlier note, and all objects in the way.
        keeping: objects that must not be replaced: identity -> name for messages.
        report: called with problems of the folder.

    Raises:
        OptionError: it is an object, is not empty without `overwrite`, or contains objects to
            keep; or the store is read-only.
        FileAccessError: it cannot be written, or another process writes it.
    """
    store = folder.store
    if isinstance(store, LocalStore):
        path = store.path_of_folder(folder.key)
        return staged(path, note, overwrite=overwrite, keeping=keeping, report=report)
    check_writable(store, str(folder))
    return direct_folder(folder, note, overwrite=overwrite, keeping=keeping)


@contextmanager
def shared_folder(document: Mapping[str, Any]) -> Iterator[tuple[FolderWriter, str]]:
    """Write objects of a folder that another process creates.

    Args:
        document: from `FolderWriter.share`.

    Yields:
        The writer, and the name of this attempt for `FolderWriter.take`. If the block raises,
        objects that are not complete are removed.

    Raises:
        FileAccessError: the other process has ended, or its folder cannot be written.
    """
    folder, attempt = as_folder(document["folder"]), os.urandom(8).hex()
    if folder.store.can_rename:
        with staged_attempt(str(folder), attempt) as staged_writer:
            yield staged_writer, attempt
        return
    writer = SharedFolderWriter(folder, document["job"])
    try:
        yield writer, attempt
    finally:
        writer.discard()
