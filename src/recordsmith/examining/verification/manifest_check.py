"""Compares shards and label files with the manifest, and shards with their numbered names."""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.dataset.labels import LABEL_MAP_NAME, LABELS_NAME, read_label_map, read_labels
from recordsmith.dataset.locate import ListedFolder, Located, looks_like_records
from recordsmith.dataset.manifest import MANIFEST_NAME, Manifest, ShardEntry
from recordsmith.dataset.names import parse_shard_name
from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, DataError, Defect, FileAccessError, OptionError
from recordsmith.examining.verification.verify_report import ShardFindings
from recordsmith.stores import Location
from recordsmith.wire import Compression

_CHANGED = "The shard was changed, replaced or mixed up with another after packing."
_FETCH = "Fetch the manifest again."


def check_labels(located: Located) -> list[DataError]:
    """Check that `labels.txt` and the label map, if any, list the classes of the manifest."""
    manifest = located.manifest
    if manifest is None or manifest.class_names is None or not located.shards:
        return []
    folder = located.shards[0].location.parent
    wrong = []
    if read_labels(folder) != manifest.class_names:
        wrong.append(LABELS_NAME)
    label_map = folder / LABEL_MAP_NAME
    has_label_map = (
        label_map.exists() if located.listing is None else located.listing.has(LABEL_MAP_NAME)
    )
    if has_label_map:
        try:
            if read_label_map(label_map) != manifest.class_names:
                wrong.append(LABEL_MAP_NAME)
        except (OptionError, FileAccessError):
            wrong.append(LABEL_MAP_NAME)
    return [
        CorruptDataError(
            Defect.LABELS,
            "the class names differ from the manifest",
            remedy=f"One was changed after packing, or {name} is missing. Fetch both again.",
            path=folder / name,
        )
        for name in wrong
    ]


def find_extra_shards(located: Located, split: str | None) -> list[DataError]:
    """Find files that look like shards of the dataset but do not belong to it."""
    if located.manifest is not None and located.listing is not None:
        return _find_unlisted(located.listing, located.manifest, split)
    return _find_mixed_sets(located)


def _find_unlisted(folder: ListedFolder, manifest: Manifest, split: str | None) -> list[DataError]:
    counts = {}
    listed = set()
    for name, entries in manifest.splits.items():
        if not entries:
            counts[name] = (name, 0)
        for entry in entries:
            listed.add(entry.file)
            number = parse_shard_name(entry.file)
            if number is not None:
                counts[number.split] = (name, len(entries))
    extra: list[DataError] = []
    for name in (entry.name for entry in folder.objects):
        number = parse_shard_name(name)
        if number is None or name in listed:
            continue
        location = folder.location / name
        if listed and number.split not in counts:
            continue
        of_split, count = counts.get(
            number.split, (number.split, 0)
        )  # 0: the manifest lists no shard
        if (split is not None and of_split != split) or not _is_records(location):
            continue
        if number.shard_count == count:
            error = CorruptDataError(Defect.EXTRA_SHARD, "the manifest does not list this file")
        else:
            error = CorruptDataError(
                Defect.EXTRA_SHARD,
                f"the number of shards of {of_split!r} in the file name differs from the manifest",
                found=str(number.shard_count),
                expected=str(count),
                remedy="The file belongs to another dataset or an earlier version.",
            )
        error.path = str(location)
        error.advise(
            "Readers that take all files of this folder also read its records. Move it to another "
            "folder."
        )
        extra.append(error)
    return extra


def _is_records(location: Location) -> bool:
    try:
        return looks_like_records(location)
    except FileAccessError:
        return True


def _find_mixed_sets(located: Located) -> list[DataError]:
    """Compare names if there is no manifest: shards 'of 2' and 'of 3' are two sets."""
    sets: dict[tuple[Location, str], dict[int, list[Location]]] = {}
    for shard in located.shards:
        number = parse_shard_name(shard.location.name)
        if number is not None:
            of_split = sets.setdefault((shard.location.parent, number.split), {})
            of_split.setdefault(number.shard_count, []).append(shard.location)
    extra: list[DataError] = []
    for (_, split), by_count in sets.items():
        if len(by_count) < 2:
            continue
        # the most complete set counts as the right one; the larger one of equals
        best = max(by_count, key=lambda count: (len(by_count[count]) / max(1, count), count))
        for count, paths in sorted(by_count.items()):
            extra += [
                CorruptDataError(
                    Defect.EXTRA_SHARD,
                    f"the number of shards of {split!r} in the name differs from "
                    f"{len(by_count[best])} other shards in the folder",
                    found=str(count),
                    expected=str(best),
                    remedy="The folder holds two datasets, or one dataset twice. Move one of the "
                    "sets to another folder.",
                    path=path,
                )
                for path in paths
                if count != best
            ]
    return extra


