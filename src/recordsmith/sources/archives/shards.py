"""Existing TFRecord files as a source: the same records in other shards.

Payloads are copied unchanged. Compressed shards are first decompressed into a temporary file,
because they cannot be read at random.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import ClassNames, Shard, carried_class_names
from recordsmith.dataset import open as open_dataset
from recordsmith.dataset.decompressing import decompress
from recordsmith.dataset.shard_sequence import OpenShards
from recordsmith.dataset.splits import split_word
from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.files.files_reader import (
    FilesReader,
    below_common_folder,
    versions_of,
)
from recordsmith.sources.files.paths import common_version, last_name
from recordsmith.sources.numbered import RowNames, SampleTable, split_coding
from recordsmith.sources.problems import join_names
from recordsmith.sources.source import Listing, Note, Sample, ignore_note
from recordsmith.sources.splits import joined_notice, only_split, shard_splits
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.wire import FRAME_BYTES, RecordBlock


class Shards:
    """The records of TFRecord files, with unchanged payloads.

    Several splits are kept: those in the manifest, in the names of shards
    (`train-00000-of-00002.tfrecord`, `flowers_test.tfrecord`), or in their folders (`train/`,
    `val/`); files without a split in their names share one. A single split is not kept, so that
    its records can be split again. Class names are kept; labels in records are not read.

    Example:
        >>> rs.pack(rs.Shards("old"), "new", shards=16)  # doctest: +SKIP
    """

    def __init__(self, paths: PlaceLike | list[PlaceLike] | tuple[PlaceLike, ...]) -> None:
        """
        Args:
            paths: a file, a folder, a glob pattern, or a list of these, as in `recordsmith.open`.
        """
        self._paths = paths

    def __repr__(self) -> str:
        return f"Shards({self._paths!r})"

    @property
    def root(self) -> Location | None:
        """The folder that is read, if it is one."""
        if isinstance(self._paths, (str, os.PathLike)):
            folder = as_folder(self._paths)
            return folder if folder.is_folder() else None
        return None

    def list_samples(self) -> Listing:
        """Find all records.

        Raises:
            SourceError: there are no records.
            OptionError: there are no TFRecord files.
            CorruptDataError: a shard is damaged, or differs from its manifest.
            FileAccessError: a path does not exist or cannot be read.
        """
        dataset = open_dataset(self._paths)
        shards = dataset.shards
        opened: dict[str, Shard | EncodedRows] = {}
        sizes: list[Int64Array] = []
        notices: list[str] = []
        root, names = below_common_folder([shard.location for shard in shards])
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise OptionError(
                f"the paths include {join_names(twice)} more than once", option="paths"
            )
        for name, shard in zip(names, shards, strict=True):
            if _is_plain(shard):
                opened[name] = shard
                sizes.append(np.diff(shard.index.offsets) - FRAME_BYTES)
            else:
                opened[name] = rows = _encoded(shard, notices)
                sizes.append(rows.sizes)
        rows_of_all = RowNames(dict(zip(names, map(len, sizes), strict=True)))
        if not len(rows_of_all):
            raise SourceError(f"no records in {join_names(names)}", path=self.root)
        split_of_each = shard_splits(shards)
        coded = split_coding(split_of_each, list(map(len, sizes)))
        has_splits = len(coded[0]) > 1
        notices += joined_notice(shards, split_of_each) if has_splits else []
        class_names, has_label_map = self._classes(dataset.class_names)
        files = versions_of(root, names)
        return Listing(
            SampleTable(
                rows_of_all,
                np.concatenate(sizes),
                splits=coded if has_splits else None,
                version=common_version(version for _, version in files),
                references=rows_of_all.reference,
            ),
            ShardReader(root, files).having(opened),
            class_names,
            tuple(notices),
            splits=tuple(coded[0]) if has_splits else (),
            only_split=only_split([split_word(coded[0][0])], self.root),
            has_label_map=has_label_map,
        )

    def describe(self) -> Mapping[str, Any]:
        root = self.root
        if root is not None:
            return {"kind": "Shards", "folder": last_name(root)}
        given = self._paths
        paths = given if isinstance(given, (list, tuple)) else [given]
        return {"kind": "Shards", "files": [as_location(path).name for path in paths]}

    def _classes(self, known: ClassNames | None) -> tuple[ClassNames | None, bool]:
        """The class names, and whether they come from a label map."""
        return (
            (known, False)
            if self.root is None
            else carried_class_names(as_folder(self.root), known)
        )


@dataclass(frozen=True)
class ShardReader(FilesReader[Shard | EncodedRows]):
    """Reads records by file and number. Elsewhere, a compressed shard is decompressed once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_open_shards", OpenShards())

    def read(self, sample: Sample, note: Note = ignore_note) -> bytes:
        """Read the payload of one record."""
        shard, reference = self.opened(sample)
        if isinstance(shard, EncodedRows):
            return shard.read(reference["row"])
        vars(self)["_open_shards"].use(shard)
        return bytes(shard.read(reference["row"]))

    def _open(self, name: str) -> Mapping[str, Shard | EncodedRows]:
        shard = Shard(self.checked(name), "")
        return {name: shard if _is_plain(shard) else _encoded(shard, [])}


def _is_plain(shard: Shard) -> bool:
    return not shard.size_bytes or shard.compression == "none"


def _encoded(shard: Shard, notices: list[str]) -> EncodedRows:
    """The records of a compressed shard; adds to `notices`."""
    rows = EncodedRows()

    def put(block: RecordBlock) -> None:
        for payload in block.payloads():
            rows.append(bytes(payload))

    notices += decompress(shard.location, shard.compression, shard.known_record_count, put)
    rows.finish()
    return rows
