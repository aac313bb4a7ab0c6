"""Reads and writes the manifest `dataset.json`, which describes a packed dataset.

It is written last, so a dataset with a manifest is complete. It is untrusted: shard names must not
point outside its folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from recordsmith.dataset.documents import (
    NOT_AS_EXPECTED,
    count_in_json,
    describe_fault,
    json_of,
    line_in_json,
)
from recordsmith.dataset.keypoint_classes import (
    KeypointClasses,
    keypoint_classes_in_json,
    keypoint_classes_to_json,
)
from recordsmith.dataset.labels import LABEL_MAP_NAME, LABELS_NAME, ClassNames, class_names_in_json
from recordsmith.dataset.layers import LAYERS_FOLDER, Layer, ShardEntry
from recordsmith.dataset.names import INTERNAL_FOLDER, INTERNAL_NAMES
from recordsmith.format.example import Schema
from recordsmith.format.wire import COMPRESSIONS, Compression
from recordsmith.stores import (
    NOTE_BYTES,
    Location,
    PlaceLike,
    as_folder,
    read_existing,
    read_note,
)
from recordsmith.support.errors import CorruptDataError, Defect, FileAccessError

MANIFEST_NAME = "dataset.json"
BEGUN_NAME = "begun.json"
FORMAT = "recordsmith-dataset"
VERSION = 2

LONGEST_NAME_BYTES = 255
"""The maximum length of a shard's file name on common file systems."""

_CHECKSUM = re.compile("[0-9a-f]{8}")
_MIN_FEATURE_BYTES = 140  # of one feature of a schema in the document

_NO_SHARDS = (MANIFEST_NAME, LABELS_NAME, LABEL_MAP_NAME, LAYERS_FOLDER, *INTERNAL_NAMES)


@dataclass(frozen=True)
class Manifest:
    """The description of a packed dataset.

    splits: the shards of each split, in order.
    schemas: the schema of each split; may lack some or all splits.
    schema: the schema of all records.
    class_names: names indexed by label, with None for labels without a name; None without classes.
    keypoint_classes: what the keypoints of objects are, by the label of their class.
    provenance: source, seed, options and fingerprint of the plan.
    arrow_schema: the schema of the Arrow table that was packed, as base64 of an IPC message.
    layers: features in files of their own, in the order in which they are read.
    stated_record_count: the total number of records in the file, correct or not; None if missing.
    """

    splits: Mapping[str, tuple[ShardEntry, ...]]
    schema: Schema
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    compression: Compression = "none"
    class_names: ClassNames | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    arrow_schema: str | None = None
    keypoint_classes: KeypointClasses = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    stated_record_count: Any = field(default=None, compare=False)

    @property
    def shards(self) -> list[ShardEntry]:
        return [shard for shards in self.splits.values() for shard in shards]

    @property
    def last_fingerprint(self) -> str:
        """The fingerprint of the job that wrote this manifest; empty if unknown."""
        step = self.changes[-1] if self.changes else self.provenance
        return str(step.get("fingerprint", ""))

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """What jobs have changed in the dataset since it was written, the newest last."""
        steps = self.provenance.get("changes")
        return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []

    @property
    def digest(self) -> str:
        """The digest of the shards, as `listed_digest`."""
        return listed_digest(
            (split, *msgspec.structs.astuple(shard))
            for split, shards in self.splits.items()
            for shard in shards
        )

    def changed(self, change: Mapping[str, Any], **fields: Any) -> Manifest:
        """Return the manifest with other fields, after a change that is added to the history."""
        # not the plan of the job that created the dataset, which would not reproduce this one
        provenance = {
            **self.provenance,
            "fingerprint": change["fingerprint"],
            "changes": [*self.changes, change],
        }
        return replace(self, provenance=provenance, **fields)

    @property
    def record_count(self) -> int:
        return sum(shard.record_count for shard in self.shards)

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def shard_count(self) -> int:
        return len(self.shards)

    @property
    def record_counts(self) -> dict[str, int]:
        return {
            split: sum(shard.record_count for shard in shards)
            for split, shards in self.splits.items()
        }

    def schema_of(self, split: str | None) -> Schema | None:
        """The schema of one split, or of all records; None if unknown."""
        if split is None or list(self.splits) == [split]:
            return self.schema
        return self.schemas.get(split)

    def to_bytes(self) -> bytes:
        """The content of `dataset.json`; equal manifests give equal bytes.

        The schemas of splits are left out if the file would be too large to read.
        """
        feature_count = sum(
            len(section) for schema in self.schemas.values() for section in schema.sections.values()
        )
        if feature_count <= NOTE_BYTES // _MIN_FEATURE_BYTES:  # otherwise certainly too large
            data = self._to_bytes(self.schemas)
            if len(data) <= NOTE_BYTES:
                return data
        return self._to_bytes({})

    def _to_bytes(self, schemas: Mapping[str, Schema]) -> bytes:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "records": self.record_count,
            "compression": self.compression,
            "splits": {
                split: [
                    {
                        "file": shard.file,
                        "records": shard.record_count,
                        "size_bytes": shard.size_bytes,
                        "crc32c": f"{shard.crc32c:08x}",
                    }
                    for shard in shards
                ]
                for split, shards in self.splits.items()
            },
            "class_names": None if self.class_names is None else list(self.class_names),
            "schema": self.schema.to_json(),
            "schemas": {split: schema.to_json() for split, schema in schemas.items()},
            "provenance": self.provenance,
        }
        if self.keypoint_classes:
            document["keypoint_classes"] = keypoint_classes_to_json(self.keypoint_classes)
        if self.layers:
            document["layers"] = [layer.to_json() for layer in self.layers]
        if self.arrow_schema is not None:
            document["arrow_schema"] = self.arrow_schema
        return json.dumps(document, indent=1, ensure_ascii=True).encode() + b"\n"


