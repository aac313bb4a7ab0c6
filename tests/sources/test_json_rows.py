"""JSON Lines as tables: values of every form, and lines that are none."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.sources import Source, Table

from ..raising import raises
from ..reading import read_sample
from .source_contract import SourceContract
from .stored import stored_lists, stored_row


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        folder.mkdir()
        rows = [
            {"n": n if n % 2 else n / 4, "list": [0.5] * n, "y": n % 3, "deep": {"a": [n]}}
            for n in range(6)
        ]
        return Table(_write(folder / "t.jsonl", *rows), label_column="y")


def _write(path: Path, *rows: Any) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _features(source: Table) -> list[Any]:
    """What is stored of each row."""
    return [stored_lists(source, sample) for sample in source.list_samples().samples]


def test_values(tmp_path: Path) -> None:
    row = {
        "int": -3,
        "float": 0.5,
        "text": "é",
        "yes": True,
        "none": None,
        "ints": [1, 2],
        "floats": [0.5, 2],
        "texts": ["a", "é"],
        "empty": "",
        "object": {"a": [1, {"b": None}], "é": 2.5},
        "objects": [{"a": 1}, {"a": 2}],
        "lists": [[1], [2.5, None]],
    }
    source = Table(_write(tmp_path / "t.jsonl", row))
    assert _features(source) == [
        {
            "int": [-3],
            "float": [0.5],
            "text": ["é".encode()],
            "yes": [1],
            "ints": [1, 2],
            "floats": [0.5, 2.0],
            "texts": [b"a", "é".encode()],
            "empty": [b""],
            "object": ['{"a":[1,{"b":null}],"é":2.5}'.encode()],
            "objects": [b'[{"a":1},{"a":2}]'],
            "lists": [b"[[1],[2.5,null]]"],
        }
    ]
    as_float, as_json = source.list_samples().notices
    assert as_float.endswith("as float: floats")
    assert as_json.endswith(": object, objects and lists")
    assert "JSON text" in as_json


def test_lists_and_single_values_of_one_key(tmp_path: Path) -> None:
    rows = [{"x": [1], "y": ["a"]}, {"x": 0.5, "y": {"b": 1}}, {"x": [], "y": "c"}]
    path = _write(tmp_path / "t.ndjson", *rows)
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
    assert _features(Table(path)) == [
        {"x": [1.0], "y": [b'["a"]']},
        {"x": [0.5], "y": [b'{"b":1}']},
        {"x": [], "y": [b"c"]},
    ]


def test_kinds_are_decided_by_all_rows(tmp_path: Path) -> None:
    rows = [{"x": 1, "list": []}, {"x": 2.5, "list": [3]}, {"list": [0.5], "x": None}, {}]
    source = Table(_write(tmp_path / "t.jsonl", *rows))
    (notice,) = source.list_samples().notices
    assert notice.endswith(": x and list")
    assert "as float" in notice
    assert _features(source) == [
        {"x": [1.0], "list": []},
        {"x": [2.5], "list": [3.0]},
        {"list": [0.5]},
        {},
    ]
    assert source.list_samples().reader.kinds() == {"x": "float", "list": "float"}


def test_text_among_numbers(tmp_path: Path) -> None:
    path = _write(tmp_path / "t.jsonl", {"x": 1}, {"x": "two"})
    with pytest.raises(rs.SourceError) as caught:
        Table(path).list_samples()
    (problem,) = caught.value.problems
    assert all(text in problem for text in ("'x'", f"{path}, line 1", f"{path}, line 2"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[{"x": 1},\n {"x": 2}]\n', 1, "object per line"),
        ('{\n "x": 1\n}\n', 1, "object per line"),
        ("\n\n", None, "blank"),
        ('{"x": 1}\n\nwords\n', 3, "not valid JSON"),
        ('{"x": 1}\n{"x": 2\n', 2, "column 8"),
        ('{"x": 1}\n[1]\n', 2, "object"),
        ("[" * 100_000 + "\n", 1, "not valid JSON"),
        ('{"x": 1}\n{"x": [0.5, -1e400]}\n', 2, "does not fit a 32-bit float"),
        ("", None, "is empty"),
    ],
)
def test_invalid_json_lines(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with raises(rs.SourceError, path=tmp_path / "t.jsonl", line=line, match=words):
        Table(tmp_path / "t.jsonl").list_samples()


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    rows = [{"a": 1e300}, {"b": [0.5, -1e39]}, {"c": [1, 2**64]}, {"a": float("inf"), "b": [1]}]
    for some in (rows, [*rows[:2], {"c": [1]}, rows[3]]):  # row by row, and as columns
        source = Table(_write(tmp_path / "t.jsonl", *some))
        samples = source.list_samples().samples
        for number, key in enumerate("abc"):
            if some[number] != {"c": [1]}:
                with pytest.raises(rs.SourceError, match=rf"line {number + 1}: .*'{key}'"):
                    read_sample(source, samples[number])
        assert stored_row(source, samples[3]) == {"a": np.inf, "b": 1.0}
    # its usual digits are larger than the largest float, as a double, and still round to it
    source = Table(_write(tmp_path / "t.jsonl", {"a": 3.4028235e38}))
    assert _features(source)[0]["a"] == [np.finfo(np.float32).max]


_DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=4)
    | st.text('\\u0d8e\t"', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(
    st.dictionaries(st.text(max_size=2), _DOCUMENTS, min_size=1, max_size=3),
    st.booleans(),
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from('0123456789.eE+-{}[],:" \\utfnN\t\x0b'))
    ),
)
def test_lines_are_what_the_json_module_reads(
    document: dict[str, Any], is_ascii: bool, changes: list[tuple[int, str]]
) -> None:
    """Also damaged ones: what msgspec takes is the same, and what it refuses goes to json."""
    text = json.dumps(document, ensure_ascii=is_ascii)
    for at, character in changes[:3]:
        text = text[:at] + character + text[at + 1 :]
    with contextlib.suppress(msgspec.MsgspecError, RecursionError):
        assert repr(msgspec.json.decode(text)) == repr(json.loads(text))


# -- hostile rows --------------------------------------------------------------------------------


def test_keys_that_differ_in_all_rows(tmp_path: Path) -> None:
    """Such rows as columns would take gigabytes."""
    rows = [{f"{n} {k}": [n, 0.5, "a", {"b": 1}][k % 4] for k in range(40)} for n in range(1200)]
    rows[7]["g"] = rows[8]["g"] = "x"
    rows[9]["big"] = 2**63
    source = Table(_write(tmp_path / "t.jsonl", *rows), group_column="g")
    samples = source.list_samples().samples
    assert [n for n, sample in enumerate(samples) if sample.group] == [7, 8]
    assert source.list_samples().reader.kinds()["5 0"] == "int64"
    for number in (0, 8, 1199):
        kinds = [stored_row(source, samples[number])[f"{number} {k}"] for k in range(4)]
        assert kinds == [number, 0.5, b"a", b'{"b":1}']
    with raises(rs.SourceError, match="line 10: 'big'"):
        read_sample(source, samples[9])


@pytest.mark.parametrize("option", ["split_column", "group_column", "label_column"])
def test_surrogates_cost_their_row(tmp_path: Path, option: str) -> None:
    rows = ['{"x": "\\ud800", "y": 1}', '{"x": "\\u00e9", "y": 2}']
    source = Table(_write(tmp_path / "t.jsonl", *rows), **{option: "x"})  # type: ignore[arg-type]
    report = rs.pack(source, tmp_path / "out", skip_errors=True)
    assert (report.sample_count, report.skipped_count) == (1, 1)


@pytest.mark.parametrize("option", ["split_column", "group_column", "label_column"])
@pytest.mark.parametrize("value", [0.5, [[1]], {"a": 1}])
def test_values_that_name_nothing(tmp_path: Path, option: str, value: Any) -> None:
    path = _write(tmp_path / "t.jsonl", {"x": "a", "y": 1}, {"x": value, "y": 2})
    kinds: Any = {"x": "bytes"}
    with raises(rs.SourceError, path=path, match="line 2, "):
        Table(path, kinds=kinds, **{option: "x"}).list_samples()  # type: ignore[arg-type]
