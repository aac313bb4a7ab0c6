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


def table_of(columns: Mapping[str, Sequence[Any]], file: Path) -> Path:
    """Write a table in the format of the suffix."""
    rows = [*zip(*columns.values(), strict=True)]
    if file.suffix in (".csv", ".tsv"):
        cells = [["" if cell is None else str(cell) for cell in row] for row in [[*columns], *rows]]
        separator = "," if file.suffix == ".csv" else "\t"
        file.write_text("".join(separator.join(line) + "\n" for line in cells))
    elif file.suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        file.write_text("".join(f"{line}\n" for line in lines))
    else:
        write = parquet.write_table if file.suffix == ".parquet" else feather.write_feather
        write(pa.table(dict(columns)), file)
    return file


def join(
    dataset: Dataset, table: Any, on: str = "key", features: Any = None, **options: bool
) -> JoinedRows:
    """Join a file, a table, or columns."""
    table = pa.table(table) if isinstance(table, dict) else table
    return join_table(dataset, TableValues(table, features, on, **options))


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
    ids = [100 - n for n in range(9)]
    examples = [{"id": i, "name": n, "score": 0.5} for i, n in zip(ids, NAMES, strict=True)]
    dataset = dataset_of(examples, tmp_path / "in")
    keys: Any = {"id": ids, "name": NAMES, "position": range(9)}[on.partition("=")[0]]
    titles = [f"t{n}" for n in range(9)]
    columns = {"key": [*keys], "points": [*range(9)], "title": titles, "unused": [1.5] * 9}
    table = table_of(
        {name: cells[::-1] for name, cells in columns.items()}, tmp_path / f"t.{suffix}"
    )
    joined = join(dataset, table, on, {"score": "points", "title": "title"})
    assert (joined.features, joined.missing_count) == (("score", "title"), 0)
    assert merged(dataset, joined) == [
        {"id": [ids[n]], "name": [NAMES[n].encode()], "score": [n], "title": [titles[n].encode()]}
        for n in range(9)
    ]


