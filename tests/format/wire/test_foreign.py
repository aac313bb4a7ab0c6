"""Formats that are mistaken for TFRecord, written here as their own writers do."""

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
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.format.example import encode_example
from recordsmith.format.wire import encode_records, read_records
from recordsmith.format.wire.compression import HEAD_BYTES
from recordsmith.format.wire.other_formats import detect_other_format
from recordsmith.support.errors import CorruptDataError, Defect


def _image(kind: str) -> bytes:
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


def _arrow(kind: str) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    stream = io.BytesIO()
    if kind == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, stream)
    elif kind == "feather":
        import pyarrow.feather

        pyarrow.feather.write_feather(table, stream)
    elif kind == "orc":
        orc = pytest.importorskip("pyarrow.orc")
        orc.write_table(table, stream)
    else:
        with pyarrow.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
    return stream.getvalue()


def _arrays() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(3))
    return stream.getvalue()


def _tensors() -> bytes:
    header = b'{"weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    return len(header).to_bytes(8, "little") + header + bytes(8)


def _records(payload: bytes) -> bytes:
    return encode_records([payload] * 3)


def _example() -> bytes:
    features = {"image/encoded": bytes(600), "label": 3, "box": [0.5, 1.0]}
    return encode_example(features)


# a writer of the format, a word of its name, a word of the advice
FORMATS: list[tuple[str, Callable[[], bytes], str, str]] = [
    (
        "git-lfs",
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "git-lfs pointer",
        "git lfs pull",
    ),
    ("own index", lambda: b"RSINDEX\x03" + bytes(60), "index", "Pass that file"),
    ("parquet", lambda: b"PAR1\x15\x04\x15\x10" + bytes(40), "Parquet", "recordsmith pack"),
    ("parquet by pyarrow", lambda: _arrow("parquet"), "Parquet", "recordsmith pack"),
    ("feather", lambda: _arrow("feather"), "Feather", "pyarrow"),
    ("arrow stream", lambda: _arrow("stream"), "Arrow stream", "pyarrow"),
    ("orc", lambda: _arrow("orc"), "ORC", "pyarrow"),
    ("avro", lambda: b"Obj\x01\x04\x14avro.codec\x08null" + bytes(40), "Avro", "reader"),
    ("sequence file", lambda: b"SEQ\x06\x19org.apache.hadoop.io.Text", "Hadoop", "reader"),
    ("npz", _arrays, ".npz", "numpy.load"),
    ("safetensors", _tensors, "safetensors", "safetensors"),
    ("webp", lambda: _image("WEBP"), "WebP", "recordsmith pack"),
    ("bmp", lambda: _image("BMP"), "BMP", "recordsmith pack"),
    ("tiff", lambda: _image("TIFF"), "TIFF", "recordsmith pack"),
    ("tiff, big-endian", lambda: b"MM\0*\0\0\0\x08" + bytes(40), "TIFF", "recordsmith pack"),
    ("avif", lambda: b"\0\0\0\x1cftypavif" + bytes(40), "AVIF", "recordsmith pack"),
    ("mp4", lambda: b"\0\0\0\x20ftypisom" + bytes(40), "film", "ffmpeg"),
    ("wav", lambda: b"RIFF\x24\0\0\0WAVEfmt " + bytes(40), "sound", "reader"),
    ("rar", lambda: b"Rar!\x1a\x07\x01\x00" + bytes(40), "rar", "Unpack"),
    ("lz4", lambda: b"\x04\x22\x4d\x18" + bytes(40), "lz4", "Unpack"),
    ("elf", lambda: b"\x7fELF\x02\x01\x01" + bytes(40), "program", "Fetch"),
    ("gzip of a tar", lambda: gzip.compress(_archive("tar")), "gzip of a tar", "Unpack"),
    ("gzip of a gzip", lambda: gzip.compress(gzip.compress(b"x")), "gzip of a gzip", "once"),
    (
        "csv",
        lambda: b'name,"a, b",c\nx,2,3\ny,"5\n6",7\nz,1',
        "(CSV)",
        "recordsmith pack TABLE.csv OUT",
    ),
    ("csv of semicolons", lambda: b"\xef\xbb\xbfa;b\r\n1,5;2\r\n", "(CSV)", "recordsmith pack"),
    ("tsv", lambda: b"a\tb\n1\t2\n", "(TSV)", "recordsmith pack TABLE.tsv OUT"),
    (
        "json lines",
        lambda: b'{"a": 1}\n{"a": 2}\n',
        "JSON Lines",
        "recordsmith pack TABLE.jsonl OUT",
    ),
    ("prose", lambda: b"First, a line.\nThen, after it, another.\n", "a text file", "Fetch"),
    ("gzip of csv", lambda: gzip.compress(b"a,b\n1,2\n"), "gzip of a table", "recordsmith pack"),
    ("gzip of json", lambda: gzip.compress(b'{"a": 1}'), "gzip of a JSON", "Unpack"),
    ("gzip of what", lambda: gzip.compress(bytes(range(128, 256))), "unknown format", "Unpack"),
    ("an example", _example, "tf.train.Example", "ShardWriter"),
    ("an empty feature", lambda: b"\n\x07\n\x05\n\x01a\x12\0", "tf.train.Example", "ShardWriter"),
    ("bom", lambda: b"\xef\xbb\xbf" + _records(b"x" * 300), "(BOM)", "three bytes"),
    (
        "lf became cr lf",
        lambda: _records(bytes(10)).replace(b"\n", b"\r\n"),
        "line ends",
        "binary mode",
    ),
    (
        "cr lf became lf",
        lambda: _records(bytes(0x0A0D)).replace(b"\r\n", b"\n"),
        "line ends",
        "binary mode",
    ),
    (
        "latin-1 became utf-8",
        lambda: _records(bytes(200)).decode("latin-1").encode(),
        "re-encoded",
        "binary mode",
    ),
    (
        "replaced characters",
        lambda: _records(bytes(range(56, 256))).decode("utf-8", "replace").encode(),
        "read as UTF-8",
        "binary mode",
    ),
    ("hdf5", lambda: b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5", "h5py"),
    ("npy", _array, "NumPy", "reader"),
    ("zip", lambda: _archive("zip"), "zip", "Unpack"),
    ("tar", lambda: _archive("tar"), "tar", "Unpack"),
    ("bzip2", lambda: bz2.compress(b"data"), "bzip2", "Unpack"),
    ("xz", lambda: lzma.compress(b"data"), "xz", "Unpack"),
    ("zstd", lambda: b"\x28\xb5\x2f\xfd\x04\x00" + bytes(20), "zstd", "Unpack"),
    ("snappy", lambda: b"\xff\x06\x00\x00sNaPpY\x01" + bytes(20), "snappy", "Unpack"),
    ("7z", lambda: b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(20), "7z", "Unpack"),
    ("jpeg", lambda: _image("JPEG"), "JPEG", "recordsmith pack"),
    ("png", lambda: _image("PNG"), "PNG", "recordsmith pack"),
    ("gif", lambda: _image("GIF"), "GIF", "recordsmith pack"),
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
    ("text", lambda: b"image,label\na.jpg,3\n", "(CSV)", "recordsmith pack"),
    ("text with tabs", lambda: b"image\tlabel\r\na.jpg\t3\r\n", "(TSV)", "recordsmith pack"),
    ("text in utf-8", lambda: "größe,länge\n".encode() * 60, "(CSV)", "recordsmith pack"),
]


@pytest.mark.parametrize(
    ("make", "name", "advice"), [row[1:] for row in FORMATS], ids=[row[0] for row in FORMATS]
)
def test_formats_are_detected_with_advice(
    make: Callable[[], bytes], name: str, advice: str
) -> None:
    data = make()
    foreign = detect_other_format(data[:HEAD_BYTES])
    assert foreign is not None
    assert name in foreign.name
    assert advice in foreign.advice
    with pytest.raises(CorruptDataError) as caught:
        list(read_records(io.BytesIO(data)))
    assert caught.value.defect is Defect.NOT_A_TFRECORD
    assert foreign.name in caught.value.problem
    assert caught.value.remedy == foreign.advice


@pytest.mark.parametrize("cut", range(4))
def test_text_may_end_inside_a_character(cut: int) -> None:
    """The head is cut at a fixed size, even inside a character."""
    head = ("ä€😀" * 100).encode()[: HEAD_BYTES - cut]
    foreign = detect_other_format(head)
    assert foreign is not None
    assert foreign.name == "a text file"


@pytest.mark.parametrize(
    "head",
    [b"", bytes(100), bytes(range(128, 256)), b"text, but\x00with a zero", b"\xff\xfe" * 40],
)
def test_other_bytes_are_not_detected(head: bytes) -> None:
    assert detect_other_format(head) is None


def test_records_are_not_another_format(reference: Any) -> None:
    for payload in (b"", b"text only", b"<html>", b"x" * 1000):
        assert detect_other_format(reference.frame(payload)[:HEAD_BYTES]) is None


def test_a_table_is_detected_by_its_end() -> None:
    """leveldb/doc/table_format.md."""
    end = bytes.fromhex("57fb808b247547db")
    foreign = detect_other_format(bytes(range(200, 250)) * 4, bytes(40) + end)
    assert foreign is not None
    assert "SSTable" in foreign.name
    assert detect_other_format(bytes(range(200, 250)) * 4, end + b"x") is None


@given(payload=st.binary(max_size=400), bit=st.integers(0, 95), more=st.integers(0, 3))
def test_a_damaged_first_header_is_not_another_format(payload: bytes, bit: int, more: int) -> None:
    """A record with one wrong bit must not be detected as protobuf or text."""
    data = bytearray(encode_records([encode_example({"a": payload})] * (1 + more)))
    data[bit // 8] ^= 1 << bit % 8
    assert detect_other_format(bytes(data[:HEAD_BYTES])) is None


@given(st.binary(max_size=600))
def test_any_bytes_are_handled(head: bytes) -> None:
    foreign = detect_other_format(head, head[-64:])
    assert foreign is None or (foreign.name and foreign.advice)


def test_text_mode_is_detected_after_a_header_without_line_ends() -> None:
    data = encode_records(
        [encode_example({"a": b"line\nline\n", "b": number}) for number in range(3)]
    )
    assert b"\n" not in data[:12]
    with pytest.raises(CorruptDataError) as caught:
        list(read_records(io.BytesIO(data.replace(b"\n", b"\r\n"))))
    assert caught.value.defect is Defect.PAYLOAD_CRC
    assert "binary mode" in caught.value.remedy
