"""Files that no source reads: pointers of git-lfs, and files of other formats."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterable
from contextlib import suppress

from recordsmith.format.wire import HEAD_BYTES, detect_other_format
from recordsmith.sources.files.file_tree import MAX_OPENED, FileTree
from recordsmith.stores import Location
from recordsmith.support.errors import FileAccessError, SourceError, option

_SCANS = (".dcm", ".nii", ".nii.gz")


def refusal(root: Location, names: Iterable[str]) -> SourceError | None:
    """The error for the first of some files that is of a format which no source reads."""
    for name in itertools.islice(names, MAX_OPENED):
        path = root if name == root.name else root / name
        head = b""
        with suppress(FileAccessError):
            head = path.read(0, HEAD_BYTES)
        if name.lower().endswith(_SCANS) or head[128:132] == b"DICM":
            return SourceError(
                "this is a DICOM or NIfTI file by its name or content; neither is read as an image",
                path=path,
                remedy="Read it with its own library and pack rows from Python: see the page on "
                "DICOM, NIfTI and GeoTIFF in the documentation.",
            )
        other = detect_other_format(head)
        if other is None:
            continue
        is_binary = not other.is_text and (b"\0" in head or not head.isascii())
        if is_binary or other.is_pointer:
            return SourceError(
                f"this is {other.name}, which cannot be packed", path=path, remedy=other.advice
            )
    return None


def check_fetched(path: Location, head: bytes, hint: str = "") -> None:
    """Raise if a file begins like a pointer of git-lfs; `hint` is another remedy."""
    other = detect_other_format(head[:HEAD_BYTES])
    if other is not None and other.is_pointer:
        remedy = f"{other.advice}{hint}"
        raise SourceError(f"this is {other.name}, not the data", path=path, remedy=remedy)


def check_all_fetched(tree: FileTree, suffixes: Iterable[str]) -> None:
    """Raise if a file with one of these suffixes, one of each, is a pointer of git-lfs.

    Otherwise, images would be packed without the labels that were not fetched. Only a disk has
    repositories.
    """
    left = set() if tree.root.store.is_remote else set(suffixes)
    for scan in tree.folders.values():
        for suffix in sorted(scan.by_suffix.keys() & left):
            path = posixpath.join(scan.path, scan.by_suffix[suffix][0])
            hint = f" To ignore it, choose a {option('format')}."
            check_fetched(tree.place(path), tree.head(path), hint)
            left.discard(suffix)
