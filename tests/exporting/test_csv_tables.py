from __future__ import annotations

import base64
import csv
import io
import json
import math
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs

pytest.importorskip("pyarrow")


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scalars_lists_and_gaps(write: Any, tmp_path: Path, files: Any) -> None:
    examples = [
        {
            "count": -(2**63),
            "score": 0.1,
            "whole": 3.0,
            "text": 'comma, "quote"\nand a line',
            "many": [1, 2],
            "floats": [0.5, float("nan")],
            "words": ["a", 'ö"'],
            "binary": b"\xff\x00",
            "blobs": [b"\xff", b""],
        },
        {"score": float("inf"), "many": [], "words": ["x"], "text": ""},
    ]
    report = rs.export(write({"many": "int64"}, train=examples, val=[{}]), tmp_path / "out", "csv")
    assert report.dropped_features == {}
    assert sorted(files(tmp_path / "out")) == ["train.csv", "val.csv"]
    first, second = table(tmp_path / "out" / "train.csv")
    assert first["count"] == str(-(2**63))
    assert first["score"] == "0.1"  # the float32, in the fewest digits
    assert first["whole"] == "3.0"
    assert first["text"] == 'comma, "quote"\nand a line'
    assert json.loads(first["many"]) == [1, 2]
    assert math.isnan(json.loads(first["floats"])[1])
    assert json.loads(first["words"]) == ["a", 'ö"']
    assert base64.b64decode(first["binary/base64"]) == b"\xff\x00"
    assert list(map(base64.b64decode, json.loads(first["blobs/base64"]))) == [b"\xff", b""]
    assert float(second["score"]) == math.inf
    assert (second["count"], second["many"], second["words"]) == ("", "[]", '["x"]')
    assert table(tmp_path / "out" / "val.csv") == [dict.fromkeys(first, "")]


def test_images_are_files_next_to_the_table(
    write: Any, image: Any, images: ModuleType, tmp_path: Path, files: Any
) -> None:
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    more = {"weight": 2.5, "image/segmentation/class/encoded": mask, "thumb": images.jpeg(9)}
    examples = [image("cat/a.jpg", more=more), image("b.jpg", seed=1, more={"weight": 1.0})]
    rs.export(write(train=examples), tmp_path / "out", "csv")
    written = files(tmp_path / "out")
    assert {name: data for name, data in written.items() if name != "metadata.csv"} == {
        "cat/a.jpg": examples[0]["image/encoded"],
        "b.jpg": examples[1]["image/encoded"],
        "mask/cat/a.png": mask,
        "thumb/cat/a.jpg": more["thumb"],
    }
    assert table(tmp_path / "out" / "metadata.csv") == [
        {
            "file_name": "cat/a.jpg",
            "mask_file_name": "mask/cat/a.png",
            "thumb_file_name": "thumb/cat/a.jpg",
            "weight": "2.5",
        },
        {"file_name": "b.jpg", "mask_file_name": "", "thumb_file_name": "", "weight": "1.0"},
    ]


def test_each_split_has_a_folder(write: Any, image: Any, tmp_path: Path, files: Any) -> None:
    rs.export(write(train=[image("a.jpg")], val=[image("a.jpg")]), tmp_path / "out", "csv")
    assert sorted(files(tmp_path / "out")) == [
        *("train/a.jpg", "train/metadata.csv", "val/a.jpg", "val/metadata.csv")
    ]
    assert table(tmp_path / "out" / "val" / "metadata.csv") == [{"file_name": "a.jpg"}]


@pytest.mark.parametrize(
    ("labels", "columns"),
    [("0:cat\n1:dog\n", {"label"}), ("1:cat\n2:dog\n", {"label", "label_id"})],
)
def test_label_ids_are_written_if_names_do_not_imply_them(
    write: Any, image: Any, tmp_path: Path, labels: str, columns: set[str]
) -> None:
    more = {"image/class/text": "dog", "image/class/label": int(labels[-6])}
    folder = write(train=[image("a.jpg", more=more)])
    (folder / "labels.txt").write_text(labels)
    rs.export(folder, tmp_path / "out", "csv")
    (row,) = table(tmp_path / "out" / "metadata.csv")
    assert row.keys() == {"file_name", *columns}
    assert row["label"] == "dog"
    assert row.get("label_id", labels[-6]) == labels[-6]


def test_two_columns_with_the_same_name(write: Any, image: Any, tmp_path: Path) -> None:
    source = write(train=[image("a.jpg", more={"file_name": "x"})])
    with pytest.raises(rs.OptionError, match="same name"):
        rs.export(source, tmp_path / "out", "csv")


def test_raw_pixels_are_files_too(write: Any, tmp_path: Path) -> None:
    from PIL import Image

    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    example = {
        "image/encoded": pixels.tobytes(),
        "image/format": "raw",
        "image/height": 4,
        "image/width": 5,
        "image/depth": 3,
        "image/dtype": "uint8",
    }
    rs.export(write(train=[example]), tmp_path / "out", "csv")
    (row,) = table(tmp_path / "out" / "metadata.csv")
    assert row == {"file_name": "000000.png"}
    assert np.array_equal(np.asarray(Image.open(tmp_path / "out" / "000000.png")), pixels)


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


def test_rows_that_cannot_be_exported_are_named_by_their_position(
    image: Any, tmp_path: Path
) -> None:
    """Also where the splits are mixed: positions count in the dataset."""
    raw = {"image/format": "raw", "image/dtype": "float32"}
    for number, split in enumerate(("train", "val", "train")):
        with rs.ShardWriter(tmp_path / f"{split}-{number:05d}-of-00003.tfrecord") as writer:
            writer.write_example(image(f"{number}.jpg", more=raw if number else None))
            writer.write_example(image(f"good-{number}.jpg"))
    paths = [
        tmp_path / f"{s}-{n:05d}-of-00003.tfrecord" for n, s in enumerate(("train", "val", "train"))
    ]
    report = rs.export(rs.open(paths), tmp_path / "out", "csv", skip_errors=True)
    assert sorted(report.skipped_positions) == [2, 4]
    assert report.splits == {"train": 3, "val": 1}
    rows = table(tmp_path / "out" / "train" / "metadata.csv")
    assert [row["file_name"] for row in rows] == ["0.jpg", "good-0.jpg", "good-2.jpg"]


def test_steps_of_sequences_are_lists_of_lists(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(rs.encode_sequence_example({"id": 1}, {"steps": [[1], [2, 3]], "s": [["a"]]}))
    rs.export(tmp_path / "a.tfrecord", tmp_path / "out", "csv")
    (file,) = (tmp_path / "out").glob("*.csv")
    assert table(file) == [{"id": "1", "s": '[["a"]]', "steps": "[[1], [2, 3]]"}]
