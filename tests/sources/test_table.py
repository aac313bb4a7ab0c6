"""CSV and TSV as tables: kinds of columns, ragged rows, encodings, and images."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.sources import Listing, Source, Table
from recordsmith.sources.files import text_file
from recordsmith.sources.tables import csv_rows

from ..raising import places, raises
from ..reading import read_sample
from .source_contract import SourceContract
from .stored import stored_row


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        folder.mkdir()
        rows = [
            f"{n},{n / 3:.3f},name {n},{'ab'[n % 2]},{'test' if n > 4 else 'train'}"
            for n in range(7)
        ]
        return Table(
            _write(folder / "rows.csv", "id,x,name,class,part", *rows),
            label_column="class",
            split_column="part",
            group_column="name",
        )


class TestContractWithImages(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        images.make_folder(folder / "train", {"a": 3, "b": 2})
        for name in ("train", "test"):
            folder.joinpath(name, "a").mkdir(parents=True, exist_ok=True)
        (folder / "test" / "x.png").write_bytes(images.encode(images.noise(5, 4), "PNG"))
        names = sorted(p.relative_to(folder / "train").as_posix() for p in folder.glob("train/*/*"))
        rows = [f"{name},{number},{name[0]}" for number, name in enumerate(names)]
        _write(folder / "train" / "metadata.csv", "file_name,number,class", *rows)
        _write(folder / "test" / "metadata.csv", "file_name,number,class", "x.png,1,a")
        return Table(folder, label_column="class")


def _write(path: Path, *lines: str, encoding: str = "utf-8") -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def _rows(source: Table) -> list[Any]:
    return [stored_row(source, sample) for sample in source.list_samples().samples]


def _column(tmp_path: Path, *cells: str, **options: Any) -> tuple[Any, list[Any], Listing]:
    """(kind, value in each row, listing) of a column with these cells, next to another one."""
    source = Table(_write(tmp_path / "t.csv", "x,other", *(f"{c},a" for c in cells)), **options)
    listing = source.list_samples()
    rows = [stored_row(source, sample) for sample in listing.samples]
    return source.list_samples().reader.kinds()["x"], [row.get("x") for row in rows], listing


def test_all_cells_decide_also_those_far_down(tmp_path: Path) -> None:
    cells = ["1"] * 9000 + ["2.5"]
    assert _column(tmp_path, *cells)[:2] == ("float", [1.0] * 9000 + [2.5])
    kind, values, listing = _column(tmp_path, *cells, "n/a", "3")
    assert kind == "bytes"
    assert values == [b"1"] * 9000 + [b"2.5", b"n/a", b"3"]
    (notice,) = listing.notices
    assert "'x' stored" in notice
    assert "t.csv, line 9003: n/a" in notice


def test_empty_cells_are_counted(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "a,b,c", "1,,x", ",,", ",2.5,y")
    source = Table(path)
    listing = source.list_samples()
    (notice,) = listing.notices
    assert places([notice]) == ["5 empty cells"]
    assert [part.split(" (")[0] for part in notice.partition(": ")[2].split(", ")] == [
        "2 in 'a'",
        "2 in 'b'",
        "1 in 'c'",
    ]
    assert _rows(source) == [{"a": 1, "c": b"x"}, {"c": b""}, {"b": 2.5, "c": b"y"}]


def test_declared_kinds(tmp_path: Path) -> None:
    assert _column(tmp_path, "007", "8", kinds={"x": "int64"})[:2] == ("int64", [7, 8])
    assert _column(tmp_path, "1", "2", kinds={"x": "bytes"})[:2] == ("bytes", [b"1", b"2"])
    assert _column(tmp_path, "1", "", kinds={"x": "float"})[:2] == ("float", [1.0, None])
    source = Table(
        _write(tmp_path / "t.csv", "x", "1", "two", "1_0", "2.5", "9" * 30), kinds={"x": "int64"}
    )
    samples = source.list_samples().samples
    assert stored_row(source, samples[0]) == {"x": 1}
    for number, words in ((1, "'two'"), (2, "'1_0'"), (3, "'2.5'"), (4, "int64")):
        with pytest.raises(rs.SourceError, match=rf"line {number + 2}: .*'x': .*{words}"):
            stored_row(source, samples[number])
    with raises(rs.OptionError, option="kinds", value="y", expected="one of x"):
        Table(_write(tmp_path / "t.csv", "x", "1"), kinds={"y": "float"}).list_samples()
    with raises(rs.OptionError, option="kinds", value="int", expected="bytes, float or int64"):
        Table(tmp_path / "t.csv", kinds={"x": "int"})  # type: ignore[dict-item]


def test_quotes_line_breaks_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = '\ufeff"a, b",c\r\n"x ""y""\r\nz",1\r\n\r\n\u2028\x0b\x85,2\nw,3'
    path.write_bytes(text.encode())
    source = Table(path)
    samples = source.list_samples().samples
    rows = [stored_row(source, sample) for sample in samples]
    assert [row["c"] for row in rows] == [1, 2, 3]
    assert rows[0]["a, b"] == b'x "y"\r\nz'
    assert rows[1]["a, b"].decode() == "\u2028\x0b\x85"
    declared = Table(path, kinds={"a, b": "int64"})
    found = []
    for sample in declared.list_samples().samples[::2]:
        with pytest.raises(rs.SourceError) as caught:
            read_sample(declared, sample)
        found.append(caught.value.line)
    assert found == [2, 6]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "is empty"),
        ("\n\n", 1, "is blank"),
        ("a,b\n", None, ".a and b"),
        ("a,b,a\n1,2,3\n", 1, "names: a"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", 1, r"numbers: 5\.1 and 3\.5"),
        ("alice,34\nbob,35\n", 1, "found numbers: 34"),
        ("5,0,0,1\n4,0,1,1\n", 1, "found numbers: 5, 0, 0 and 1"),
        ("a.jpg,cat\nb.jpg,cat\n", 1, r"found file names: a\.jpg"),
        ('"a,b\n1,2\n', 1, "closing quote"),
        ("a\0,b\n1,2\n", 1, "zero bytes"),
        ("a,b\n1,2\n3\n4,5\n", 3, "1 cell; expected 2"),
        ("a,b\n1,2\n\n4,5,6\n", 4, "3 cells; expected 2"),
        ('a,b\n1,x\n2,"y\n3,z\n4,w\n', 3, "closing quote"),
        ('a,b\n1,"x"y\n2,z\n', 2, "text after"),
        ("x\n" + "y" * (1 << 24) + "z\n1\n", 2, "16,777,216 characters"),
        (",".join(f"a{n}" for n in range(65_537)) + "\n1\n", 1, "65,537 columns; at most 65,536"),
    ],
)
def test_invalid_tables(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with raises(rs.SourceError, path=path, line=line, match=words):
        Table(path).list_samples()


def test_names_of_columns(tmp_path: Path) -> None:
    """As pandas writes a frame with its index, and numbers as names of columns."""
    source = Table(_write(tmp_path / "t.csv", ",0,1, b ", "0,5,6,x", "1,7,8,y"))
    listing = source.list_samples()
    (notice,) = listing.notices
    assert notice.endswith(": column_0")
    assert _rows(source)[1] == {"column_0": 1, "0": 7, "1": 8, "b": b"y"}
    source = Table(_write(tmp_path / "t.csv", "a,b,", "1,2,", "3,4,"))
    assert source.list_samples().notices == ()
    assert _rows(source) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_wrong_encoding_is_located(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.csv", "name,x", "abc,1", "Zoë,2", encoding="cp1252")
    with pytest.raises(rs.SourceError) as caught:
        Table(path).list_samples()
    assert (caught.value.path, caught.value.line) == (str(path), 3)
    assert "byte 15 (b'\\xeb')" in caught.value.problem
    assert path.read_bytes()[15] == 0xEB
    assert "encoding='cp1252'" in str(caught.value)
    assert _rows(Table(path, encoding="cp1252"))[1] == {"name": "Zoë".encode(), "x": 2}
    for encoding in ("no-such", "hex"):
        with pytest.raises(rs.OptionError) as unknown:
            Table(path, encoding=encoding).list_samples()
        assert (unknown.value.option, unknown.value.value) == ("encoding", repr(encoding))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "shift_jis", "gb18030"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    path = _write(tmp_path / "t.csv", "名,x", "ソ表,1", "b,2", encoding=encoding)
    if encoding == "utf-16-le":
        with raises(rs.SourceError, path=tmp_path / "t.csv", line=2, match=r"encoding='utf-16'"):
            Table(path).list_samples()
    if encoding == "utf-16":
        with raises(rs.SourceError, path=tmp_path / "t.csv", line=2, match=r"zero bytes|UTF-16"):
            Table(path).list_samples()
    source = Table(path, encoding=encoding)
    assert _rows(source) == [{"名": "ソ表".encode(), "x": 1}, {"名": b"b", "x": 2}]
    with path.open("ab") as file:
        file.write(b"\xff")
    with raises(
        rs.SourceError,
        path=tmp_path / "t.csv",
        line=4,
        match=rf"t\.csv, line 4: byte {path.stat().st_size - 1}",
    ):
        Table(path, encoding=encoding).list_samples()


@pytest.mark.parametrize(
    ("name", "header", "row", "delimiter", "notice"),
    [
        ("t.csv", "a;b", "1,5;x", None, "semicolons"),
        ("t.txt", "a\tb", "1,5\tx", None, "tabs"),
        ("t.csv", "a|b", "1,5|x", "|", ""),
        ("t.tsv", "a\tb", "1,5\tx", None, ""),
    ],
)
def test_delimiters(
    tmp_path: Path, name: str, header: str, row: str, delimiter: str | None, notice: str
) -> None:
    source = Table(_write(tmp_path / name, header, row), delimiter=delimiter)
    assert _rows(source) == [{"a": b"1,5", "b": b"x"}]
    assert notice in "".join(source.list_samples().notices)
    for wrong in ('"', "\n", "\ud800", "", ";;"):
        with raises(rs.OptionError, option="delimiter"):
            Table(tmp_path / name, delimiter=wrong)


# -- images --------------------------------------------------------------------------------------


def _with_image_files(folder: Path, images: ModuleType, *names: str) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(images.encode(images.noise(5 + number, 4), "PNG"))


def test_column_of_images(tmp_path: Path, images: ModuleType) -> None:
    _with_image_files(tmp_path, images, "a.png", "deep/b.png")
    path = _write(tmp_path / "t.csv", "file,age,class", "deep/b.png,5,x", "a.png,6,w", "a.png,7,")
    source = Table(path, image_column="file", label_column="class")
    listing = source.list_samples()
    assert listing.class_names == ("w", "x")
    assert stored_row(source, listing.samples[0]) == {
        "age": 5,
        "image/encoded": (tmp_path / "deep/b.png").read_bytes(),
        "image/format": b"png",
        "image/height": 4,
        "image/width": 6,
        "image/filename": b"deep/b.png",
        "image/class/label": 1,
        "image/class/text": b"x",
    }
    assert "image/class/label" not in stored_row(source, listing.samples[2])
    assert source.list_samples().reader.kinds() == {"age": "int64"}
    for sample, name in zip(listing.samples, ("deep/b.png", "a.png", "a.png"), strict=True):
        assert sample.size_bytes > (tmp_path / name).stat().st_size
    rs.pack(source, tmp_path / "out")  # next to the images: it is the table that names them


def test_paths_that_leave_the_folder_are_refused_and_others_fixed(
    tmp_path: Path, images: ModuleType
) -> None:
    root = tmp_path / "root"
    _with_image_files(root, images, "a.png", "deep/b.png", "../secret.png")
    names = ["../secret.png", "deep/../../secret.png", r"C:\x\a.png", "/tmp/a.png", r"deep\b.png"]
    names += ["deep/../a.png", "", "gone.png", ".."]
    source = Table(
        _write(root / "t.csv", "file,n", *(f"{name},1" for name in names)), image_column="file"
    )
    samples = source.list_samples().samples

    def read(number: int) -> Any:
        return read_sample(source, samples[number])

    for number in (0, 1, 8):
        with raises(rs.SourceError, sample=f"{root}/t.csv, line {number + 2}", match="outside"):
            read(number)
    found = [read(number)["image/filename"] for number in (2, 3, 4, 5)]
    assert found == [b"a.png", b"a.png", b"deep/b.png", b"a.png"]
    notices = source.list_samples().notices
    assert r"2 images found by the last part of an absolute path, such as C:\x\a.png" in notices
    with raises(rs.SourceError, sample=f"{root}/t.csv, line 8", match="'file' is empty"):
        read(6)
    with raises(rs.SourceError, sample=f"{root}/t.csv, line 9", match=r"gone\.png"):
        read(7)


def test_a_folder_with_metadata(tmp_path: Path, images: ModuleType) -> None:
    _with_image_files(tmp_path, images, "a.png", "deep/b.png")
    rows = ({"file_name": name, "text": name[-5]} for name in ("a.png", "deep/b.png"))
    _write(tmp_path / "metadata.jsonl", *map(json.dumps, rows))
    rows_read = _rows(Table(tmp_path))
    assert [(row["image/filename"], row["image/caption"]) for row in rows_read] == [
        (b"a.png", b"a"),
        (b"deep/b.png", b"b"),
    ]
    _write(tmp_path / "metadata.csv", "file_name", "a.png")
    with raises(rs.SourceError, path=tmp_path, match=r"metadata\.csv and metadata\.jsonl"):
        Table(tmp_path).list_samples()


@pytest.mark.parametrize(
    ("name", "values", "options", "captions"),
    [
        ("metadata.jsonl", {"text": "ü a"}, {}, ["ü a"]),
        ("metadata.jsonl", {"text": ["a", " ", "b"], "n": 1}, {}, ["a", "b"]),
        ("metadata.jsonl", {"text": "a", "caption": ["b"]}, {}, ["b"]),
        ("metadata.jsonl", {"text": "a"}, {"caption_column": ""}, None),
        ("metadata.jsonl", {"text": 7}, {}, None),
        ("rows.jsonl", {"text": "a"}, {}, None),
        ("rows.jsonl", {"captions": []}, {"kinds": {"captions": "bytes"}}, []),
        ("rows.jsonl", {"caption": "a"}, {"label_column": "caption"}, None),
        ("rows.jsonl", {"text": "a", "caption": "b"}, {"caption_column": "text"}, ["a"]),
        ("rows.jsonl", {"n": 7}, {"caption_column": "n"}, rs.SourceError),
        ("rows.jsonl", {"n": 7}, {"caption_column": "m"}, rs.OptionError),
        ("rows.jsonl", {"n": 7, "image/caption": "a"}, {}, rs.SourceError),
    ],
)
def test_captions_of_images(
    tmp_path: Path, images: ModuleType, name: str, values: Any, options: Any, captions: Any
) -> None:
    _with_image_files(tmp_path, images, "a.png")
    _write(tmp_path / name, json.dumps({"file_name": "a.png", **values}))
    source = Table(tmp_path / name, image_column="file_name", **options)
    if isinstance(captions, type):
        with pytest.raises(captions):
            source.list_samples()
        return
    report = rs.pack(source, tmp_path / "out")
    ((example,),) = rs.open(tmp_path / "out").splits.values()
    assert report.sample_count == 1
    found = example.pop("image/caption", None)
    assert (None if found is None else [text.decode() for text in found]) == captions


@pytest.mark.parametrize(
    "table",
    ["../a.csv", "b.csv,../a.csv", "x/../../a.csv", "", "..", "{}/a.csv", "b.csv, b.csv"],
)
def test_the_table_is_in_its_folder_once(tmp_path: Path, table: str) -> None:
    for path in ("a.csv", "d/b.csv"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        _write(tmp_path / path, "x", "1")
    with pytest.raises(rs.OptionError):
        Table(tmp_path / "d", table=table.format(tmp_path)).list_samples()
    with raises(rs.OptionError, option="table", value="b.csv"):
        Table(tmp_path / "d" / "b.csv", table="b.csv")


def test_folders_with_metadata_that_do_not_agree(tmp_path: Path) -> None:
    for split in ("test", "train"):
        (tmp_path / split).mkdir()
        _write(tmp_path / split / "metadata.csv", "file_name,x", "a.png,0.5")
    with raises(rs.OptionError, option="split_column", value="x", match="of the folders"):
        Table(tmp_path, split_column="x").list_samples()
    (tmp_path / "test" / "metadata.csv").rename(tmp_path / "test" / "metadata.jsonl")
    with raises(rs.SourceError, path=tmp_path, match="different formats"):
        Table(tmp_path).list_samples()


def test_metadata_without_the_usual_column(tmp_path: Path) -> None:
    _write(tmp_path / "metadata.csv", "name,x", "a.png,0.5")
    with raises(rs.OptionError, option="image_column", value="file_name", match="for image_column"):
        Table(tmp_path).list_samples()


def test_a_folder_of_tables(tmp_path: Path) -> None:
    _write(tmp_path / "b.csv", "x", "2.5")
    _write(tmp_path / "a.csv", "x", "1")
    _write(tmp_path / ".c.csv", "x", "3")
    source = Table(tmp_path)
    assert _rows(source) == [{"x": 1.0}, {"x": 2.5}]
    assert source.list_samples().splits == ()
    (tmp_path / "a.csv").rename(tmp_path / "test.csv")
    (tmp_path / "b.csv").rename(tmp_path / "train-00000-of-00001.csv")
    listing = Table(tmp_path).list_samples()
    assert listing.splits == ("train", "test")
    assert [sample.split for sample in listing.samples] == ["test", "train"]
    _write(tmp_path / "other.tsv", "x", "3")
    with raises(rs.SourceError, path=tmp_path, match="different formats"):
        Table(tmp_path).list_samples()


def test_every_option_is_described(tmp_path: Path) -> None:
    options: dict[str, Any] = dict.fromkeys(("image_column", "split_column", "group_column"), "x")
    options |= {"label_column": "x", "kinds": {"x": "bytes"}, "delimiter": ";"}
    made = [Table(tmp_path / "a.csv", **{name: value}) for name, value in options.items()]
    made.append(Table(tmp_path / "a.csv", image_column="x", images=tmp_path))
    made += [Table(tmp_path / "a.csv", encoding="cp1252"), Table(tmp_path / "a.csv")]
    assert len({json.dumps(table.describe()) for table in made}) == len(made)


@pytest.mark.parametrize("quote", ["", '"', '"\n\n'])
def test_memory_of_a_cell_without_end(tmp_path: Path, quote: str) -> None:
    """The same for 50 MB as for 2 GB."""
    path = tmp_path / "a.csv"
    path.write_text(f"x\n{quote}" + "y" * 50_000_000)
    tracemalloc.start()
    try:
        with raises(rs.SourceError, path=path, line=2, match="line exceeds"):
            Table(path).list_samples()
        assert tracemalloc.get_traced_memory()[1] < 256 << 20
    finally:
        tracemalloc.stop()


# -- blocks --------------------------------------------------------------------------------------


_LINES = st.lists(
    st.one_of(
        st.text('ab,"', max_size=8),
        st.sampled_from(["a,b", '"a\n",b', '"x""y",', "", '"a,b', 'c"d,e', '"",""', '"\r\n",z']),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=200, deadline=None)
@given(_LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(8, 40), st.booleans())
def test_blocks_of_any_size_give_the_rows_of_the_csv_module(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    end: str,
    block: int,
    has_end: bool,
) -> None:
    text = end.join(["p,q", *lines]) + end * has_end
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(text.encode())
    source = Table(path, kinds={"p": "bytes", "q": "bytes"})
    try:
        expected = list(filter(None, csv.reader(io.StringIO(text, newline=""), strict=True)))[1:]
    except csv.Error:
        expected = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "_BLOCK_BYTES", block)
        if not expected or any(len(row) != 2 for row in expected):
            with raises(rs.SourceError, path=path):
                source.list_samples()
            return
        found = [[value.decode() for value in row.values()] for row in _rows(source)]
    assert found == expected


def test_rows_with_regular_quotes_take_no_csv_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ['"a ""b""",', '"c\nd","e,f"', '"",""', "g,h"] * 500
    monkeypatch.setattr(text_file, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(csv_rows._CsvFile, "_parse_slowly", None)
    path = _write(tmp_path / "t.csv", "p,q", *rows)
    assert len(Table(path).list_samples().samples) == 2000


# -- hostile cells -------------------------------------------------------------------------------

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_FRACTION = re.compile(
    r"[+-]?(([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=e))(e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)
_UNUSUAL = (
    *("", " ", "0", "-0", "-5", " 7\t", "007", "-01", "+3", "00", "1_0", "0x10", "٣", "1\x0b"),
    *("1.5", "1.", "-.5", ".", "1e5", "1E-3", "1e", "e5", "--1", "1-2", "+1.5", "00.5", "1e+05"),
    *("nan", "-NaN", "inf", "+Inf", "-infinity", "infinit", "1e39", "1e400", "-1e400", "1e-400"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "9" * 19, "9" * 40),
    *("16777217", "3.4028235677973366e+38", "é", "\ufeff1", "\ufeffx", '"', "x\r\ny", "\r", "1\n"),
)


def _kind(cell: str) -> str | None:
    """The rule of docs/packing.md for one cell; None for one without a value."""
    bare = cell.strip(" \t")
    if _WHOLE.fullmatch(bare):
        return "int64" if -(2**63) <= int(bare) < 2**63 else "bytes"
    return ("float" if _FRACTION.fullmatch(bare) else "bytes") if bare else None


def _stored(cell: str, kind: str) -> Any:
    """What is stored of a cell; an exception if it does not fit."""
    if kind == "bytes":
        return cell.encode()
    if _kind(cell) is None:
        return None
    if kind == "int64":
        return int(cell)
    with np.errstate(over="ignore"):
        value = float(np.float32(float(cell)))
    return OverflowError if math.isinf(value) and re.search("[0-9]", cell) else value


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(_UNUSUAL), min_size=1, max_size=3, unique=True).flatmap(
        lambda some: st.lists(st.sampled_from([*some, "1", "0.5"]), min_size=1, max_size=12)
    ),
    st.sampled_from([8, 20, 1 << 22]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"]),
)
def test_all_cells_of_a_column_decide_as_a_rule_for_single_cells_does(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str], block: int, encoding: str
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["x", "y"], *([cell, "a"] for cell in cells)])
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    kinds = set(map(_kind, cells)) - {None}
    kind = "bytes" if not kinds or "bytes" in kinds else "float" if "float" in kinds else "int64"
    source = Table(path, encoding=encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "_BLOCK_BYTES", block)
        samples = source.list_samples().samples
    assert source.list_samples().reader.kinds()["x"] == kind
    for sample, cell in zip(samples, cells, strict=True):
        expected = _stored(cell, kind)
        if expected is OverflowError:
            with raises(rs.SourceError, path=path, match="32-bit float"):
                stored_row(source, sample)
        else:
            assert repr(stored_row(source, sample).get("x")) == repr(expected)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text('{"x": 1}\n' if name == "t.jsonl" else "x\n1\n")
    read = text_file.TextFile.read

    def reading(self: Any, start: int, size: int) -> bytes:
        os.utime(path, ns=(0, 12345))
        return read(self, start, size)

    monkeypatch.setattr(text_file.TextFile, "read", reading)
    with raises(rs.SourceError, path=path, match="changed while"):
        Table(path).list_samples()