def listed_digest(shards: Iterable[tuple[Any, ...]]) -> str:
    """Return a digest of shards: split, file name, records, bytes and crc32c of each, in order.

    Another one follows if a record is removed, replaced, appended or moved. Where the dataset is,
    does not count.
    """
    text = json.dumps([list(shard) for shard in shards], ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def read_manifest(folder: PlaceLike, name: str = MANIFEST_NAME) -> Manifest | None:
    """Read the manifest of a folder; None if it does not exist."""
    location = as_folder(folder) / name
    try:
        data = read_existing(location, NOTE_BYTES)
    except FileAccessError as error:
        if error.errno != errno.EFBIG:
            raise
        raise CorruptDataError(Defect.BROKEN_MANIFEST, str(error), path=location) from None
    if data is None:
        return None
    try:
        return _parse(json_of(data))
    except NOT_AS_EXPECTED as error:
        raise CorruptDataError(
            Defect.BROKEN_MANIFEST,
            f"the manifest is invalid: {describe_fault(error)}",
            remedy="Pack again, or remove the manifest and open the shards by name.",
            path=location,
        ) from None


class BegunNote(msgspec.Struct, frozen=True):
    """A note that a job has begun to give files their final names.

    Without a manifest next to it, the folder is not a dataset.

    fingerprint: of the job.
    removed: files to remove if another job builds a dataset in the folder.
    renamed: new names of shards that stay, by old name.
    base: identifies the earlier dataset, if its shards stay: it is complete until then.
    command: identifies the command that changes that dataset, so that it is known again.
    replaced: shards that get other content, in a store that cannot rename.
    is_replacing: whether they get it now, so that the earlier dataset is not complete.
    token: of the jobs that write together, in a store that cannot rename.
    is_takeover: whether they may replace what another plan has written.
    """

    fingerprint: str
    removed: tuple[str, ...] = ()
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    base: str = ""
    command: str = ""
    replaced: tuple[str, ...] = ()
    is_replacing: bool = False
    token: str = ""
    is_takeover: bool = False
    version: int = VERSION

    def allows(self, manifest: Manifest) -> bool:
        """Whether a dataset is complete while this note says that a job has begun."""
        is_earlier = bool(self.base) and not self.is_replacing
        return is_earlier or self.fingerprint == manifest.last_fingerprint

    def to_bytes(self) -> bytes:
        return json.dumps(msgspec.structs.asdict(self)).encode()  # also of names that are not UTF-8


def begun_location(folder: Location) -> Location:
    """The location of the note that a job has begun."""
    return folder / INTERNAL_FOLDER / BEGUN_NAME


def read_begun_note(folder: Location) -> BegunNote | None:
    """Read the note of a folder; None if it does not exist."""
    try:
        note = msgspec.convert(json.loads(read_note(begun_location(folder))), BegunNote)
        for name in (*note.removed, *note.replaced, *note.renamed, *note.renamed.values()):
            _plain_name(name)
    except FileAccessError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL):
            return None  # EINVAL: a link or pipe, which no job wrote
        raise
    except NOT_AS_EXPECTED:
        return BegunNote("")  # truncated: begun, but nothing renamed yet
    return note


