"""Rows of tables for records: compared with dicts in plain Python, and read by protobuf."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import Dataset
from recordsmith.format.example import classify
from recordsmith.support.errors import OptionError, RecordsmithError, SourceError
from recordsmith.writing.layers import joining, table_features
from recordsmith.writing.layers.joining import JoinedRows, TableValues, join_table

from ...raising import raises
from ...reference import parse

pa = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet  # noqa: E402

Row = Mapping[str, Any]
NAMES = [f"photos/{number:03}.jpg" for number in range(9)]


def dataset_of(
    examples: Sequence[Any], folder: Path, names: Any = None, shards: int = 2
) -> Dataset:
    """The examples, or pairs of SequenceExamples, in some shards."""
    folder.mkdir(exist_ok=True)
    bounds = np.linspace(0, len(examples), shards + 1).astype(int).tolist()
    for shard, (start, stop) in enumerate(pairwise(bounds)):
        with rs.ShardWriter(folder / f"train-{shard:05d}-of-{shards:05d}.tfrecord") as writer:
            for example in examples[start:stop]:
                is_pair = isinstance(example, tuple)
                write = rs.encode_sequence_example if is_pair else rs.encode_example
                writer.write(write(*example) if is_pair else write(example))
    if names is not None:
        lines = [f"{label}:{name}\n" for label, name in enumerate(names)]
        (folder / "labels.txt").write_text("".join(lines))
    return rs.open(folder)


def table_of(rows: Sequence[Row], file: Path) -> Path:
    """Write a table in the format of the suffix."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if file.suffix in (".csv", ".tsv"):
        separator = "," if file.suffix == ".csv" else "\t"
        cells = [[row.get(column) for column in columns] for row in rows]
        lines = [columns, *([("" if cell is None else str(cell)) for cell in row] for row in cells)]
        file.write_text("".join(separator.join(line) + "\n" for line in lines))
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        table = pa.table({column: [row.get(column) for row in rows] for column in columns})
        write = parquet.write_table if file.suffix == ".parquet" else feather.write_feather
        write(table, file)
    return file


def examples_of(joined: JoinedRows, count: int) -> list[bytes]:
    """The Examples of all records, in blocks of a few."""
    found: list[bytes] = []
    for start in range(0, count, 4):
        for data, offsets in joined.blocks(start, min(start + 4, count)):
            found += [bytes(memoryview(data)[low:high]) for low, high in pairwise(offsets)]
    assert len(found) == count
    return found


def merged(dataset: Dataset, joined: JoinedRows) -> list[dict[str, list[Any]]]:
    """The features of each record followed by its Example, as protobuf reads them."""
    pieces = zip(dataset.records(), examples_of(joined, len(dataset)), strict=True)
    messages = [parse("Example", record + values) for record, values in pieces]
    return [
        {
            key: [*getattr(feature, feature.WhichOneof("kind") or "int64_list").value]
            for key, feature in message.features.feature.items()
        }
        for message in messages
    ]


# -- formats and keys ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "feather"])
@pytest.mark.parametrize("on", ["id=key", "name=key", "position=key"])
def test_each_format_and_key(tmp_path: Path, suffix: str, on: str) -> None:
    examples = [{"id": 100 - n, "name": name, "score": 0.5} for n, name in enumerate(NAMES)]
    dataset = dataset_of(examples, tmp_path / "in")
    keys = {"id": [100 - n for n in range(9)], "name": NAMES, "position": range(9)}
    rows = [
        {"key": key, "points": n, "title": f"t{n}", "unused": 1.5}
        for n, key in enumerate(keys[on.partition("=")[0]])
    ]
    table = table_of(rows[::-1], tmp_path / f"t.{suffix}")
    joined = join_table(dataset, TableValues(table, {"score": "points", "title": "title"}, on))
    assert (joined.features, joined.missing_count) == (("score", "title"), 0)
    for number, example in enumerate(merged(dataset, joined)):
        assert example == {
            "id": [100 - number],
            "name": [NAMES[number].encode()],
            "score": [number],
            "title": [f"t{number}".encode()],
        }


