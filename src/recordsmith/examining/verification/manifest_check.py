"""Do the shards, and what lies beside them, agree with the manifest and with their names?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recordsmith.dataset.labels import LABEL_MAP_NAME, LABELS_NAME, read_label_map, read_labels
from recordsmith.dataset.locate import Located, looks_like_records
from recordsmith.dataset.manifest import MANIFEST_NAME, Manifest, ShardEntry
from recordsmith.dataset.names import parse_shard_name
from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, Defect, FileAccessError, OptionError
from recordsmith.examining.verification.report import ShardFindings
from recordsmith.files import list_folder
from recordsmith.wire import Compression

_CHANGED = "It was changed, replaced or mixed up with another after it was packed."


def check_labels(located: Located) -> list[CorruptDataError]:
    """`labels.txt` must say what the manifest says, and so must a label map, if there is one."""
    manifest = located.manifest
    if manifest is None or manifest.class_names is None or not located.shards:
        return []
    folder = located.shards[0].path.parent
    wrong = []
    if read_labels(folder) != manifest.class_names:
        wrong.append(LABELS_NAME)
    label_map = folder / LABEL_MAP_NAME
    if label_map.is_file():
        try:
            if read_label_map(label_map) != manifest.class_names:
                wrong.append(LABEL_MAP_NAME)
        except (OptionError, FileAccessError):
            wrong.append(LABEL_MAP_NAME)
    return [
        CorruptDataError(
            Defect.LABELS,
            f"{name} does not name the classes that the manifest names. One of them was "
            "changed after packing, or the file is missing.",
            path=folder / name,
        )
        for name in wrong
    ]


def find_extra_shards(located: Located, split: str | None) -> list[CorruptDataError]:
    """Files that pass for shards of the dataset, and are none of it."""
    if located.manifest is not None and located.folder is not None:
        return _find_unlisted(located.folder, located.manifest, split)
    return _find_mixed_sets(located)


def _find_unlisted(folder: Path, manifest: Manifest, split: str | None) -> list[CorruptDataError]:
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
    extra = []
    for found in list_folder(folder):
        number = parse_shard_name(found.name)
        if number is None or found.name in listed:
            continue
        if listed and number.split not in counts:
            continue
        of_split, count = counts.get(number.split, (number.split, 0))  # none is listed at all
        path = folder / found.name
        if (split is not None and of_split != split) or not _is_records(path):
            continue
        what = (
            f"it says that there are {number.shard_count} shards of {of_split!r}, the manifest "
            f"lists {count}: it belongs to another dataset, or to an earlier packing"
            if number.shard_count != count
            else "the manifest does not list it"
        )
        extra.append(
            CorruptDataError(
                Defect.EXTRA_SHARD,
                f"{what}. Readers that take all files of this folder get its records too. Move it "
                "away.",
                path=path,
            )
        )
    return extra


def _is_records(path: Path) -> bool:
    try:
        return path.is_file() and looks_like_records(path)
    except FileAccessError:
        return True


def _find_mixed_sets(located: Located) -> list[CorruptDataError]:
    """Without a manifest the names tell: shards 'of 2' and 'of 3' of one split are two sets."""
    sets: dict[tuple[Path, str], dict[int, list[Path]]] = {}
    for shard in located.shards:
        number = parse_shard_name(shard.path.name)
        if number is not None:
            of_split = sets.setdefault((shard.path.parent, number.split), {})
            of_split.setdefault(number.shard_count, []).append(shard.path)
    extra = []
    for (_, split), by_count in sets.items():
        if len(by_count) < 2:
            continue
        # the set that is most complete is taken for the right one, the larger of equals
        best = max(by_count, key=lambda count: (len(by_count[count]) / max(1, count), count))
        for count, paths in sorted(by_count.items()):
            extra += [
                CorruptDataError(
                    Defect.EXTRA_SHARD,
                    f"its name says that there are {count} shards of {split!r}; beside it lie "
                    f"{len(by_count[best])} that say {best}. They are of two datasets, or of two "
                    "packings of one, whose records are then there twice. Move one of the sets "
                    "away.",
                    path=path,
                )
                for path in paths
                if count != best
            ]
    return extra


def compare(located: Located, found: Sequence[ShardFindings]) -> None:
    """Hold what was found in the shards against their entries; what differs is added there."""
    if all(shard.entry is None for shard in located.shards):
        return
    entries = {
        (entry.size_bytes, entry.crc32c): entry
        for shard in located.shards
        if (entry := shard.entry) is not None
    }
    holds = {  # what is really in each file
        shard.entry.file: entries.get((findings.size_bytes, findings.checksum))
        for shard, findings in zip(located.shards, found, strict=True)
        if shard.entry is not None and findings.checksum is not None
    }
    for shard, findings in zip(located.shards, found, strict=True):
        if shard.entry is not None and findings.is_read:
            findings.add(_differences(shard.entry, findings, holds))


def check_compression(located: Located, found: Sequence[ShardFindings]) -> list[CorruptDataError]:
    """The manifest must say how its shards are compressed; those that are as listed prove it."""
    wrong: dict[Path, list[tuple[Shard, Compression]]] = {}
    for shard, findings in zip(located.shards, found, strict=True):
        entry, compression = shard.entry, findings.compression
        if entry is None or compression is None or not findings.size_bytes:
            continue
        if (findings.size_bytes, findings.checksum) != (entry.size_bytes, entry.crc32c):
            continue
        if compression != shard.compression:
            wrong.setdefault(shard.path.parent, []).append((shard, compression))
    return [
        CorruptDataError(
            Defect.BROKEN_MANIFEST,
            f"the manifest says that the compression is {shards[0][0].compression}; by its bytes "
            f"that of {shards[0][0].path.name} is {shards[0][1]}, and {len(shards)} shards differ "
            "so. Records cannot be read by position like this; fetch the manifest again, or pack "
            "again.",
            path=folder / MANIFEST_NAME,
        )
        for folder, shards in wrong.items()
    ]


def check_total(located: Located, found: Sequence[ShardFindings]) -> list[CorruptDataError]:
    """The manifest's number of records must be the sum of its shards'."""
    manifest, folder = located.manifest, located.folder
    if manifest is None or folder is None or manifest.told_total in (None, manifest.record_count):
        return []
    if any(error.defect is Defect.RECORD_COUNT for shard in found for error in shard.defects):
        return []  # said already: it is a shard's count that is false
    return [
        CorruptDataError(
            Defect.BROKEN_MANIFEST,
            f"the manifest says that there are {manifest.told_total!r:.60} records; those of its "
            f"shards are {manifest.record_count}. It was changed after packing; fetch it again.",
            path=folder / MANIFEST_NAME,
        )
    ]


def _differences(
    entry: ShardEntry, findings: ShardFindings, holds: dict[str, ShardEntry | None]
) -> list[CorruptDataError]:
    """Says only what the records have not said already."""
    if (findings.size_bytes, findings.checksum) == (entry.size_bytes, entry.crc32c):
        if findings.is_good and findings.record_count != entry.record_count:
            return [_count_differs(entry, findings)]
        return []
    other = holds.get(entry.file)
    if other is not None and other.file != entry.file:
        back = holds.get(other.file)
        both = back is not None and back.file == entry.file
        return [
            CorruptDataError(
                Defect.SWAPPED_SHARD,
                f"it holds what the manifest lists as {other.file}"
                + (
                    f", and {other.file} holds what belongs here: the two were swapped. Exchange "
                    "their names."
                    if both
                    else f". It is a copy of that file under this name; fetch {entry.file} again."
                ),
            )
        ]
    if findings.size_bytes != entry.size_bytes:
        return [_differs(Defect.SHARD_SIZE, f"{findings.size_bytes} bytes", f"{entry.size_bytes}")]
    if not findings.is_good or findings.checksum is None:
        return []
    differences = [
        _differs(Defect.SHARD_CHECKSUM, f"checksum {findings.checksum:08x}", f"{entry.crc32c:08x}")
    ]
    if findings.record_count != entry.record_count:
        differences.append(_count_differs(entry, findings))
    return differences


def _count_differs(entry: ShardEntry, findings: ShardFindings) -> CorruptDataError:
    return _differs(
        Defect.RECORD_COUNT, f"{findings.record_count} records", f"{entry.record_count}"
    )


def _differs(defect: Defect, found: str, expected: str) -> CorruptDataError:
    return CorruptDataError(
        defect, f"the shard has {found}, its manifest says {expected}. {_CHANGED}"
    )