def compare(located: Located, found: Sequence[ShardFindings]) -> None:
    """Compare the findings of shards with their manifest entries, and add what differs."""
    if all(shard.entry is None for shard in located.shards):
        return
    entries = {
        (entry.size_bytes, entry.crc32c): entry
        for shard in located.shards
        if (entry := shard.entry) is not None
    }
    holds = {  # the actual content of each file
        shard.entry.file: entries.get((findings.size_bytes, findings.checksum))
        for shard, findings in zip(located.shards, found, strict=True)
        if shard.entry is not None and findings.checksum is not None
    }
    for shard, findings in zip(located.shards, found, strict=True):
        if shard.entry is not None and findings.is_read:
            findings.add(_differences(shard.entry, findings, holds))


def check_compression(located: Located, found: Sequence[ShardFindings]) -> list[DataError]:
    """Compare the compression in the manifest with that of shards that match their entries."""
    wrong: dict[Location, list[tuple[Shard, Compression]]] = {}
    for shard, findings in zip(located.shards, found, strict=True):
        entry, compression = shard.entry, findings.compression
        if entry is None or compression is None or not findings.size_bytes:
            continue
        if (findings.size_bytes, findings.checksum) != (entry.size_bytes, entry.crc32c):
            continue
        if compression != shard.compression:
            wrong.setdefault(shard.location.parent, []).append((shard, compression))
    return [
        CorruptDataError(
            Defect.BROKEN_MANIFEST,
            f"the compression in the manifest differs from {len(shards)} shards",
            found=shards[0][0].compression,
            expected=f"{shards[0][1]}, as in {shards[0][0].location.name}",
            remedy="Records cannot be read by position. Fetch the manifest again, or pack again.",
            path=folder / MANIFEST_NAME,
        )
        for folder, shards in wrong.items()
    ]


def check_total(located: Located, found: Sequence[ShardFindings]) -> list[DataError]:
    """Check that the total number of records in the manifest is the sum over its shards."""
    manifest, folder = located.manifest, located.folder
    if (
        manifest is None
        or folder is None
        or manifest.stated_record_count in (None, manifest.record_count)
    ):
        return []
    if any(error.defect is Defect.RECORD_COUNT for shard in found for error in shard.defects):
        return []  # reported already: the count of a shard is wrong
    return [
        CorruptDataError(
            Defect.BROKEN_MANIFEST,
            "the total number of records differs from the sum over the shards",
            found=f"{manifest.stated_record_count!r:.60}",
            expected=str(manifest.record_count),
            remedy=f"The manifest was changed after packing. {_FETCH}",
            path=folder / MANIFEST_NAME,
        )
    ]


def _differences(
    entry: ShardEntry, findings: ShardFindings, holds: dict[str, ShardEntry | None]
) -> list[DataError]:
    """Compare a shard with its entry; skip what defects of its records already explain."""
    if (findings.size_bytes, findings.checksum) == (entry.size_bytes, entry.crc32c):
        if findings.is_good and findings.record_count != entry.record_count:
            return [_count_differs(entry, findings)]
        return []
    other = holds.get(entry.file)
    if other is not None and other.file != entry.file:
        content_of_other = holds.get(other.file)
        are_swapped = content_of_other is not None and content_of_other.file == entry.file
        return [
            CorruptDataError(
                Defect.SWAPPED_SHARD,
                f"the shard has the content that the manifest lists as {other.file}",
                remedy=f"Swap the names of this file and {other.file}."
                if are_swapped
                else f"Fetch {entry.file} again.",
            )
        ]
    if findings.size_bytes != entry.size_bytes:
        return [
            CorruptDataError(
                Defect.SHARD_SIZE,
                "the size of the shard differs from the manifest",
                found=f"{findings.size_bytes} bytes",
                expected=str(entry.size_bytes),
                remedy=_CHANGED,
            )
        ]
    if not findings.is_good or findings.checksum is None:
        return []
    differences: list[DataError] = [
        CorruptDataError(
            Defect.SHARD_CHECKSUM,
            "the checksum of the shard differs from the manifest",
            found=f"{findings.checksum:08x}",
            expected=f"{entry.crc32c:08x}",
            remedy=_CHANGED,
        )
    ]
    if findings.record_count != entry.record_count:
        differences.append(_count_differs(entry, findings))
    return differences


def _count_differs(entry: ShardEntry, findings: ShardFindings) -> DataError:
    return CorruptDataError(
        Defect.RECORD_COUNT,
        "the number of records in the shard differs from the manifest",
        found=str(findings.record_count),
        expected=str(entry.record_count),
        remedy=_CHANGED,
    )
