"""Compares shards and label files with the manifest, and shards with their numbered names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recordsmith.checking.verification.verify_report import ShardFindings
from recordsmith.dataset import (
    LABEL_MAP_NAME,
    LABELS_NAME,
    LAYERS_FOLDER,
    MANIFEST_NAME,
    TFDS_INFO_NAME,
    ListedFolder,
    Located,
    Manifest,
    Shard,
    ShardEntry,
    looks_like_records,
    parse_shard_name,
    read_label_map,
    read_labels,
)
from recordsmith.format.wire import Compression
from recordsmith.stores import Location
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    OptionError,
)

_CHANGED = "The shard was changed, replaced or mixed up with another after packing."


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
        return list(_not_in_manifest(located.listing, located.manifest, split))
    return list(_mixed_sets(located))


def _not_in_manifest(
    folder: ListedFolder, manifest: Manifest, split: str | None
) -> Iterator[DataError]:
    counts = {}  # by the split in names of files: the split, and how many shards are listed
    listed = {entry.file for entries in manifest.splits.values() for entry in entries}
    for name, entries in manifest.splits.items():
        counts[name] = (name, len(entries))
        for entry in entries:
            if (number := parse_shard_name(entry.file)) is not None:
                counts[number.split] = (name, len(entries))
    for name in (entry.name for entry in folder.objects):
        number = parse_shard_name(name)
        if number is None or name in listed or (listed and number.split not in counts):
            continue
        of_split, count = counts.get(number.split, (number.split, 0))
        location = folder.location / name
        if split not in (None, of_split) or not _is_records(location):
            continue
        error = CorruptDataError(Defect.EXTRA_SHARD, "the manifest does not list this file")
        if number.shard_count != count:
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
        yield error


def find_unlisted_layers(located: Located) -> Iterator[DataError]:
    """Find files in the folders of layers that no layer of the manifest lists."""
    manifest, listing = located.manifest, located.listing
    if manifest is None or listing is None:
        return
    files = {layer.name: {one.file for one in layer.shards.values()} for layer in manifest.layers}
    folder = (listing.location / LAYERS_FOLDER).without_links()
    if LAYERS_FOLDER not in listing.entries or not folder.is_folder():
        return
    for entry in folder.list_entries():
        if entry.kind != "folder":
            found = [folder / entry.name]
        else:
            own = (folder / entry.name).without_links()
            listed = files.get(entry.name, set())
            found = [
                own / file.name
                for file in own.list_entries()
                if file.kind != "folder" and file.name not in listed
            ]
        for location in found:
            yield CorruptDataError(
                Defect.EXTRA_SHARD,
                "no layer of the manifest lists this file, so it is not read",
                remedy="An interrupted command has left it, or somebody has put it there. The next "
                "change of the dataset removes what recordsmith has written.",
                path=location,
            )


def _is_records(location: Location) -> bool:
    try:
        return looks_like_records(location)
    except FileAccessError:
        return True


def _mixed_sets(located: Located) -> Iterator[DataError]:
    """Compare names if there is no manifest: shards 'of 2' and 'of 3' are two sets."""
    sets: dict[tuple[Location, str], dict[int, list[Location]]] = {}
    for shard in located.shards:
        if (number := parse_shard_name(shard.location.name)) is not None:
            of_split = sets.setdefault((shard.location.parent, number.split), {})
            of_split.setdefault(number.shard_count, []).append(shard.location)
    for (_, split), by_count in sets.items():
        # the most complete set counts as the right one; the larger one of equals
        best = max(by_count, key=lambda count: (len(by_count[count]) / max(1, count), count))
        for count, path in ((c, path) for c, paths in sorted(by_count.items()) for path in paths):
            if count != best:
                yield CorruptDataError(
                    Defect.EXTRA_SHARD,
                    f"the number of shards of {split!r} in the name differs from "
                    f"{len(by_count[best])} other shards in the folder",
                    found=str(count),
                    expected=str(best),
                    remedy="The folder holds two datasets, or one dataset twice. Move one of the "
                    "sets to another folder.",
                    path=path,
                )


def compare(
    located: Located, found: Sequence[ShardFindings]
) -> Iterator[tuple[ShardFindings | None, DataError]]:
    """Yield defects with the shard that differs from its entry; None for those of the manifest."""
    pairs = [
        (s, entry, f) for s, f in zip(located.shards, found, strict=True) if (entry := s.entry)
    ]
    entries = {(entry.size_bytes, entry.crc32c): entry for _, entry, _ in pairs}
    holds = {  # the actual content of each file
        entry.file: entries.get((findings.size_bytes, findings.checksum))
        for _, entry, findings in pairs
        if findings.checksum is not None
    }
    wrong: dict[Location, list[tuple[Shard, Compression]]] = {}
    is_explained = False
    for shard, entry, findings in pairs:
        compression, actual = findings.compression, (findings.size_bytes, findings.checksum)
        for error in [*_differences(entry, findings, holds)] if findings.is_read else ():
            is_explained |= error.defect is Defect.RECORD_COUNT
            yield findings, error
        is_listed = actual == (entry.size_bytes, entry.crc32c) and findings.size_bytes
        if is_listed and compression is not None and compression != shard.compression:
            wrong.setdefault(shard.location.parent, []).append((shard, compression))
    for place, shards in wrong.items():
        shard, compression = shards[0]
        yield (
            None,
            CorruptDataError(
                Defect.BROKEN_MANIFEST,
                f"the compression in the manifest differs from {len(shards)} shards",
                found=shard.compression,
                expected=f"{compression}, as in {shard.location.name}",
                remedy="Records cannot be read by position. Fetch the manifest again, or pack "
                "again.",
                path=place / MANIFEST_NAME,
            ),
        )
    for shard, findings in zip(located.shards, found, strict=True):
        expected = located.record_counts.get(shard.location, findings.record_count)
        if findings.is_read and not findings.defects and findings.record_count != expected:
            yield (
                findings,
                CorruptDataError(
                    Defect.RECORD_COUNT,
                    f"the number of records in the shard differs from {TFDS_INFO_NAME}",
                    found=str(findings.record_count),
                    expected=str(expected),
                    remedy=_CHANGED,
                ),
            )
    manifest, folder = located.manifest, located.folder
    if manifest is None or folder is None:
        return
    counts = {"total number of records": manifest.stated_record_count}
    if manifest.shards:
        counts["number of records in the schema"] = manifest.schema.record_count
    for name, stated in counts.items():
        if stated in (None, manifest.record_count) or is_explained:
            continue
        yield (
            None,
            CorruptDataError(
                Defect.BROKEN_MANIFEST,
                f"the {name} differs from the sum over the shards",
                found=f"{stated!r:.60}",
                expected=str(manifest.record_count),
                remedy="The manifest was changed after packing. Fetch the manifest again.",
                path=folder / MANIFEST_NAME,
            ),
        )


def _differences(
    entry: ShardEntry, findings: ShardFindings, holds: dict[str, ShardEntry | None]
) -> Iterator[DataError]:
    """Compare a shard with its entry; skip what defects of its records already explain."""
    is_listed = (findings.size_bytes, findings.checksum) == (entry.size_bytes, entry.crc32c)
    other = holds.get(entry.file)
    if not is_listed and other is not None and other.file != entry.file:
        content_of_other = holds.get(other.file)
        are_swapped = content_of_other is not None and content_of_other.file == entry.file
        yield CorruptDataError(
            Defect.SWAPPED_SHARD,
            f"the shard has the content that the manifest lists as {other.file}",
            remedy=f"Swap the names of this file and {other.file}."
            if are_swapped
            else f"Fetch {entry.file} again.",
        )
        return
    if findings.size_bytes != entry.size_bytes:
        yield CorruptDataError(
            Defect.SHARD_SIZE,
            "the size of the shard differs from the manifest",
            found=f"{findings.size_bytes} bytes",
            expected=str(entry.size_bytes),
            remedy=_CHANGED,
        )
        return
    if not findings.is_good or findings.checksum is None:
        return
    if not is_listed:
        yield CorruptDataError(
            Defect.SHARD_CHECKSUM,
            "the checksum of the shard differs from the manifest",
            found=f"{findings.checksum:08x}",
            expected=f"{entry.crc32c:08x}",
            remedy=_CHANGED,
        )
    if findings.record_count != entry.record_count:
        yield CorruptDataError(
            Defect.RECORD_COUNT,
            "the number of records in the shard differs from the manifest",
            found=str(findings.record_count),
            expected=str(entry.record_count),
            remedy=_CHANGED,
        )
