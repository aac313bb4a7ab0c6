"""Detect shards, tar archives and arrays, by names and first bytes."""

from __future__ import annotations

import os
import posixpath
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from recordsmith.dataset import MANIFEST_NAME
from recordsmith.dataset.names import RECORD_SUFFIXES
from recordsmith.dataset.tfds.folder import (
    FEATURES_NAME,
    INFO_NAME,
    is_tfds_info,
    without_features,
)
from recordsmith.errors import SourceError
from recordsmith.sources.archives.array_layout import has_role, is_array_name, is_cifar
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.splits import find_split
from recordsmith.stores import Location
from recordsmith.wire import HEAD_BYTES, detect_other_format
from recordsmith.wire.compression import GZIP_MAGIC

ARCHIVES = (".tar", ".tar.gz", ".tgz")
_MAX_ARRAYS = 50
_MAX_INFOS = 10

_SAVE = "numpy.savez(path, images=..., labels=...)"
_ARCHIVE = ("an archive", "Unpack it and pack its folder.")
_HDF5 = ("an HDF5 file", f"Convert it in Python with h5py and {_SAVE}.")
_PICKLE = (
    "a pickle, which can run code when it is opened",
    f"If you trust it, convert it in Python with {_SAVE}.",
)
_VIDEO = (
    "a video",
    "Extract its frames with `ffmpeg -i VIDEO FOLDER/%06d.png`, and pack the folder.",
)
_MATLAB = (
    "a MATLAB file",
    f"Convert it in Python with scipy.io.loadmat (from version 7.3 on with h5py) and {_SAVE}.",
)
_OTHER_FILES = {
    ".mat": _MATLAB,
    **dict.fromkeys((".zip", ".7z", ".rar"), _ARCHIVE),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _HDF5),
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".pth"), _PICKLE),
    **dict.fromkeys((".mp4", ".avi", ".mov", ".mkv", ".webm", ".mpg", ".mpeg"), _VIDEO),
}
"""Files that no source reads, by suffix: what they are, and what to do."""


REFUSED_SUFFIXES = tuple(_OTHER_FILES)


def refusal(root: Location, names: Iterable[str]) -> SourceError | None:
    """The error for the first of some files that no source reads; None without one."""
    for name in names:
        suffix = os.path.splitext(name)[1].lower()
        if suffix in _OTHER_FILES:
            what, advice = _OTHER_FILES[suffix]
            path = root if name == root.name else root / name
            return SourceError(f"this is {what}, which cannot be packed", path=path, remedy=advice)
    return None


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield how a folder can be read as shards, tar archives and arrays."""
    for find in (_tfds, _shards, _archives, _arrays):
        reading = find(tree)
        if reading is not None:
            yield reading


def _tfds(tree: FileTree) -> LayoutCandidate | None:
    """A folder of TensorFlow Datasets, of the last version if there are several."""
    scans = [
        scan
        for scan in tree.folders.values()
        if INFO_NAME in scan.names and MANIFEST_NAME not in scan.names
    ]
    if paths := [scan.path for scan in scans if FEATURES_NAME in scan.names]:
        what = f"TensorFlow Datasets' {posixpath.join(max(paths), FEATURES_NAME)}"
        return marked("tfds", what, "records")
    for path in sorted((scan.path for scan in scans), reverse=True)[:_MAX_INFOS]:
        folder = tree.root / path if path else tree.root
        if is_tfds_info(folder):
            return replace(
                marked(
                    "tfds", f"TensorFlow Datasets' {posixpath.join(path, INFO_NAME)}", "records"
                ),
                problem=f"the folder has no {FEATURES_NAME}, which describes the features",
                remedy=without_features(folder),
            )
    return None


def marked(format: str, what: str, noun: str = "images") -> LayoutCandidate:
    """The candidate of files that only one format has."""
    return LayoutCandidate(format, what, Confidence.MARKED, noun=noun)


def _shards(tree: FileTree) -> LayoutCandidate | None:
    shards = [
        path
        for path in _paths(tree, 0)
        if ("/" not in path or find_split(path))
        and any(suffix in path.lower() for suffix in RECORD_SUFFIXES)
    ]
    for folder in {posixpath.dirname(path) for path in shards}:
        names = tree.folders[folder].names
        if INFO_NAME in names and (
            FEATURES_NAME in names
            or is_tfds_info((tree.root / posixpath.join(folder, INFO_NAME)).parent)
        ):
            return None  # TensorFlow Datasets, which are more than records
    for path in shards:
        other = detect_other_format(tree.head(path)[:HEAD_BYTES])
        if other is None or other.name.startswith("a gzip of an unknown"):
            return marked("shards", f"TFRecord shards such as {path}", "records")
    return None


def _paths(tree: FileTree, depth: int) -> Iterator[str]:
    """Yield the known files of the folders in the root with so many `/` in their paths."""
    for folder in tree.folders.values():
        if folder.path.count("/") <= depth:
            yield from (posixpath.join(folder.path, name) for name in folder.names)


def _archives(tree: FileTree) -> LayoutCandidate | None:
    """Tar files with samples of the WebDataset format."""
    for path in tree.files(*ARCHIVES, depth=1):
        if "/" in path and any(tree.files(*ARCHIVES, depth=0)):
            break
        head = tree.head(path)
        if head.startswith(GZIP_MAGIC):
            try:
                head = zlib.decompressobj(31).decompress(head, 1 << 10)
            except zlib.error:
                continue
        if head[257:262] == b"ustar":
            return marked("webdataset", f"tar files such as {path}", "samples")
    return None


def _arrays(tree: FileTree) -> LayoutCandidate | None:
    paths = list(_paths(tree, 2))
    for path in paths:
        name = posixpath.basename(path)
        may_be_pickle = "." not in name or name.endswith((".meta", ".pkl"))
        if is_cifar(name, tree.head(path) if may_be_pickle else b""):
            return marked("arrays", f"CIFAR's files such as {path}")
    arrays = list(filter(is_array_name, paths))
    idx = [path for path in arrays if not path.lower().endswith((".npy", ".npz"))]
    if idx:
        return marked("arrays", f"idx files such as {idx[0]}")
    images = sum(folder.image_count for folder in tree.folders.values())
    named = [path for path in arrays if path.lower().endswith(".npz") or has_role(path)]
    if not named or len(arrays) > _MAX_ARRAYS or images:
        return None
    return LayoutCandidate("arrays", f"arrays in {named[0]}", Confidence.ANNOTATED)
