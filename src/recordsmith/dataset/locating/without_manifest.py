"""Finds the shards of a folder without a manifest.

These are all TFRecord files in it; if there are none, those in its split folders (`train/`,
`valid/`). A folder of TensorFlow Datasets has the shards of its `dataset_info.json`.
"""

from __future__ import annotations

from msgspec.structs import replace

from recordsmith.dataset.locating.class_names import common_names, names_in
from recordsmith.dataset.locating.located import ListedFolder, Located, missing_shard
from recordsmith.dataset.locating.no_shards import no_shards_error
from recordsmith.dataset.locating.record_files import compare_names, records_in, visible_files
from recordsmith.dataset.manifest import MANIFEST_NAME
from recordsmith.dataset.names import (
    DONE_SUFFIX,
    INTERNAL_FOLDER,
    PARTIAL_SUFFIX,
    TFDS_FEATURES_NAME,
    TFDS_INFO_NAME,
    is_split_name,
    parse_shard_name,
    shard_name,
    split_of,
)
from recordsmith.support.errors import CorruptDataError, Defect

_MAX_MISSING = 1000
"""The maximum of missing shards of a split that are listed."""


def locate_files(folder: ListedFolder) -> Located:
    """Find the TFRecord files in a folder, or otherwise in its split folders."""
    located, other = _files_of(folder)
    if located.shards:
        return located
    _check_unfinished(folder)
    parts = [_files_of(below)[0] for below in _folders_of_splits(folder)]
    shards = [shard for part in parts for shard in part.shards]
    if not shards:
        raise no_shards_error(folder, other)
    names, label_map = located.class_names, located.label_map
    if names is None or label_map is not None:
        named = [part for part in (located, *parts) if part.class_names is not None]
        names, label_map = common_names(named)
    return Located(
        shards,
        class_names=names,
        label_map=label_map,
        missing=tuple(missing for part in parts for missing in part.missing),
    )


def _files_of(folder: ListedFolder) -> tuple[Located, list[str]]:
    shards = []
    numbered: dict[tuple[str, int], set[int]] = {}
    files = visible_files(folder)
    records = records_in(folder)
    for name in records:
        shards.append(folder.shard(name, split_of(name)))
        parsed = parse_shard_name(name)
        if parsed is not None:
            numbered.setdefault((parsed.split, parsed.shard_count), set()).add(parsed.number)
    shards.sort(key=lambda shard: shard.split)
    missing = []
    for (split, count), numbers in numbered.items():
        for number in _missing_numbers(numbers, count):
            location = folder.location / shard_name(split, number, count)
            problem = f"shard {number} of {count} of split {split!r} is missing"
            missing.append(missing_shard(split, location, problem))
    known = {*records}
    other = [name for name in files if name not in known]
    names, label_map = names_in(folder)
    located = Located(shards, class_names=names, missing=tuple(missing), label_map=label_map)
    return located, other


def _folders_of_splits(folder: ListedFolder) -> list[ListedFolder]:
    """The folders with names of splits; empty if one of them is a dataset itself."""
    names = [name for name in folder.folders if is_split_name(name)]
    folders = [ListedFolder(folder.location / name) for name in names]
    return [] if any(below.has(MANIFEST_NAME) for below in folders) else folders


def _missing_numbers(numbers: set[int], count: int) -> list[int]:
    """The first missing numbers; limited, because file names can have any number and count."""
    stop = min(count, max(numbers) + 2, len(numbers) + _MAX_MISSING)
    return [number for number in range(stop) if number not in numbers][:_MAX_MISSING]


def _check_unfinished(folder: ListedFolder) -> None:
    if INTERNAL_FOLDER not in folder.entries:
        return
    internal = folder.location / INTERNAL_FOLDER
    names = [location.name for location in internal.list()]
    if any(
        name.endswith((PARTIAL_SUFFIX, DONE_SUFFIX)) and not name.startswith(".") for name in names
    ):
        done = sum(name.endswith(DONE_SUFFIX) for name in names)
        raise CorruptDataError(
            Defect.UNFINISHED_DATASET,
            "the job that writes this dataset is running or was interrupted, with "
            f"{done:,} complete {'shard' if done == 1 else 'shards'} in {internal}",
            remedy="Rerun the same job to resume, or remove the folder.",
            path=folder.location,
        )


def locate_tfds(folder: ListedFolder) -> Located | None:
    """The shards that TensorFlow Datasets lists; None if the folder is not one of TFDS.

    Without `features.json`, which old versions did not write, at least one shard must exist. A
    document that lists no shards names the splits of those that exist.
    """
    if not folder.has(TFDS_INFO_NAME):
        return None
    from recordsmith.dataset.tfds.folder import class_names_in, is_tfds_info, read_info

    has_features = folder.has(TFDS_FEATURES_NAME)
    if not has_features and not is_tfds_info(folder.location):  # other libraries use the name, too
        return None
    info = read_info(folder.location)
    if info.file_format != "tfrecord":
        return None
    shards, missing, record_counts = [], [], {}
    for split in info.splits:
        names = split.file_names(info.name)
        for name, record_count in zip(names, split.shard_lengths, strict=True):
            if folder.has(name):
                shards.append(folder.shard(name, split.name))
                record_counts[shards[-1].location] = record_count
                continue
            problem = f"{TFDS_INFO_NAME} lists {name}, which is missing"
            missing.append(missing_shard(split.name, folder.location / name, problem))
    if not shards and not missing:
        splits = {f"{info.name}-{split.name}": split.name for split in info.splits}
        names = [name for name in records_in(folder) if split_of(name) in splits]
        shards = [folder.shard(name, splits[split_of(name)]) for name in names]
    located = Located(shards, missing=tuple(missing), record_counts=record_counts)
    located = compare_names(located, folder, TFDS_INFO_NAME)
    if not (located.shards or located.unlisted or has_features):
        return None
    class_names = class_names_in(folder.location, info, list(folder.entries))
    return replace(located, class_names=class_names)