def test_a_table_in_memory_and_all_columns(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": number} for number in range(9)], tmp_path / "in")
    vectors = [[0.5 * number, 1.0, 2.0] for number in range(9)]
    table = pa.table({"id": range(9), "vector": vectors, "words": [["a"] * n for n in range(9)]})
    joined = join_table(dataset, TableValues(table, None, "id"))
    assert joined.features == ("vector", "words")
    for number, example in enumerate(merged(dataset, joined)):
        assert example == {"id": [number], "vector": vectors[number], "words": [b"a"] * number}


def test_the_identity_is_that_of_the_values_and_the_join(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": number, "x": 0} for number in range(5)], tmp_path / "in")

    def identity(x: Sequence[int], on: str = "id=key", feature: str = "x") -> str:
        table = pa.table({"key": range(5), "y": x})
        return join_table(dataset, TableValues(table, {feature: "y"}, on)).identity

    assert identity([1] * 5) == identity([1] * 5)
    others = [
        identity([1] * 4 + [2]),
        identity([1] * 5, "position=key"),
        identity([1] * 5, "id=key", "z"),
    ]
    assert len({identity([1] * 5), *others}) == 4


@pytest.mark.parametrize("separator", ["/", "\\"])
def test_names_without_folders(tmp_path: Path, separator: str) -> None:
    names = [f"a{separator}{n}{separator}{name}" for n, name in enumerate("xyz")]
    dataset = dataset_of([{"name": name} for name in [*names, "bare"]], tmp_path / "in")
    table = pa.table({"file": ["other/y", "x", "bare", "z"], "v": [1, 0, 3, 2]})
    joined = join_table(dataset, TableValues(table, {"v": "v"}, "name=file", on_name=True))
    assert [example["v"] for example in merged(dataset, joined)] == [[0], [1], [2], [3]]


def test_sequence_examples_and_selections(tmp_path: Path) -> None:
    pairs = [({"id": n, "x": n}, {"steps": [[n], [n + 1]]}) for n in range(8)]
    dataset = dataset_of(pairs, tmp_path / "in")
    values = TableValues(
        pa.table({"id": [6, 2], "x": [60, None], "new": [1, 2]}), None, "id", allow_missing=True
    )
    for chosen in (dataset, dataset[2:7], dataset.shuffle(seed=3)):
        joined = join_table(chosen, values)
        records = zip(chosen.records(), examples_of(joined, len(chosen)), strict=True)
        for example in [rs.decode_sequence_example(a + b) for a, b in records]:
            number = int(example.context["id"][0])
            assert example.context["x"].tolist() == [60 if number == 6 else number]
            assert [*example.context.get("new", ())] == {6: [1], 2: [2]}.get(number, [])
            assert len(example.feature_lists["steps"]) == 2
        assert {classify(data) for data in examples_of(joined, len(chosen))} == {"Example"}
    with raises(OptionError, option="set", value="steps"):
        join_table(dataset, TableValues(values.table, {"steps": "x"}, "id"))
    with raises(OptionError, option="on", value="steps=id"):
        join_table(dataset, TableValues(values.table, {"x": "x"}, "steps=id"))


# -- properties ------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


@st.composite
def _inputs(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Records and rows with keys of one kind, unique on each side."""
    keys = draw(st.sampled_from([TEXTS, st.integers(-(2**63), 2**63 - 1), st.integers(0, 9)]))
    pool = draw(st.lists(keys, min_size=1, max_size=20, unique=True))
    chosen = st.lists(st.sampled_from(pool), unique=True, max_size=20)
    optional = {"x": st.none() | st.integers(-9, 9), "t": st.none() | TEXTS}
    feature = {"x": st.lists(st.integers(-9, 9), max_size=3), "b": TEXTS}
    first = pool[0]
    records = [
        {"key": key, **draw(st.fixed_dictionaries({}, optional=feature))}
        for key in dict.fromkeys([first, *draw(chosen)])
    ]
    rows = [
        {"key": key, **draw(st.fixed_dictionaries(optional))}
        for key in dict.fromkeys([*draw(chosen), first])
    ]
    return records, rows


@given(_inputs())
def test_random_tables_against_a_dict(inputs: tuple[list[Row], list[Row]]) -> None:
    records, rows = inputs
    with TemporaryDirectory() as folder:
        dataset = dataset_of(records, Path(folder))
        columns = {name: [row[name] for row in rows] for name in ("key", "x", "t")}
        table = pa.table(
            {**columns, "x": pa.array(columns["x"], "int64"), "t": pa.array(columns["t"], "string")}
        )
        joined = join_table(dataset, TableValues(table, None, "key", allow_missing=True))
        by_key = {row["key"]: row for row in rows}
        found = merged(dataset, joined)
    missing = 0
    for record, example in zip(records, found, strict=True):
        row = by_key.get(record["key"], {})
        new = {name: [row[name]] for name in ("x", "t") if row.get(name) is not None}
        expected = {"x": [], **{k: v if k == "x" else [v] for k, v in record.items()}, **new}
        texts = {
            k: [v.encode() if isinstance(v, str) else v for v in vs] for k, vs in expected.items()
        }
        assert {"x": [], **example} == texts
        missing += len(new) < 2
    assert joined.missing_count == missing


# -- records and rows without a partner ------------------------------------------------------------


def test_what_has_no_partner_is_refused_or_noticed(tmp_path: Path) -> None:
    records = [{"key": f"k{n}", "x": n} for n in range(12)] + [{"x": 50}]
    dataset = dataset_of(records, tmp_path / "in")
    rows = [{"key": f"k{n}", "x": 10 * n if n else None, "y": 7} for n in range(3)]
    table = table_of([*rows, {"key": "other", "x": 1, "y": 1}], tmp_path / "t.csv")
    with raises(OptionError, option="allow_missing") as caught:
        join_table(dataset, TableValues(table, None, "key"))
    parts = caught.value.problem.split("; ")
    assert [part.split()[0] for part in parts] == ["10", "1", "1"]
    assert "'k3', 'k4', 'k5', 'k6', 'k7' and 5 more" in parts[0]
    assert "'other'" in parts[1]
    assert parts[2].endswith("line 2")
    joined = join_table(dataset, TableValues(table, None, "key", allow_missing=True))
    assert (list(joined.notices), joined.missing_count) == (parts, 11)
    expected = [0, 10, 20, *range(3, 12), 50]
    examples = merged(dataset, joined)
    assert [example["x"] for example in examples] == [[x] for x in expected]
    assert [example.get("y") for example in examples] == [[7]] * 3 + [None] * 10
    assert [not data for data in examples_of(joined, 13)] == [False] * 13
    only_new = TableValues(pa.table({"key": ["k1"], "y": [1]}), None, "key", allow_missing=True)
    filled = [bool(data) for data in examples_of(join_table(dataset, only_new), 13)]
    assert filled == [number == 1 for number in range(13)]
    of_key = TableValues(pa.table({"x": [1], "key": ["new"]}), None, "x", allow_missing=True)
    values = examples_of(join_table(dataset, of_key), 13)
    assert [list(rs.decode_example(data)) for data in values] == [["key"]] * 12 + [[]]
    assert values[12] == b""


@pytest.mark.parametrize(
    ("on", "keys", "places"),
    [
        ("key", ["a", "b", "b", "zz"], ["line 3", "line 4"]),
        ("key", ["a", "zz", "b", "zz"], ["line 3", "line 5"]),
        ("id=key", [1, 2, 3, 1], ["line 2", "line 5"]),
        ("position=key", [0, 2, 1, 2], ["line 3", "line 5"]),
    ],
)
def test_twins_of_the_table(
    tmp_path: Path, on: str, keys: Sequence[Any], places: list[str]
) -> None:
    dataset = dataset_of([{"key": key, "id": n} for n, key in enumerate("abc")], tmp_path / "in")
    table = table_of([{"key": key, "v": 1} for key in keys], tmp_path / "t.csv")
    with raises(OptionError, option="on") as caught:
        join_table(dataset, TableValues(table, {"v": "v"}, on, allow_missing=True))
    assert all(place in caught.value.problem for place in places)


@pytest.mark.parametrize("rows_at_once", [2, 100])
def test_twins_of_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    for module in (joining, table_features):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    keys = ["a", "b", "c", "b", "d", "d"]
    dataset = dataset_of([{"key": key} for key in keys], tmp_path / "in")

    def table(*keys: str) -> TableValues:
        return TableValues(
            pa.table({"key": keys, "v": [1] * len(keys)}), None, "key", allow_missing=True
        )

    with raises(OptionError, option="on") as caught:
        join_table(dataset, table("a", "b"))
    assert "record 1 of" in caught.value.problem
    assert "record 0 of" in caught.value.problem
    assert join_table(dataset, table("a", "c")).missing_count == 4  # twins without a row


def test_equal_hashes_are_no_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of([{"key": key} for key in ("ab", "cd", "ad")], tmp_path / "in")

    def values(*keys: str) -> TableValues:
        return TableValues(
            pa.table({"key": keys, "v": [1] * len(keys)}), None, "key", allow_missing=True
        )

    monkeypatch.setattr(  # the first byte is the hash
        joining, "_hashes", lambda keys: keys.buffer[keys.offsets[keys._numbers]].astype(np.uint64)
    )
    joined = join_table(dataset, values("ad", "cd"))
    assert [example.get("v") for example in merged(dataset, joined)] == [None, [1], [1]]
    with raises(OptionError, option="on", match="hash alike"):
        join_table(dataset, values("ad", "ab"))


# -- kinds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "column", "expected"),
    [
        ("x", [1.0, 2.0], [[1], [2]]),  # pandas writes integers with missing ones so
        ("x", [1.5, 2.0], "1.5"),
        ("x", [float(2**25), 2.0], str(2**25)),
        ("x", ["a", "b"], "x"),
        ("f", [1, 2], [[1.0], [2.0]]),
        ("f", [2**24 + 1, 2], str(2**24 + 1)),
        ("f", ["a", "b"], "f"),
        ("t", [1, 2], "t"),
        ("t", ["", "b"], [[b""], [b"b"]]),
        ("new", [0.5, 1.5], [[0.5], [1.5]]),
    ],
)
def test_kinds(tmp_path: Path, feature: str, column: list[Any], expected: Any) -> None:
    dataset = dataset_of([{"id": n, "x": 0, "f": 0.5, "t": "a"} for n in range(2)], tmp_path / "in")
    values = TableValues(pa.table({"id": [0, 1], "v": column}), {feature: "v"}, "id")
    if isinstance(expected, list):
        assert [e[feature] for e in merged(dataset, join_table(dataset, values))] == expected
    else:
        kind = OptionError if expected == feature else SourceError
        with raises(kind, match=expected):
            join_table(dataset, values)


def test_cells_of_csv_have_the_kinds_of_features(tmp_path: Path) -> None:
    dataset = dataset_of(
        [{"id": "1", "t": "a", "f": 0.5}, {"id": "2", "t": "b", "f": 1.5}], tmp_path / "in"
    )
    (tmp_path / "t.csv").write_text("id,t,f\n2,7,3\n1,8,4\n")
    joined = join_table(dataset, TableValues(tmp_path / "t.csv", None, "id"))
    found = [(example["t"], example["f"]) for example in merged(dataset, joined)]
    assert found == [([b"8"], [4.0]), ([b"7"], [3.0])]


# -- classes ---------------------------------------------------------------------------------------

LABEL, TEXT = "image/class/label", "image/class/text"


def hugging_face(names: Sequence[str], labels: Sequence[int]) -> Any:
    """A table with a ClassLabel, as `datasets` writes it."""
    feature = {"_type": "ClassLabel", "names": names}
    features = {"id": {"_type": "Value", "dtype": "int64"}, "label": feature}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"id": range(len(labels)), "label": labels})
    return table.replace_schema_metadata(metadata)


@pytest.mark.parametrize(
    ("column", "labels", "names"),
    [
        (["dog", " cat ", "dog"], [1, 0, 1], "cat dog"),
        (["emu", "cat", "bee"], [3, 0, 2], "cat dog bee emu"),
        ([1, 1, 0], [1, 1, 0], "cat dog"),
        ([1, 2, 0], "2", ""),
        ([1, -1, 0], "-1", ""),
        (hugging_face(["emu", "dog", "cat"], [1, 2, 1]), [1, 0, 1], "cat dog"),
        (hugging_face(["emu", "dog", "cat"], [0, 2, 1]), [2, 0, 1], "cat dog emu"),
        (hugging_face(["emu", "dog", "cat"], [0, 3, 1]), "3", ""),
        (["dog", "a\nb", "cat"], "line break", ""),
        ([["dog", "cat"], ["emu"], ["cat"]], [[1, 0], [2], [0]], "cat dog emu"),
    ],
)
def test_classes_have_the_numbers_of_the_dataset(
    tmp_path: Path, column: Any, labels: Any, names: str
) -> None:
    examples = [{"id": n, LABEL: 0, TEXT: "cat"} for n in range(3)]
    dataset = dataset_of(examples, tmp_path / "in", ["cat", "dog"])
    assert dataset.class_names == ("cat", "dog")
    table = pa.table({"id": range(3), "label": column}) if isinstance(column, list) else column
    values = TableValues(table, {LABEL: "label"}, "id")
    if isinstance(labels, str):
        with raises(SourceError, match=labels):
            join_table(dataset, values)
        return
    joined = join_table(dataset, values)
    assert joined.class_names == tuple(names.split())
    assert joined.features == (LABEL, TEXT)
    for example, label in zip(merged(dataset, joined), labels, strict=True):
        numbers = label if isinstance(label, list) else [label]
        assert example[LABEL] == numbers
        assert example[TEXT] == [names.split()[number].encode() for number in numbers]
    news = names.split()[2:]
    assert (f"{len(news)} new class" in " ".join(joined.notices)) == bool(news)


def test_labels_without_class_names(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": n, "old/label": n} for n in range(2)], tmp_path / "in")
    table = pa.table({"id": [0, 1], "name": ["b", "a"], "number": [5, 6]})
    with raises(OptionError, option="set", value="old/label"):
        join_table(dataset, TableValues(table, {"old/label": "name"}, "id"))
    joined = join_table(dataset, TableValues(table, {"old/label": "number"}, "id"))
    assert [example["old/label"] for example in merged(dataset, joined)] == [[5], [6]]
    assert joined.class_names is None
    joined = join_table(dataset, TableValues(table, {LABEL: "name"}, "id"))
    assert [example[LABEL] for example in merged(dataset, joined)] == [[1], [0]]
    assert joined.class_names == ("a", "b")


def test_classes_named_by_other_numbers_are_noticed(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": 0, LABEL: 0}], tmp_path / "in", ["1", "2"], shards=1)
    joined = join_table(dataset, TableValues(pa.table({"id": [0], LABEL: [1]}), None, "id"))
    assert "other numbers" in " ".join(joined.notices)
    by_name = TableValues(pa.table({"id": [0], LABEL: ["1"]}), None, "id")
    assert merged(dataset, join_table(dataset, by_name))[0][LABEL] == [0]


def test_corrected_labels_keep_the_others(tmp_path: Path) -> None:
    """What a CSV with some corrections does."""
    records = [
        {"image/filename": name, LABEL: n % 2, TEXT: ["cat", "dog"][n % 2]}
        for n, name in enumerate(NAMES)
    ]
    dataset = dataset_of(records, tmp_path / "in", ["cat", "dog"])
    (tmp_path / "t.csv").write_text("file,class\n003.jpg,cat\n004.jpg,\n000.jpg,emu\n")
    values = TableValues(
        tmp_path / "t.csv",
        {LABEL: "class"},
        "image/filename=file",
        on_name=True,
        allow_missing=True,
    )
    joined = join_table(dataset, values)
    expected = {**dict(enumerate([0, 1] * 4 + [0])), 3: 0, 0: 2}
    for number, example in enumerate(merged(dataset, joined)):
        assert example[LABEL] == [expected[number]]
        assert example[TEXT] == [("cat", "dog", "emu")[expected[number]].encode()]
    assert joined.missing_count == 7
    only_text = join_table(
        dataset,
        TableValues(
            table_of([{"k": n, "t": "x"} for n in range(9)], tmp_path / "u.csv"),
            {TEXT: "t"},
            "position=k",
        ),
    )
    assert LABEL in " ".join(only_text.notices)


# -- invalid and odd input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "features", "fields"),
    [
        ("nmae=key", None, {"option": "on"}),
        ("name=kye", None, {"option": "on"}),
        ("name", {"x": "v"}, {"option": "on", "value": "name"}),
        ("score=v", None, {"option": "on"}),
        ("name=v", {"x": "key"}, {"option": "on"}),
        ("id=key", {"x": "v"}, {"option": "on"}),
        ("position=key", {"x": "v"}, {"option": "on"}),
        ("name=key", {"x": "w"}, {"option": "set"}),
        ("name=key", {"x": "v", "y": "v"}, {"option": "set"}),
        ("name=key", {}, {"option": "set"}),
        ("name=folder", {"x": "v"}, {"option": "on"}),  # no key is equal
        ("several=v", {"x": "v"}, {"option": "on"}),
        ("name=key", {"x": "none"}, {"option": "set"}),
        ("name=none", {"x": "v"}, {"option": "on"}),
        (None, {"x": "v"}, {"option": "on"}),
        ("name=key", ["x"], {"option": "set"}),
    ],
)
def test_invalid_options(tmp_path: Path, on: str, features: Any, fields: Row) -> None:
    records = [
        {"id": n, "name": name, "score": 0.5, "several": [1, 2]} for n, name in enumerate(NAMES)
    ]
    dataset = dataset_of(records, tmp_path / "in")
    table = pa.table(
        {"key": NAMES, "v": range(9), "folder": [f"x/{name}" for name in NAMES], "none": [None] * 9}
    )
    with raises(OptionError, **fields):
        join_table(dataset, TableValues(table, features, on))
    if on in ("id=key", "position=key"):
        with raises(OptionError, option="on", match="on_name"):
            join_table(dataset, TableValues(table, features, on, on_name=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b""),
        ("t.csv", b"\n\n"),
        ("t.csv", b"key,v\n"),
        ("t.csv", b"key,v\n1,2,3\n"),
        ("t.csv", b'key,v\n1,"2\n'),
        ("t.csv", b"key,key\n1,2\n"),
        ("t.csv", b"key," + b",".join(b"c%d" % n for n in range(100_000)) + b"\n"),
        ("t.csv", b"key,v\n\xff\xfe,1\n"),
        ("t.csv", b"\0\0\0\0"),
        ("t.jsonl", b""),
        ("t.jsonl", b"[1]\n"),
        ("t.jsonl", b'{"key": [1, 2], "v": 1}\n'),
        ("t.jsonl", b'{"key": 1.5, "v": 1}\n'),
        ("t.jsonl", b'{"key": null, "v": 1}\n'),
        ("t.jsonl", b'{"key": 1}\n{"key": 1e999, "v": 1}\n'),
        ("t.parquet", b"PAR1PAR1"),
        ("t.arrow", b"ARROW1"),
        ("t.parquet", None),
    ],
)
def test_odd_tables(tmp_path: Path, name: str, content: bytes | None) -> None:
    dataset = dataset_of([{"key": number} for number in range(3)], tmp_path / "in")
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((RecordsmithError, OSError)) as caught:
        join_table(dataset, TableValues(tmp_path / name, None, "key"))
    assert isinstance(caught.value, RecordsmithError)


def test_a_feature_named_position_is_ambiguous(tmp_path: Path) -> None:
    dataset = dataset_of([{"position": 1}, {"position": 0}], tmp_path / "in")
    with raises(OptionError, option="on", value="position"):
        join_table(
            dataset, TableValues(pa.table({"position": [0, 1], "v": [1, 2]}), None, "position")
        )


def test_a_key_column_of_csv_has_the_kind_of_the_key(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": n, "name": "a"} for n in range(2)], tmp_path / "in")
    (tmp_path / "t.csv").write_text("name,v\n1,5\n0,4\n")
    joined = join_table(dataset, TableValues(tmp_path / "t.csv", None, "id=name"))
    assert [example["v"] for example in merged(dataset, joined)] == [[4], [5]]


def test_zeros_and_long_cells(tmp_path: Path) -> None:
    keys = ["a\0", "a", "b" * 100_000, ""]
    dataset = dataset_of([{"key": key} for key in keys], tmp_path / "in", shards=1)
    long = ["x" * 5_000_000, "", "\0", "é"]
    joined = join_table(
        dataset, TableValues(pa.table({"key": keys[::-1], "v": long[::-1]}), None, "key")
    )
    assert [example["v"] for example in merged(dataset, joined)] == [
        [text.encode()] for text in long
    ]
    assert len([*joined.blocks(0, 4)]) > 1  # in pieces


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    dataset = dataset_of([{"key": number} for number in range(3)], tmp_path / "in", shards=1)
    file = Path(str(dataset.shards[0].location))
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with raises(rs.CorruptDataError, record=2, path=file):
        join_table(rs.open(file), TableValues(pa.table({"key": [0], "v": [1]}), None, "key"))
