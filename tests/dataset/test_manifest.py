"""`dataset.json` and `labels.txt`: writing, reading, and rejecting invalid files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import (
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    ShardEntry,
    read_labels,
    read_manifest,
)
from recordsmith.dataset import manifest as manifest_module
from recordsmith.format.example import FeatureSchema, Schema

from .. import numbered_examples as numbered
from ..raising import raises

FEATURE = FeatureSchema("none", 0, 0, 0)
COUNTS = st.integers(0, 2**63 - 1)
FILES = st.text(min_size=1, max_size=60).filter(  # of at most 255 bytes
    lambda name: name not in (".", "..", ".recordsmith") and not set(name) & set("/\\\0:")
)
NAMES = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)))


def _possible(schema: Schema) -> Schema:
    """A schema without contradictions."""

    def change(feature: FeatureSchema) -> FeatureSchema:
        low, high = sorted((feature.min_length, feature.max_length))
        is_fixed = feature.shape is not None
        return replace(
            feature,
            min_length=high if is_fixed else low,
            max_length=high,
            present=min(feature.present, schema.record_count),
            shape=None if not is_fixed else () if high == 1 else (high,),
            content=feature.content if feature.kind == "bytes" else None,
        )

    sections = {
        name: {key: change(feature) for key, feature in section.items()}
        for name, section in schema.sections.items()
    }
    return replace(schema, sections=sections)


SCHEMAS = st.builds(
    Schema,
    st.just("Example"),
    COUNTS,
    st.dictionaries(
        st.just("features"),
        st.dictionaries(
            st.text(),
            st.builds(
                FeatureSchema,
                st.sampled_from(["bytes", "float", "int64", "mixed", "none"]),
                COUNTS,
                COUNTS,
                COUNTS,
                st.none() | st.just(()) | st.tuples(COUNTS),
                st.sampled_from([None, "image", "text", "raw"]),
            ),
        ),
    ),
).map(_possible)
MANIFESTS = st.builds(
    Manifest,
    st.dictionaries(
        NAMES,
        st.lists(
            st.builds(ShardEntry, FILES, COUNTS, COUNTS, st.integers(0, 2**32 - 1)), max_size=3
        ).map(tuple),
    ),
    SCHEMAS,
    st.dictionaries(NAMES, SCHEMAS, max_size=2),
    st.sampled_from(["none", "gzip", "zlib"]),
    st.none() | st.lists(NAMES).map(tuple),
    st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.booleans())),
).filter(lambda numbered: len(set(_files(numbered))) == len(_files(numbered)))


def _files(manifest: Manifest) -> list[str]:
    return [shard.file for shards in manifest.splits.values() for shard in shards]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("manifest")


@given(manifest=MANIFESTS)
def test_reads_back_what_was_written(folder: Path, manifest: Manifest) -> None:
    files = [entry.file for entries in manifest.splits.values() for entry in entries]
    assume(len(set(files)) == len(files))
    (folder / MANIFEST_NAME).write_bytes(manifest.to_bytes())
    assert read_manifest(folder) == manifest
    first = (folder / MANIFEST_NAME).read_bytes()
    (folder / MANIFEST_NAME).write_bytes(manifest.to_bytes())
    assert (folder / MANIFEST_NAME).read_bytes() == first


def test_names_that_are_not_utf8_read_back(tmp_path: Path) -> None:
    manifest = Manifest(
        {"tr\udcffain": (ShardEntry("x\udcff-00000-of-00001.tfrecord", 1, 2, 3),)},
        Schema("none", 0),
        class_names=("a\udc80",),
    )
    (tmp_path / MANIFEST_NAME).write_bytes(manifest.to_bytes())
    assert read_manifest(tmp_path) == manifest


def test_schemas_of_splits_are_left_out_if_the_file_would_be_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = numbered.packed(tmp_path / "out", {"train": [3], "val": [2]})
    whole = (folder / MANIFEST_NAME).read_bytes()
    manifest = read_manifest(folder)
    assert manifest is not None
    for most, is_told in (
        (len(whole), True),
        (len(whole) - 1, False),
        (len(whole) // 3 * 2, False),
    ):
        monkeypatch.setattr(manifest_module, "NOTE_BYTES", most)
        data = manifest.to_bytes()
        assert (data == whole) == is_told
        (folder / MANIFEST_NAME).write_bytes(data)
        read = read_manifest(folder)
        assert read is not None
        assert (read.to_bytes(), read.schema, read.splits) == (
            data,
            manifest.schema,
            manifest.splits,
        )
        assert (read.schema_of("val") is None) != is_told
        assert rs.open(folder, "val").schema == manifest.schemas["val"]
        assert rs.inspect(folder, "val").schema == manifest.schemas["val"]
        assert rs.verify(folder, deep=True).is_good


def _change(path: tuple[str | int, ...], value: Any) -> Any:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


SHARD = ("splits", "train", 0)
OUTSIDE = ("../out.tfrecord", "/etc/passwd", "a/b", "a\\b", "..", ".", "", "C:x", "x\0", "sub/../x")


@pytest.mark.parametrize(
    "change",
    [
        _change(("format",), "another"),
        *(_change(("version",), version) for version in (1, 3, "1")),
        *(_change(("splits",), splits) for splits in (["train"], None)),
        _change(("splits", "train"), 5),
        _change(SHARD, "train-00000-of-00001.tfrecord"),
        *(_change((*SHARD, "records"), count) for count in (-1, 1.5, True, 2**63)),
        *(
            _change((*SHARD, "file"), name)
            for name in (7, "dataset.json", "labels.txt", ".recordsmith", "a" * 256, "\ud800")
        ),
        *(_change((*SHARD, "file"), name) for name in OUTSIDE),
        lambda document: document["splits"].update(again=document["splits"]["train"]),
        _change((*SHARD, "size_bytes"), "12"),
        *(
            _change((*SHARD, "crc32c"), checksum)
            for checksum in (12, "hello", "-0000001", "123456789")
        ),
        _change(("compression",), "lz4"),
        _change(("class_names",), 5),
        _change(("schema",), None),
        _change(("schema", "features", "id"), "int64"),
        _change(("schemas", "train", "features", "id", "min_length"), 2),
        *(
            _change(("schema", "features", "id", key), value)
            for key, value in (
                ("kind", "uint8"),
                ("min_length", 2),
                ("min_length", -1),
                ("max_length", 0),
                ("max_length", 2),
                ("present", 2),
                ("present", -1),
                ("shape", [3]),
                ("shape", [-1]),
                ("content", "image"),
                ("content", "video"),
                ("value_bytes", -1),
                ("min_steps", 1),
            )
        ),
        lambda document: document["schema"]["features"]["id"].update(min_steps=2, max_steps=1),
        _change(("provenance",), 5),
        *(
            lambda document, key=key: document.pop(key)  # type: ignore[misc]
            for key in ("format", "version", "splits", "compression", "schema")
        ),
        *(b"", b"{", b"[]", b"5", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000, b"{}"),
    ],
)
def test_invalid_manifest_is_a_defect(tmp_path: Path, change: Any) -> None:
    folder = numbered.packed(tmp_path / "dataset", {"train": [1]})
    numbered.write_shard(tmp_path / "out.tfrecord", [5])
    if isinstance(change, bytes):
        (folder / MANIFEST_NAME).write_bytes(change)
    else:
        document = json.loads((folder / MANIFEST_NAME).read_bytes())
        change(document)
        (folder / MANIFEST_NAME).write_text(json.dumps(document))
    _assert_broken(folder)


def _assert_broken(folder: Path) -> None:
    for read in (rs.open, rs.inspect):
        with raises(
            rs.CorruptDataError, defect=rs.Defect.BROKEN_MANIFEST, path=folder / MANIFEST_NAME
        ):
            read(folder)
    report = rs.verify(folder)
    assert [error.defect for error in report.defects] == [rs.Defect.BROKEN_MANIFEST]
    assert not report.is_good
    # the shards can still be opened by name
    assert len(rs.open(folder / "*.tfrecord")) == 1


# -- labels.txt ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["daisy\nrose\n", "2:a\n1:b\n", "0:a\n0:b\n", "x:a\n", "99999999:a\n"]
)
def test_other_label_files_are_ignored(tmp_path: Path, text: str) -> None:
    (tmp_path / LABELS_NAME).write_text(text)
    assert read_labels(tmp_path) is None


def test_foreign_labels_with_spaces_and_empty_lines(tmp_path: Path) -> None:
    (tmp_path / LABELS_NAME).write_bytes(b"0:daisy\r\n\r\n 1 :rose\r\n")
    assert read_labels(tmp_path) == ("daisy", "rose")
