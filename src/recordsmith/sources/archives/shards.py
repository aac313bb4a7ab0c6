"""Existing TFRecord files as a source: the same records, unchanged, in other shards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recordsmith.dataset import (
    ClassNames,
    Located,
    OpenShards,
    Shard,
    background_notices,
    carried_class_names,
    locate_whole,
    split_word,
)
from recordsmith.format.example import BytesArray, ColumnDecoder, FeatureSpec, merged
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_tree import TreeSource
from recordsmith.sources.files.files_reader import FilesReader, below_common_folder, versions_of
from recordsmith.sources.files.paths import common_version, last_name
from recordsmith.sources.numbered import Coding, RowNames, SampleTable, split_coding
from recordsmith.sources.problems import join_names
from recordsmith.sources.samples import Note, Sample, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import joined_notice, only_split, shard_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.support.errors import OptionError, SourceError, located

_DOCUMENTS = ("dataset.json", "labels.txt", "*.pbtxt", "*.idx", "*.index", "dataset_info.json")


class Shards(TreeSource):
    """The records of TFRecord files, with unchanged payloads.

    Several splits are kept: those in the manifest, in the names of shards
    (`train-00000-of-00002.tfrecord`, `flowers_test.tfrecord`), or in their folders (`train/`,
    `val/`); files without a split in their names share one. A single split is not kept, so that
    its records can be split again. Class names are kept; labels in records are not read.

    Example:
        rs.pack(rs.Shards("copy"), "new", shards=16)
    """

    def __init__(
        self,
        paths: PlaceLike | list[PlaceLike] | tuple[PlaceLike, ...],
        *,
        group_column: str | None = None,
    ) -> None:
        """
        Args:
            paths: a file, a folder, a glob pattern, or a list of these, as in `recordsmith.open`.
            group_column: the feature with the group of each record: a patient, a video. All records
                are read to list them.
        """
        self._paths = paths
        self._group = group_column

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
            SourceError: there are no records, or shards are compressed.
            OptionError: there are no TFRecord files.
            CorruptDataError: a shard is damaged, or differs from its manifest.
            FileAccessError: a path does not exist or cannot be read.
        """
        located = locate_whole(self._paths)
        shards = located.shards
        root, names = below_common_folder([shard.location for shard in shards])
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise OptionError(
                f"the paths include {join_names(twice)} more than once", option="paths"
            )
        for shard in shards:
            check_uncompressed(shard)
        sizes = [shard.sizes(np.arange(shard.record_count)) for shard in shards]
        rows_of_all = RowNames(dict(zip(names, map(len, sizes), strict=True)))
        if not len(rows_of_all):
            raise SourceError(f"no records in {join_names(names)}", path=self.root)
        split_of_each = shard_splits(shards)
        coded = split_coding(split_of_each, list(map(len, sizes)))
        has_splits = len(coded[0]) > 1
        class_names, has_label_map = self._classes(located)
        notices = background_notices(class_names) if has_label_map else []
        layers = {
            name: [_below(root, layer.location) for layer in shard.layers]
            for name, shard in zip(names, shards, strict=True)
            if shard.layers
        }
        files = versions_of(root, [*names, *(file for own in layers.values() for file in own)])
        listing = Listing(
            SampleTable(
                rows_of_all,
                np.concatenate(sizes),
                splits=coded if has_splits else None,
                groups=None if self._group is None else _read_groups(shards, self._group),
                version=common_version(version for _, version in files),
                references=rows_of_all.reference,
            ),
            ShardReader(root, files, layers).having(dict(zip(names, shards, strict=True))),
            class_names,
            [*notices, *(joined_notice(shards, split_of_each) if has_splits else ())],
            splits=tuple(coded[0]) if has_splits else (),
            only_split=only_split([split_word(coded[0][0])], self.root),
            has_label_map=has_label_map,
            dataset_paths=self._paths,
            keypoint_classes=located.keypoint_classes,
        )
        return listing.with_account(
            self._files_account(
                Role.RECORDS,
                (file.location for shard in shards for file in (shard, *shard.layers)),
                _DOCUMENTS,
            )
        )

    def describe(self) -> Mapping[str, Any]:
        root = self.root
        group = {} if self._group is None else {"group_column": self._group}
        if root is not None:
            return {"kind": "Shards", "folder": last_name(root), **group}
        given = self._paths
        paths = given if isinstance(given, (list, tuple)) else [given]
        return {"kind": "Shards", "files": [as_location(path).name for path in paths], **group}

    def _classes(self, located: Located) -> tuple[ClassNames | None, bool]:
        """The class names, and whether they come from a label map."""
        names, has_label_map = located.class_names, located.label_map is not None
        if self.root is not None:
            names, has_one = carried_class_names(as_folder(self.root), names)
            has_label_map |= has_one
        return names, has_label_map


@dataclass(frozen=True)
class ShardReader(FilesReader[Shard]):
    """Reads records by file and number.

    layers: the files of layers of a shard, by its name.
    """

    layers: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    _open_shards: OpenShards = field(
        default_factory=OpenShards, init=False, repr=False, compare=False
    )

    def read(self, sample: Sample, note: Note = ignore_note) -> bytes:
        shard, reference = self.opened(sample)
        self._open_shards.use(shard)
        payload = shard.read(reference["row"])
        return merged(payload) if shard.layers else bytes(payload)

    def _open(self, name: str) -> Mapping[str, Shard]:
        shard = Shard(self.checked(name), "")
        files = self.layers.get(name, ())
        shard.layers = tuple(Shard(self.checked(file), "") for file in files)
        return {name: shard}


def _below(root: Location, file: Location) -> str:
    return file.absolute().key.removeprefix(f"{root.key}/")


def _read_groups(shards: Iterable[Shard], key: str) -> Coding:
    """The group of each record: the value of a feature, -1 where it is missing."""
    numbers: dict[Any, int] = {}
    codes = [np.empty(0, np.int32)]
    for shard in shards:
        with located(shard.location):
            for block in shard.blocks():
                decoder = ColumnDecoder({key: FeatureSpec(shape="ragged")})
                decoder.append(block.buffer, block.starts, block.lengths)
                column: Any = decoder.finish(is_strict=False).get(key)
                found = np.full(len(block), -1, np.int32)
                if column is not None:
                    values, lengths = column.values, column.lengths
                    if lengths.max(initial=0) > 1 or getattr(values, "dtype", None) == np.float32:
                        raise OptionError(
                            f"feature {key!r} does not name groups: it has floats or lists",
                            option="group_column",
                            value=key,
                        )
                    is_text = isinstance(values, BytesArray)
                    texts = map(bytes, values.views()) if is_text else values.tolist()
                    own = [numbers.setdefault(text, len(numbers)) for text in texts]
                    found[lengths > 0] = own
                codes.append(found)
    if not numbers:
        raise OptionError(f"no record has the feature {key!r}", option="group_column", value=key)
    names = [
        name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
        for name in numbers
    ]
    return names, np.concatenate(codes)


def check_uncompressed(shard: Shard) -> None:
    """Check that a shard can be read at random."""
    if shard.size_bytes and shard.compression != "none":
        raise SourceError(
            f"the shard is compressed with {shard.compression}",
            path=shard.location,
            remedy="Decompress it: `recordsmith reshard FOLDER OUT --compression none`.",
        )