def test_lists_and_all_columns(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": n} for n in range(9)], tmp_path / "in")
    vectors = [[0.5 * n, 1.0, 2.0] for n in range(9)]
    table = {"id": range(9), "vector": vectors, "words": [["a"] * n for n in range(9)]}
    assert merged(dataset, join(dataset, table, "id")) == [
        {"id": [n], "vector": vectors[n], "words": [b"a"] * n} for n in range(9)
    ]


def test_the_identity_is_that_of_the_values_and_the_join(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": n, "x": 0} for n in range(5)], tmp_path / "in")
    cases = [(1, "id", "x"), (1, "id", "x"), (2, "id", "x"), (1, "position", "x"), (1, "id", "z")]
    found = [
        join(dataset, {"k": range(5), "y": [1] * 4 + [last]}, f"{on}=k", {name: "y"}).identity
        for last, on, name in cases
    ]
    assert found[0] == found[1]
    assert len({*found}) == 4


@pytest.mark.parametrize("separator", ["/", "\\"])
def test_names_without_folders(tmp_path: Path, separator: str) -> None:
    names = [f"a{separator}{n}{separator}{name}" for n, name in enumerate("xyz")]
    dataset = dataset_of([{"name": name} for name in [*names, "bare"]], tmp_path / "in")
    table = {"file": ["other/y", "x", "bare", "z"], "v": [1, 0, 3, 2]}
    joined = join(dataset, table, "name=file", {"v": "v"}, on_name=True)
    assert [example["v"] for example in merged(dataset, joined)] == [[0], [1], [2], [3]]


def test_sequence_examples_and_selections(tmp_path: Path) -> None:
    pairs = [({"id": n, "x": n}, {"steps": [[n], [n + 1]]}) for n in range(8)]
    dataset = dataset_of(pairs, tmp_path / "in")
    table = {"id": [6, 2], "x": [60, None], "new": [1, 2]}
    for chosen in (dataset, dataset[2:7], dataset.shuffle(seed=3)):
        examples = examples_of(join(chosen, table, "id", allow_missing=True), len(chosen))
        records = zip(chosen.records(), examples, strict=True)
        for example in [rs.decode_sequence_example(a + b) for a, b in records]:
            number = int(example.context["id"][0])
            assert example.context["x"].tolist() == [60 if number == 6 else number]
            assert [*example.context.get("new", ())] == {6: [1], 2: [2]}.get(number, [])
            assert len(example.feature_lists["steps"]) == 2
        assert {classify(data) for data in examples} == {"Example"}
    with raises(OptionError, option="set", value="steps"):
        join(dataset, table, "id", {"steps": "x"})
    with raises(OptionError, option="on", value="steps=id"):
        join(dataset, table, "steps=id", {"x": "x"})


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
        joined = join(dataset, table, allow_missing=True)
        by_key = {row["key"]: row for row in rows}
        found = merged(dataset, joined)
        examples = examples_of(joined, len(records))
    missing = 0
    for record, example, data in zip(records, found, examples, strict=True):
        row = by_key.get(record["key"], {})
        new = {name: [row[name]] for name in ("x", "t") if row.get(name) is not None}
        expected = {"x": [], **{k: v if k == "x" else [v] for k, v in record.items()}, **new}
        texts = {
            k: [v.encode() if isinstance(v, str) else v for v in vs] for k, vs in expected.items()
        }
        assert {"x": [], **example} == texts
        is_empty = data in (b"", b"\n\0")
        assert is_empty == (not new and "x" not in record)  # without old values of features
        missing += len(new) < 2
    assert joined.missing_count == missing


# -- records and rows without a partner, and with several ------------------------------------------


def test_what_has_no_partner_is_refused_or_noticed(tmp_path: Path) -> None:
    keys = [f"k{min(n, 10)}" for n in range(12)]  # also two equal ones
    dataset = dataset_of([*({"key": key} for key in keys), {"x": 50}], tmp_path / "in")
    columns = {"key": ["k0", "k1", "k2", "other"], "x": [None, 10, 20, 1]}
    table = table_of(columns, tmp_path / "t.csv")
    with raises(OptionError, option="allow_missing") as caught:
        join(dataset, table)
    parts = caught.value.problem.split("; ")
    assert [part.split()[0] for part in parts] == ["10", "1", "1"]
    assert "'k3', 'k4', 'k5', 'k6', 'k7' and 5 more" in parts[0]
    assert "'other'" in parts[1]
    assert parts[2].endswith("line 2")
    joined = join(dataset, table, allow_missing=True)
    assert (list(joined.notices), joined.missing_count) == (parts, 11)


@pytest.mark.parametrize("rows_at_once", [2, 100])
@pytest.mark.parametrize(
    ("on", "keys", "places"),
    [
        ("key", ["a", "b", "b", "zz"], ["line 3", "line 4"]),
        ("key", ["a", "zz", "b", "zz"], ["line 3", "line 5"]),
        ("key", ["a", "d"], ["record 3 of", "record 5 of"]),
        ("id=key", [1, 2, 3, 1], ["line 2", "line 5"]),
        ("position=key", [0, 2, 1, 2], ["line 3", "line 5"]),
    ],
)
def test_keys_that_occur_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int, on: str, keys: list[Any],
    places: list[str],
) -> None:  # fmt: skip
    for module in (joining, table_features):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    examples = [{"key": key, "id": n} for n, key in enumerate("abcdxd")]
    dataset = dataset_of(examples, tmp_path / "in", shards=1)
    table = table_of({"key": keys, "v": [1] * len(keys)}, tmp_path / "t.csv")
    with raises(OptionError, option="on") as caught:
        join(dataset, table, on, {"v": "v"}, allow_missing=True)
    assert all(place in caught.value.problem for place in places)


def test_equal_hashes_are_no_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = dataset_of([{"key": key} for key in ("ab", "cd", "ad")], tmp_path / "in")
    monkeypatch.setattr(  # the first byte is the hash
        joining, "_hashes", lambda keys: keys.buffer[keys.offsets[keys._numbers]].astype(np.uint64)
    )
    joined = join(dataset, {"key": ["ad", "cd"], "v": [1, 1]}, allow_missing=True)
    assert [example.get("v") for example in merged(dataset, joined)] == [None, [1], [1]]
    with raises(OptionError, option="on", match="hash alike"):
        join(dataset, {"key": ["ad", "ab"], "v": [1, 1]}, allow_missing=True)


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

    def found() -> list[Any]:
        joined = join(dataset, {"id": [0, 1], "v": column}, "id", {feature: "v"})
        return [example[feature] for example in merged(dataset, joined)]

    if isinstance(expected, list):
        assert found() == expected
    else:
        with raises(OptionError if expected == feature else SourceError, match=expected):
            found()


def test_cells_of_csv_have_the_kinds_of_features(tmp_path: Path) -> None:
    examples = [{"key": str(n), "number": n, "t": "a", "f": 0.5} for n in (1, 2)]
    dataset = dataset_of(examples, tmp_path / "in")
    (tmp_path / "t.csv").write_text("key,t,f\n2,7,3\n1,8,4\n")
    for on in ("key", "number=key"):  # the column of the key has the kind of the key
        found = merged(dataset, join(dataset, tmp_path / "t.csv", on))
        assert [(one["t"], one["f"]) for one in found] == [([b"8"], [4.0]), ([b"7"], [3.0])]


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
    ("before", "column", "labels", "after"),
    [
        ("cat dog", ["dog", " cat ", "dog"], [1, 0, 1], "cat dog"),
        ("cat dog", ["emu", "cat", "bee"], [3, 0, 2], "cat dog bee emu"),
        ("cat dog", [1, 1, 0], [1, 1, 0], "cat dog"),
        ("cat dog", [1, 2, 0], "2", ""),
        ("cat dog", [1, -1, 0], "-1", ""),
        ("cat dog", hugging_face(["emu", "dog", "cat"], [1, 2, 1]), [1, 0, 1], "cat dog"),
        ("cat dog", hugging_face(["emu", "dog", "cat"], [0, 2, 1]), [2, 0, 1], "cat dog emu"),
        ("cat dog", hugging_face(["emu", "dog", "cat"], [0, 3, 1]), "3", ""),
        ("cat dog", ["dog", "a\nb", "cat"], "line break", ""),
        ("cat dog", [["dog", "cat"], ["emu"], ["cat"]], [[1, 0], [2], [0]], "cat dog emu"),
        ("1 2", ["1", "2", "1"], [0, 1, 0], "1 2"),
        ("", [5, 6, 5], [5, 6, 5], ""),
        ("", ["b", "a", "b"], "no class names", ""),
    ],
)
def test_classes_have_the_numbers_of_the_dataset(
    tmp_path: Path, before: str, column: Any, labels: Any, after: str
) -> None:
    examples = [{"id": n, LABEL: 0, TEXT: "cat"} for n in range(3)]
    dataset = dataset_of(examples, tmp_path / "in", before.split() or None)
    table = {"id": range(3), "label": column} if isinstance(column, list) else column
    if isinstance(labels, str):
        with raises(SourceError if before else OptionError, match=labels):
            join(dataset, table, "id", {LABEL: "label"})
        return
    joined = join(dataset, table, "id", {LABEL: "label"})
    assert joined.class_names == (tuple(after.split()) or None)
    assert joined.features == ((LABEL, TEXT) if after else (LABEL,))
    for example, label in zip(merged(dataset, joined), labels, strict=True):
        numbers = label if isinstance(label, list) else [label]
        assert example[LABEL] == numbers
        if after:
            assert example[TEXT] == [after.split()[number].encode() for number in numbers]
    news = after.split()[2:]
    assert (f"{len(news)} new class" in " ".join(joined.notices)) == bool(news)


