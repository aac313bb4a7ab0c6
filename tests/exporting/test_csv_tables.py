from __future__ import annotations

import base64
import csv
import io
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs

from ..raising import raises

pytest.importorskip("pyarrow")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_images_are_left_out(write: Any, image: Any, tmp_path: Path, files: Any) -> None:
    examples = [image("a.jpg"), {"weight": 2.5}]
    report = rs.export(write(train=examples), tmp_path / "out", "csv")
    assert sorted(files(tmp_path / "out")) == ["train.csv"]
    assert report.dropped_features == {"image/encoded": 1}
    first, second = table(tmp_path / "out" / "train.csv")
    assert (first["image/filename"], first["image/height"], first["weight"]) == ("a.jpg", "8", "")
    assert second["weight"] == "2.5"
    source = write(train=[{"image/encoded": image("a.jpg")["image/encoded"]}])
    with raises(rs.OptionError, option="format", value="csv", match="huggingface"):
        rs.export(source, tmp_path / "other", "csv")


TEXT = st.text(st.sampled_from('a",\n\r\\\t[] ö\x7f'), max_size=4).map(str.encode)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float": st.one_of(
        st.floats(width=32),
        st.integers(-(2**20), 2**20).map(float),
        st.sampled_from([1e10, 16777216.0, -0.0, 9999999488.0, 1e-5]),
    ),
    "bytes": st.one_of(TEXT, st.binary(max_size=3)),
    "text": TEXT,
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The kinds of some features, and records that have some of them."""
    kinds = draw(st.dictionaries(st.sampled_from("abcd"), st.sampled_from([*VALUES]), max_size=4))
    longest = {key: draw(st.integers(0, 3)) for key in kinds}
    shortest = {key: draw(st.integers(0, longest[key])) for key in kinds}
    examples = []
    for _ in range(draw(st.integers(1, 4))):
        present = [key for key in kinds if draw(st.integers(0, 3))]
        examples.append(
            {
                key: draw(
                    st.lists(VALUES[kinds[key]], min_size=shortest[key], max_size=longest[key])
                )
                for key in present
            }
        )
    return {key: "bytes" if kind == "text" else kind for key, kind in kinds.items()}, examples


@settings(max_examples=40)
@given(tables())
def test_every_value_can_be_read_back(known: Any) -> None:
    kinds, examples = known
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with rs.ShardWriter(path / "train.tfrecord") as writer:
            for example in examples:
                writer.write_example(example, kinds)
        rs.export(path / "train.tfrecord", path / "out", "csv")
        text = (path / "out" / "train.csv").read_bytes().decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    again = io.StringIO()
    csv.writer(again, lineterminator="\n").writerows([header, *rows])
    if "\r" not in text:  # which Python before 3.13 does not quote
        assert text == again.getvalue()
    columns = {heading.removesuffix("/base64"): at for at, heading in enumerate(header)}
    assert sorted(columns) == sorted({key for example in examples for key in example})
    for example, row in zip(examples, rows, strict=True):
        for key, at in columns.items():
            lists = [example[key] for example in examples if key in example]
            if key not in example:
                assert row[at] == ""
                continue
            is_list = max(map(len, lists)) > 1 or not example[key]
            found = json.loads(row[at]) if is_list else [row[at]]
            values = [_value(kinds[key], value, header[at]) for value in found]
            assert _bits(kinds[key], values) == _bits(kinds[key], example[key])


def _value(kind: str, cell: Any, heading: str) -> Any:
    if kind == "bytes":
        return base64.b64decode(cell) if heading.endswith("/base64") else cell.encode()
    if kind == "int64":
        return int(cell)
    assert math.isfinite(float(cell)) == any(mark in str(cell) for mark in ".e")
    return float(cell)


def _bits(kind: str, values: list[Any]) -> Any:
    if kind != "float":
        return values
    return [float("nan") if v != v else v for v in np.float32(values)].__repr__()  # noqa: PLR0124


def test_steps_of_sequences_are_lists_of_lists(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(rs.encode_sequence_example({"id": 1}, {"steps": [[1], [2, 3]], "s": [["a"]]}))
    rs.export(tmp_path / "a.tfrecord", tmp_path / "out", "csv")
    (file,) = (tmp_path / "out").glob("*.csv")
    assert table(file) == [{"id": "1", "s": '[["a"]]', "steps": "[[1], [2, 3]]"}]