def _parse(document: Any) -> Manifest:
    if not isinstance(document, Mapping):
        raise ValueError(f'expected an object with "format": "{FORMAT}"')  # noqa: TRY004 - a file's
    if document["format"] != FORMAT:
        raise ValueError(f"the format is {document['format']!r}, expected {FORMAT!r}")
    if document["version"] != VERSION:
        raise ValueError(f"the version is {document['version']!r:.40}, expected {VERSION}")
    splits = {
        line_in_json(split): tuple(map(_entry_in_json, shards))
        for split, shards in document["splits"].items()
    }
    files = Counter(shard.file for shards in splits.values() for shard in shards)
    twice = [file for file, count in files.items() if count > 1]
    if twice:  # a small manifest must not make a shard be read many times
        raise ValueError(f"shard {twice[0]!r} is listed {files[twice[0]]} times")
    if document["compression"] not in COMPRESSIONS:
        raise ValueError(f"unknown compression {document['compression']!r}")
    return Manifest(
        splits,
        Schema.from_json(document["schema"]),
        {
            str(split): Schema.from_json(schema)
            for split, schema in document.get("schemas", {}).items()
        },
        document["compression"],
        class_names_in_json(document["class_names"]),
        dict(document["provenance"]),
        None if (arrow := document.get("arrow_schema")) is None else str(arrow),
        keypoint_classes_in_json(document.get("keypoint_classes", {})),
        _layers_in_json(document.get("layers", []), splits),
        document.get("records"),
    )


def _layers_in_json(
    documents: Any, splits: Mapping[str, tuple[ShardEntry, ...]]
) -> tuple[Layer, ...]:
    counts = {shard.key: shard.record_count for shards in splits.values() for shard in shards}
    if not isinstance(documents, list) or len(documents) > Layer.most:
        raise ValueError(f"the layers are not a list of at most {Layer.most:,}")
    layers = []
    for document in documents:
        if (name := _plain_name(document["name"])).startswith("."):
            raise ValueError(f"{name!r:.60} cannot be the name of a layer")
        shards = {}
        for shard in document["shards"]:
            key = _checksum(shard["of_crc32c"]), count_in_json(shard["of_size_bytes"])
            entry = _entry_in_json(shard)
            if entry.record_count != counts.get(key) or key in shards:
                raise ValueError(f"{entry.file!r} of layer {name!r} belongs to no shard of its own")
            shards[key] = entry
        if len({entry.file for entry in shards.values()}) < len(shards):
            raise ValueError(f"layer {name!r} has the same file for two shards")
        features, hidden = _texts(document["features"]), _texts(document["hidden"])
        if not {*hidden} <= {*features}:
            raise ValueError(f"layer {name!r} hides features that it does not have")
        layers.append(Layer(name, features, hidden, shards))
    if len({layer.name.casefold() for layer in layers}) < len(layers):
        raise ValueError("two layers have the same name")  # so has a folder, on some disks
    return tuple(layers)


def _texts(values: Any) -> tuple[str, ...]:
    """Return different texts of a list."""
    if (
        not isinstance(values, list)
        or not all(isinstance(value, str) for value in values)
        or len({*values}) < len(values)
    ):
        raise ValueError(f"{values!r:.60} is not a list of different texts")
    return tuple(values)


def _entry_in_json(shard: Any) -> ShardEntry:
    return ShardEntry(
        _shard_name(shard["file"]),
        count_in_json(shard["records"]),
        count_in_json(shard["size_bytes"]),
        _checksum(shard["crc32c"]),
    )


def _checksum(text: Any) -> int:
    if not isinstance(text, str) or not _CHECKSUM.fullmatch(text):
        raise ValueError(f"{text!r:.60} is not a checksum of 8 hexadecimal digits")
    return int(text, 16)


def _plain_name(name: Any) -> str:
    if not isinstance(name, str) or not name or name in (".", "..") or set(name) & set("/\\\0:"):
        raise ValueError(f"{name!r:.60} is not a plain file name")
    if len(os.fsencode(name)) > LONGEST_NAME_BYTES:
        raise ValueError(f"the file name {name!r:.60} is longer than {LONGEST_NAME_BYTES} bytes")
    return name


def _shard_name(name: Any) -> str:
    if name in _NO_SHARDS:
        raise ValueError(f"{name!r} cannot be the name of a shard")
    return _plain_name(name)
