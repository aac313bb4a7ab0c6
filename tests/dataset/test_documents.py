"""Invalid documents give clear errors, not those of Python's parsers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recordsmith.checking.schema_file import SchemaFile
from recordsmith.dataset import json_of, read_label_map, read_manifest, text_of
from recordsmith.format.wire import encode_records
from recordsmith.writing import Edits

READERS: dict[str, Callable[[Path], Any]] = {
    "schema.json": SchemaFile.load,
    "table.csv": lambda path: Edits(recode={"label": path}),
    "dataset.json": lambda path: read_manifest(path.parent),
    "label_map.pbtxt": read_label_map,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        (encode_records([b"a", b"b"]), "a TFRecord file"),
        (gzip.compress(encode_records([b"a"]), mtime=0), "a TFRecord file"),
        (b"PAR1" + bytes(8) + b"PAR1", "a Parquet file"),
    ],
)
def test_errors_name_the_format_of_binary_files(
    tmp_path: Path, name: str, data: bytes, what: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError, match=what) as caught:
        READERS[name](path)
    assert str(path) in str(caught.value)
    assert "codec" not in str(caught.value)


@pytest.mark.parametrize("name", ["schema.json", "dataset.json"])
@pytest.mark.parametrize("value", [[], 3, None, "a", [{"a": 1}]])
def test_errors_of_other_json_have_no_python_types(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(value))
    with pytest.raises(ValueError, match=r"[Ee]xpected|no rows") as caught:
        READERS[name](path)
    message = str(caught.value)
    assert not any(word in message for word in ("'list'", "'dict'", "'int'", "indices", "None"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_editors_write(encoding: str) -> None:
    assert text_of("grün".encode(encoding)) == "grün"
    assert json_of('{"a": ["grün", 1]}'.encode(encoding)) == {"a": ["grün", 1]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b'{"a": 1,\n "b": }', "line 2, column 7: .*'}'"),
        (b'{"a": 1', "line 1, column 8"),
        (b"hello", "begins with 'hello'"),
        (b"<!DOCTYPE html>\n<html>", "HTML page"),
        (b"gr\xfcn", "byte 2"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "too many digits"),
        (b'{"a": 1, "b": 2, "a": 3}', "duplicate key 'a'"),
    ],
)
def test_invalid_json(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        json_of(data, with_keys_once=True)
