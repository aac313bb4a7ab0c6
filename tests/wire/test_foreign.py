"""Formats that are taken for TFRecord by mistake, each made here as its own writer makes it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from PIL import Image

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.wire import read_records
from recordsmith.wire.compression import HEAD_BYTES
from recordsmith.wire.foreign import describe_foreign


def _picture(kind: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(stream, kind)
    return stream.getvalue()


def _archive(kind: str) -> bytes:
    stream = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("inside.txt", "text")
    else:
        with tarfile.open(fileobj=stream, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("inside.txt"))
    return stream.getvalue()


def _array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(3))
    return stream.getvalue()


def _database() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table t (a)")
        return connection.serialize() if hasattr(connection, "serialize") else b"SQLite format 3\0"


# who makes it -> a word of its name, a word of the advice
FORMATS: list[tuple[str, Callable[[], bytes], str, str]] = [
    (
        "git-lfs",
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "git-lfs pointer",
        "git lfs pull",
    ),
    ("parquet", lambda: b"PAR1\x15\x04\x15\x10" + bytes(40), "Parquet", "reader"),
    ("hdf5", lambda: b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5", "reader"),
    ("npy", _array, "NumPy", "reader"),
    ("zip", lambda: _archive("zip"), "zip", "Unpack"),
    ("tar", lambda: _archive("tar"), "tar", "Unpack"),
    ("bzip2", lambda: bz2.compress(b"data"), "bzip2", "Unpack"),
    ("xz", lambda: lzma.compress(b"data"), "xz", "Unpack"),
    ("zstd", lambda: b"\x28\xb5\x2f\xfd\x04\x00" + bytes(20), "zstd", "Unpack"),
    ("snappy", lambda: b"\xff\x06\x00\x00sNaPpY\x01" + bytes(20), "snappy", "Unpack"),
    ("7z", lambda: b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(20), "7z", "Unpack"),
    ("jpeg", lambda: _picture("JPEG"), "JPEG", "recordsmith pack"),
    ("png", lambda: _picture("PNG"), "PNG", "recordsmith pack"),
    ("gif", lambda: _picture("GIF"), "GIF", "recordsmith pack"),
    ("pdf", lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "PDF", "reader"),
    ("sqlite", _database, "SQLite", "reader"),
    ("pickle", lambda: pickle.dumps([{"a": 1}] * 40, 4), "pickle", "run code"),
    ("pickle 5", lambda: pickle.dumps([{"a": 1}] * 40, 5), "pickle", "run code"),
    ("gzip", lambda: gzip.compress(b"some text"), "gzip", "Unpack"),
    (
        "array_record",
        lambda: bytes.fromhex("83af70d10d884a3f00000000000000004000000000000000") + bytes(40),
        "ArrayRecord",
        "array_record",
    ),
    ("html", lambda: b"<!doctype html><html></html>", "HTML", "download"),
    ("html 2", lambda: b"\xef\xbb\xbf\r\n  <HTML><BODY>Not found", "HTML", "download"),
    ("html 3", lambda: b"<head><title>Sign in</title>", "HTML", "download"),
    ("xml", lambda: b'<?xml version="1.0"?><Error><Code>AccessDenied</Code>', "XML", "error"),
    ("s3 error", lambda: b"<Error><Code>NoSuchKey</Code></Error>", "XML", "error"),
    ("json", lambda: json.dumps({"message": "Not found"}).encode(), "JSON", "Fetch"),
    ("json lines", lambda: json.dumps([{"a": 1}]).encode(), "JSON", "Fetch"),
    ("json indented", lambda: json.dumps({"a": 1}, indent=1).encode(), "JSON", "Fetch"),
    ("json list indented", lambda: json.dumps([1, 2], indent=1).encode(), "JSON", "Fetch"),
    ("text", lambda: b"image,label\na.jpg,3\n", "text", "Fetch"),
    ("text in utf-8", lambda: "größe,länge\n".encode() * 60, "text", "Fetch"),
]


@pytest.mark.parametrize(
    ("make", "name", "advice"), [row[1:] for row in FORMATS], ids=[row[0] for row in FORMATS]
)
def test_named_with_advice(make: Callable[[], bytes], name: str, advice: str) -> None:
    data = make()
    foreign = describe_foreign(data[:HEAD_BYTES])
    assert foreign is not None
    assert name in foreign.name
    assert advice in foreign.advice
    with pytest.raises(CorruptDataError) as caught:
        list(read_records(io.BytesIO(data)))
    assert caught.value.defect is Defect.NOT_A_TFRECORD
    assert foreign.name in str(caught.value)
    assert foreign.advice in str(caught.value)


@pytest.mark.parametrize("cut", range(4))
def test_text_may_end_inside_a_character(cut: int) -> None:
    """The head is cut at a fixed size, wherever that is."""
    head = ("ä€😀" * 100).encode()[: HEAD_BYTES - cut]
    foreign = describe_foreign(head)
    assert foreign is not None
    assert foreign.name == "a text file"


@pytest.mark.parametrize(
    "head",
    [b"", bytes(100), bytes(range(128, 256)), b"text, but\x00with a zero", b"\xff\xfe" * 40],
)
def test_other_bytes_have_no_name(head: bytes) -> None:
    assert describe_foreign(head) is None


def test_records_have_no_foreign_name(reference: Any) -> None:
    for payload in (b"", b"text only", b"<html>", b"x" * 1000):
        assert describe_foreign(reference.frame(payload)[:HEAD_BYTES]) is None
