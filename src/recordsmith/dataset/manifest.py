"""`dataset.json`: what a packed dataset consists of, and how it was made.

Written last, so a dataset that has one is complete. Read with care: it is a file like any other,
and shard names in it may not lead out of its folder.
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.dataset.documents import NOT_AS_EXPECTED, fault_of, json_of
from recordsmith.dataset.labels import LABEL_MAP_NAME, LABELS_NAME, ClassNames
from recordsmith.errors import CorruptDataError, Defect, FileAccessError
from recordsmith.example import Schema
from recordsmith.files import INTERNAL_FOLDER, NOTE_BYTES, OWN_NAMES, accessing, read_document
from recordsmith.wire import COMPRESSIONS, Compression

MANIFEST_NAME = "dataset.json"
BEGUN_NAME = "begun"
FORMAT = "recordsmith-dataset"
VERSION = 1

LONGEST_NAME_BYTES = 255
"""Of a shard's file name: no usual file system has longer ones."""

_LEAST_FEATURE_BYTES = 140  # that one of a schema takes in the document

_NO_SHARDS = (MANIFEST_NAME, LABELS_NAME, LABEL_MAP_NAME, *OWN_NAMES)


@dataclass(frozen=True)
class ShardEntry:
    """What the manifest says of one shard. crc32c is over the bytes of the file."""

    file: str
    record_count: int
    size_bytes: int
    crc32c: int


@dataclass(frozen=True)
class Manifest:
    """A packed dataset.

    splits: for each split its shards, in order.
    schemas: for each split its schema; of some splits, or of all, it may not be told.
    schema: of all records.
    class_names: index = label, or None where there are no classes; None in it where a label has no
        name (0, if they count from 1; gaps).
    made_from: how it was made: source, seed, options, fingerprint of the plan.
    told_total: what a file says how many records there are in all, right or not; None: it does not.
    """

    splits: Mapping[str, tuple[ShardEntry, ...]]
    schema: Schema
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    compression: Compression = "none"
    class_names: ClassNames | None = None
    made_from: Mapping[str, Any] = field(default_factory=dict)
    told_total: Any = field(default=None, compare=False)

    @property
    def shards(self) -> list[ShardEntry]:
        """Those of all splits."""
        return [shard for shards in self.splits.values() for shard in shards]

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
        """How many records each split has."""
        return {
            split: sum(shard.record_count for shard in shards)
            for split, shards in self.splits.items()
        }

    def schema_of(self, split: str | None) -> Schema | None:
        """The schema of one split, or of all; None if it is not told."""
        if split is None or list(self.splits) == [split]:
            return self.schema
        return self.schemas.get(split)

    def to_bytes(self) -> bytes:
        """What `dataset.json` holds; the same content gives the same bytes.

        The schemas of splits are left out if it could not be read with them: it would be too long.
        """
        feature_count = sum(
            len(section) for schema in self.schemas.values() for section in schema.sections.values()
        )
        if feature_count <= NOTE_BYTES // _LEAST_FEATURE_BYTES:  # else no need to try
            data = self._to_bytes(self.schemas)
            if len(data) <= NOTE_BYTES:
                return data
        return self._to_bytes({})

    def _to_bytes(self, schemas: Mapping[str, Schema]) -> bytes:
        document = {
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
            "made_from": self.made_from,
        }
        return json.dumps(document, indent=1, ensure_ascii=True).encode() + b"\n"


def read_manifest(folder: Path, path: Path | None = None) -> Manifest | None:
    """The manifest of a folder, or None if it has none; `path` is where it lies, if elsewhere.

    Raises:
        CorruptDataError: broken-manifest.
    """
    path = path or folder / MANIFEST_NAME
    with accessing(path):
        if not path.is_file():
            return None
    try:
        data = read_document(path, NOTE_BYTES)
    except FileAccessError as error:
        if error.errno != errno.EFBIG:
            raise
        raise CorruptDataError(Defect.BROKEN_MANIFEST, str(error), path=path) from None
    try:
        return _parse(json_of(data))
    except NOT_AS_EXPECTED as error:
        raise CorruptDataError(
            Defect.BROKEN_MANIFEST,
            f"the manifest cannot be understood ({fault_of(error)}). The shards can still be "
            "opened one by one or with a glob; pack again, or remove the manifest.",
            path=path,
        ) from None


@dataclass(frozen=True)
class Begun:
    """A note that files are being given their names: the folder is no dataset until it is gone.

    plan: what is being published.
    removing: files that a job would remove which builds another dataset here.
    renamed: new names, by old ones, of shards that stay: there are records that lie nowhere else.
    base: what the dataset was before, if its shards stay.
    """

    plan: str
    removing: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    base: str = ""

    def to_bytes(self) -> bytes:
        document: dict[str, Any] = {"plan": self.plan, "removing": self.removing}
        if self.base:
            document |= {"renamed": dict(self.renamed), "base": self.base}
        return json.dumps(document).encode()


def begun_path(folder: Path) -> Path:
    """Where the note lies."""
    return folder / INTERNAL_FOLDER / BEGUN_NAME


def read_begun(folder: Path) -> Begun | None:
    """The note of a folder, or None if nothing was begun there."""
    path = begun_path(folder)
    with accessing(path):
        if not path.is_file():
            return None
    try:
        document = json.loads(read_document(path, NOTE_BYTES))
        return Begun(
            str(document["plan"]),
            tuple(map(_plain_name, document["removing"])),
            {
                _plain_name(old): _plain_name(new)
                for old, new in document.get("renamed", {}).items()
            },
            str(document.get("base", "")),
        )
    except NOT_AS_EXPECTED:
        return Begun("")  # cut short: begun, and nothing done yet


def _parse(document: Any) -> Manifest:
    if not isinstance(document, Mapping):
        raise ValueError(f'expected an object with "format": "{FORMAT}"')  # noqa: TRY004 - a file's
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, expected {FORMAT!r}")
    if document["version"] > VERSION:
        raise ValueError(
            f"its version is {document['version']}, this recordsmith reads up to {VERSION}"
        )
    splits = {
        _line(split): tuple(
            ShardEntry(
                _shard_name(shard["file"]),
                _count(shard["records"]),
                _count(shard["size_bytes"]),
                int(shard["crc32c"], 16),
            )
            for shard in shards
        )
        for split, shards in document["splits"].items()
    }
    files = Counter(shard.file for shards in splits.values() for shard in shards)
    twice = [file for file, count in files.items() if count > 1]
    if twice:  # else a small manifest could make a shard be read any number of times
        raise ValueError(f"shard {twice[0]!r} is listed {files[twice[0]]} times")
    if document["compression"] not in COMPRESSIONS:
        raise ValueError(f"compression {document['compression']!r} is unknown")
    names = document["class_names"]
    return Manifest(
        splits,
        Schema.from_json(document["schema"]),
        {
            str(split): Schema.from_json(schema)
            for split, schema in document.get("schemas", {}).items()
        },
        document["compression"],
        None if names is None else tuple(None if name is None else _line(name) for name in names),
        dict(document["made_from"]),
        document.get("records"),
    )


def _line(name: Any) -> str:
    """A name of a class or a split: it goes into other files as a line of text."""
    try:
        if set(name) & set("\n\r"):
            raise ValueError(f"the name {name!r:.60} has several lines")
        name.encode("utf-8", "surrogateescape")
    except (TypeError, AttributeError, UnicodeEncodeError):
        raise ValueError(f"{name!r:.60} is no name") from None
    return str(name)


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


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise ValueError(f"{number!r:.60} is not a count")
    return number
