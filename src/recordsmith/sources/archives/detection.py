"""Detect shards, tar archives and arrays, by names and first bytes."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Container, Iterator
from dataclasses import replace

from recordsmith.dataset import (
    MANIFEST_NAME,
    RECORD_SUFFIXES,
    TFDS_FEATURES_NAME,
    TFDS_INFO_NAME,
    is_tfds_info,
    without_features,
)
from recordsmith.format.wire import HEAD_BYTES, detect_other_format
from recordsmith.format.wire.compression import GZIP_MAGIC
from recordsmith.sources.archives.array_layout import has_role
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.known_names import ARCHIVE_SUFFIXES, LEROBOT_INFO_NAME, is_array_name
from recordsmith.sources.layouts import Confidence, LayoutCandidate, marked
from recordsmith.sources.splits import find_split

_MAX_ARRAYS = 50
_MAX_INFOS = 10


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield how a folder can be read as shards, tar archives and arrays."""
    names = {
        path: scan.names for path, scan in tree.folders.items() if TFDS_INFO_NAME in scan.names
    }
    infos = sorted((path for path in names if MANIFEST_NAME not in names[path]), reverse=True)
    described = [path for path in infos if TFDS_FEATURES_NAME in names[path]]
    bare = [
        path
        for path in infos[:_MAX_INFOS]
        if path not in described and is_tfds_info(tree.place(path))
    ]
    if described:  # the last version, if there are several
        what = f"TensorFlow Datasets' {posixpath.join(described[0], TFDS_FEATURES_NAME)}"
        yield marked("tfds", what, "records")
    elif bare:
        what = f"TensorFlow Datasets' {posixpath.join(bare[0], TFDS_INFO_NAME)}"
        yield replace(
            marked("tfds", what, "records"),
            problem=f"the folder has no {TFDS_FEATURES_NAME}, which describes the features",
            remedy=without_features(tree.place(bare[0])),
        )
    meta = tree.folders.get(posixpath.dirname(LEROBOT_INFO_NAME))
    is_info = meta is not None and posixpath.basename(LEROBOT_INFO_NAME) in meta.names
    if is_info and b'"codebase_version"' in tree.head(LEROBOT_INFO_NAME):
        tables = tuple(tree.files(".parquet", ".jsonl"))
        yield replace(marked("lerobot", "a LeRobot dataset", "episodes"), files=tables)
    for candidate in (_shards(tree, {*described, *bare}), _archives(tree), _arrays(tree)):
        if candidate is not None:
            yield candidate


def _shards(tree: FileTree, tfds: Container[str]) -> LayoutCandidate | None:
    """TFRecord files outside of the folders of TensorFlow Datasets, which are more than records."""
    shards = [
        path
        for path in _paths(tree, 0)
        if ("/" not in path or find_split(path))
        and any(suffix in path.lower() for suffix in RECORD_SUFFIXES)
        and posixpath.dirname(path) not in tfds
    ]
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
    for path in tree.files(*ARCHIVE_SUFFIXES, depth=1):
        if "/" in path and any(tree.files(*ARCHIVE_SUFFIXES, depth=0)):
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
    arrays = list(filter(is_array_name, paths))
    idx = [path for path in arrays if not path.lower().endswith((".npy", ".npz"))]
    if idx:
        return marked("arrays", f"idx files such as {idx[0]}")
    images = sum(folder.image_count for folder in tree.folders.values())
    named = [path for path in arrays if path.lower().endswith(".npz") or has_role(path)]
    if not named or len(arrays) > _MAX_ARRAYS or images:
        return None
    return LayoutCandidate("arrays", f"arrays in {named[0]}", Confidence.ANNOTATED)