def test_new_labels_and_what_is_noticed_of_labels(tmp_path: Path) -> None:
    dataset = dataset_of([{"id": n, TEXT: "1"} for n in range(2)], tmp_path / "in", ["1", "2"])
    assert "other numbers" in " ".join(join(dataset, {"id": [0, 1], LABEL: [1, 0]}, "id").notices)
    dataset = dataset_of([{"id": n} for n in range(2)], tmp_path / "new")
    joined = join(dataset, {"id": [0, 1], LABEL: ["b", "a"]}, "id")
    assert [example[LABEL] for example in merged(dataset, joined)] == [[1], [0]]
    assert joined.class_names == ("a", "b")


def test_corrected_labels_keep_the_others(tmp_path: Path) -> None:
    """What a CSV with some corrections does."""
    classes = ["cat", "dog"]
    examples = [{"name": name, LABEL: n % 2, TEXT: classes[n % 2]} for n, name in enumerate(NAMES)]
    dataset = dataset_of(examples, tmp_path / "in", classes)
    (tmp_path / "t.csv").write_text("file,class\n003.jpg,cat\n004.jpg,\n000.jpg,emu\n")
    options = {"on_name": True, "allow_missing": True}
    joined = join(dataset, tmp_path / "t.csv", "name=file", {LABEL: "class"}, **options)
    expected = [2, 1, 0, 0, 0, 1, 0, 1, 0]
    found = [(example[LABEL], example[TEXT]) for example in merged(dataset, joined)]
    assert found == [([n], [(b"cat", b"dog", b"emu")[n]]) for n in expected]
    assert joined.missing_count == 7
    only_text = join(dataset, {"k": range(9), "t": ["x"] * 9}, "position=k", {TEXT: "t"})
    assert LABEL in " ".join(only_text.notices)


# -- invalid and odd input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "features", "option"),
    [
        ("nmae=key", None, "on"),
        ("name=kye", None, "on"),
        ("name", {"x": "v"}, "on"),
        ("score=v", None, "on"),
        ("name=v", {"x": "key"}, "on"),
        ("id=key", {"x": "v"}, "on"),
        ("position=key", {"x": "v"}, "on"),
        ("name=key", {"x": "w"}, "set"),
        ("name=key", {"x": "v", "y": "v"}, "set"),
        ("name=key", {}, "set"),
        ("name=folder", {"x": "v"}, "on"),  # no key is equal
        ("several=v", {"x": "v"}, "on"),
        ("name=key", {"x": "none"}, "set"),
        ("name=none", {"x": "v"}, "on"),
        (None, {"x": "v"}, "on"),
        ("name=key", ["x"], "set"),
    ],
)
def test_invalid_options(tmp_path: Path, on: Any, features: Any, option: str) -> None:
    examples = [
        {"id": n, "name": name, "score": 0.5, "several": [1, 2]} for n, name in enumerate(NAMES)
    ]
    dataset = dataset_of(examples, tmp_path / "in")
    folders = [f"x/{name}" for name in NAMES]
    table = {"key": NAMES, "v": range(9), "folder": folders, "none": [None] * 9}
    with raises(OptionError, option=option):
        join(dataset, table, on, features)
    if on in ("id=key", "position=key"):
        with raises(OptionError, option="on", match="on_name"):
            join(dataset, table, on, features, on_name=True)


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
        join(dataset, tmp_path / name)
    assert isinstance(caught.value, RecordsmithError)


def test_a_feature_named_position_is_ambiguous(tmp_path: Path) -> None:
    dataset = dataset_of([{"position": 1}, {"position": 0}], tmp_path / "in")
    with raises(OptionError, option="on", value="position"):
        join(dataset, {"position": [0, 1], "v": [1, 2]}, "position")


def test_zeros_and_long_cells(tmp_path: Path) -> None:
    keys = ["a\0", "a", "b" * 100_000, ""]
    dataset = dataset_of([{"key": key} for key in keys], tmp_path / "in", shards=1)
    long = ["x" * 5_000_000, "", "\0", "é"]
    joined = join(dataset, {"key": keys[::-1], "v": long[::-1]})
    assert [e["v"] for e in merged(dataset, joined)] == [[text.encode()] for text in long]
    assert len([*joined.blocks(0, 4)]) > 1  # in pieces


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    dataset = dataset_of([{"key": number} for number in range(3)], tmp_path / "in", shards=1)
    file = Path(str(dataset.shards[0].location))
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with raises(rs.CorruptDataError, record=2, path=file):
        join(rs.open(file), {"key": [0], "v": [1]})
