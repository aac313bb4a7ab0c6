"""`edit` with values of tables, and layers, against the same records made in plain Python."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.dataset import read_manifest
from recordsmith.support.errors import OptionError
from recordsmith.writing import list_layers

COUNT = 40


def record(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "image/filename": f"pets/{number}.jpg",
        "image/class/label": number % 2,
        "image/class/text": ("cat", "dog")[number % 2],
        "blob": bytes([number]) * 500,
        **({"note": f"note {number}"} if number % 3 else {}),
    }


@pytest.fixture
def out(tmp_path: Path) -> Path:
    rs.pack(rs.Rows(map(record, range(COUNT))), tmp_path / "rows", shards=3)
    rs.edit(tmp_path / "rows", tmp_path / "out", add={"year": 2024})
    manifest = json.loads((tmp_path / "out/dataset.json").read_text())
    manifest["class_names"] = ["cat", "dog"]
    (tmp_path / "out/dataset.json").write_text(json.dumps(manifest))
    return tmp_path / "out"


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def by_id(path: Path) -> dict[int, dict[str, Any]]:
    found = {}
    for example in rs.open(path):
        plain = {key: [*value] for key, value in example.items()}
        found[plain["id"][0]] = {key: value[0] for key, value in plain.items()}
    return found


def make_layer(out: Path, *tables: tuple[Path, dict[str, str], str]) -> Path:
    for number, (table, columns, on) in enumerate(tables):
        rs.add_layer(out, table, name=f"layer {number}", on=on, features=columns)
    return out


def make_copy(out: Path, *tables: tuple[Path, dict[str, str], str]) -> Path:
    for number, (table, columns, on) in enumerate(tables):
        sources = {feature: f"{table}:{column}" for feature, column in columns.items()}
        new = out.with_name(f"{out.name} {number}")
        rs.edit(out, new, set=sources, on=on)
        out = new
    return out


@pytest.mark.parametrize("make", [make_layer, make_copy], ids=["layers", "edit"])
def test_values_of_two_tables(out: Path, tmp_path: Path, make: Any) -> None:
    order = np.random.default_rng(0).permutation(COUNT).tolist()
    species = {number: "fox" if number == 7 else "cat" for number in order}
    rows = [{"file": f"pets/{n}.jpg", "species": species[n], "score": n / 4} for n in order]
    first = write_table(tmp_path / "first.csv", rows)
    second = write_table(tmp_path / "second.csv", [{"id": n, "score": n * 2.5} for n in order])
    columns = {"image/class/label": "species", "score": "score"}
    files = {path.name: path.read_bytes() for path in out.glob("*.tfrecord")}
    made = make(out, (first, columns, "image/filename=file"), (second, {"score": "score"}, "id"))
    expected = {
        n: {
            **{key: value if isinstance(value, (int, bytes)) else value.encode()
               for key, value in record(n).items()},
            "year": 2024,
            "score": n * 2.5,
            "image/class/label": 2 if n == 7 else 0,
            "image/class/text": species[n].encode(),
        }
        for n in range(COUNT)
    }  # fmt: skip
    assert by_id(made) == expected
    dataset = rs.open(made)
    assert dataset.class_names == ("cat", "dog", "fox")
    assert len(dataset.filter("image/class/label == 2")) == 1
    if make is make_copy:
        assert dataset.schema == rs.open([*sorted(map(str, made.glob("*.tfrecord")))]).schema
    assert rs.verify(made, deep=True).is_good
    if make is make_layer:
        assert {path.name: path.read_bytes() for path in out.glob("*.tfrecord")} == files
        rs.reshard(out, tmp_path / "whole")
        assert by_id(tmp_path / "whole") == expected
        files = sorted(map(str, (tmp_path / "whole").glob("*.tfrecord")))
        assert rs.open(files).schema == dataset.schema
        for name in ("layer 1", "layer 0"):
            rs.remove_layer(out, name)
        assert {key for example in by_id(out).values() for key in example} == {
            *expected[1],
            "note",
        } - {"score"}
        assert by_id(out)[7]["image/class/label"] == 1
        assert not (out / "layers").exists()


def test_edit_in_one_command(out: Path, tmp_path: Path) -> None:
    """Set values are there for the other edits and the condition; unselected records go."""
    rows = [{"id": n, "label": n % 5} for n in range(COUNT)]
    table = write_table(tmp_path / "table.csv", rows)
    new = tmp_path / "new"

    def edit() -> Any:
        of_table = {"set": {"group": f"{table}:label"}, "on": "id", "rename": {"group": "fold"}}
        return rs.edit(out, new, drop=["image/*", "blob"], where="group == 3", **of_table)

    assert edit().record_count == COUNT // 5
    assert by_id(new)[8] == {"id": 8, "fold": 3, "note": b"note 8", "year": 2024}
    assert not edit().is_new
    table.write_text(table.read_text().replace("39,4", "39,3"))
    with pytest.raises(rs.OptionError):  # another dataset
        edit()


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"set": {"x": "table.csv:label"}}, "on"),
        ({"set": {"x": "table.csv"}, "on": "id"}, "set"),
        ({"set": {"x": "table.csv:nothing"}, "on": "id"}, "set"),
        ({"set": {"x": "table.csv:label"}, "on": "nothing=id"}, "on"),
        ({"set": {"x": "table.csv:label"}, "on": "id=nothing"}, "on"),
        ({"set": {"x": "table.csv:label", "y": "table.csv:label"}, "on": "id"}, "set"),
        ({"set": {"x": "short.csv:label"}, "on": "id"}, "allow_missing"),
        ({"set": {"id": "table.csv:text"}, "on": "id"}, "set"),
    ],
)
def test_refusals_change_nothing(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": n, "label": n % 5, "text": "a"} for n in range(COUNT)]
    write_table(tmp_path / "table.csv", rows)
    write_table(tmp_path / "short.csv", rows[:-1])
    with pytest.raises(rs.OptionError) as caught:
        rs.edit(out, tmp_path / "new", **options)
    assert caught.value.option == option
    assert not (tmp_path / "new").exists()


def test_the_commands(out: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", [{"id": n, "score": n} for n in range(COUNT)])

    def run(*arguments: object, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.output

    added = json.loads(run("layers", "add", out, table, "--on", "id", "--name", "s", "--json"))
    assert (added["name"], added["features"], added["records"]) == ("s", ["score"], COUNT)
    (listed,) = json.loads(run("layers", "list", out, "--json"))["layers"]
    assert (listed["name"], listed["hidden"], listed["shards"]) == ("s", [], 3)
    assert "layers add  s: score" in run("history", out)
    run("layers", "add", out, table, "--on", "id", "--name", "s", code=2)
    run("layers", "add", out, table, "--on", "id", "--name", "s", "--overwrite")
    run("edit", out, tmp_path / "new", "--set", f"x={table}:score", "--on", "id")
    assert by_id(tmp_path / "new")[9]["x"] == 9
    run("layers", "remove", out, "--name", "s")
    assert rs.open(out).schema.columns.keys() == {*record(1), "year"}
    wrong = [
        ("add", out),
        ("remove", out),
        ("list", out, "--on", "id"),
        ("drop", out),
        ("remove", out, "--name", "s"),
        ("add", out, table, "--name", "../a", "--on", "id"),
    ]
    for arguments in wrong:
        run("layers", *arguments, code=2)


def test_a_layer_in_the_place_of_another(out: Path, tmp_path: Path) -> None:
    """Records without a new value keep the old layer's; no later layer has its features."""
    options = {"on": "id", "allow_missing": True}

    def table(key: str, base: int, ids: Iterable[int]) -> Path:
        rows = [{"id": n, key: base + n} for n in ids]
        return write_table(tmp_path / f"{key}{base}.csv", rows)

    rs.add_layer(out, table("score", 0, range(COUNT)), name="a", on="id")
    rs.add_layer(out, table("other", 0, range(3)), name="b", **options)
    rs.add_layer(out, table("score", 200, range(3)), name="a", overwrite=True, **options)
    assert [layer["name"] for layer in list_layers(out).layers] == ["a", "b"]
    assert [by_id(out)[n]["score"] for n in (0, 2, 3, 39)] == [200, 202, 3, 39]
    rs.add_layer(out, table("score", 100, range(5)), name="c", **options)
    before = read_manifest(out)
    for key in ("score", "other"):  # with `other`, `a` would be right in itself
        with pytest.raises(OptionError) as caught:
            new = table(key, 300, range(10))
            rs.add_layer(out, new, name="a", overwrite=True, **options)
        assert caught.value.option == "name"
    assert read_manifest(out) == before
    report = rs.add_layer(out, table("more", 400, range(2)), name="a", overwrite=True, **options)
    assert any("score" in notice for notice in report.notices)
    assert [by_id(out)[n]["score"] for n in (0, 4, 5, 39)] == [100, 104, 5, 39]  # those of `c`
    assert {"score", "other", "more"} < {*rs.open(out).schema.columns}
    rs.reshard(out, tmp_path / "whole")
    files = sorted(map(str, (tmp_path / "whole").glob("*.tfrecord")))
    assert rs.open(files).schema == rs.open(out).schema
    assert rs.verify(out, deep=True).is_good


@pytest.mark.parametrize("key", ["class/label", "attribute/age", "difficult"])
def test_a_value_for_each_object(tmp_path: Path, key: str) -> None:
    """Other numbers of values, also none, would leave a record that no loader reads."""
    keys = [f"image/object/{name}" for name in ("bbox/xmin", "class/label")]
    counts = [0, 1, 2, 3]
    rows = [{"id": n, keys[0]: [0.5] * n, keys[1]: [0] * n} for n in counts]
    out = tmp_path / "out"
    rs.pack(rs.Rows(rows, kinds=dict(zip(keys, ("float", "int64"), strict=True))), out)
    options = {"on": "id", "allow_missing": True}
    table = tmp_path / "t.jsonl"
    for right in ({n: [7] * n for n in counts}, {2: [7, 7]}):
        table.write_text("".join(f'{{"id": {n}, "x": {x}}}\n' for n, x in right.items()))
        features = {f"image/object/{key}": f"{table}:x"}
        rs.edit(out, tmp_path / "new", set=features, overwrite=True, **options)
        found = {int(row["id"][0]): row for row in rs.open(tmp_path / "new")}
        assert all([*found[n][f"image/object/{key}"]] == x for n, x in right.items())
    for number, wrong in ((0, [7]), (1, []), (1, [7, 7]), (3, [7])):
        table.write_text(f'{{"id": 2, "x": [7, 7]}}\n{{"id": {number}, "x": {wrong}}}\n')
        with pytest.raises(rs.SourceError) as caught:
            rs.add_layer(out, table, name="a", features={f"image/object/{key}": "x"}, **options)
        assert caught.value.line == 2
    assert not list_layers(out).layers


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_classes_that_are_named_by_numbers(tmp_path: Path, suffix: str) -> None:
    """Cells of CSV are names; numbers of JSON are labels."""
    rs.pack(rs.Rows({"id": n, "image/class/label": n} for n in range(2)), tmp_path / "out")
    manifest = json.loads((tmp_path / "out/dataset.json").read_text())
    manifest["class_names"] = ["1", "2"]
    (tmp_path / "out/dataset.json").write_text(json.dumps(manifest))
    rows = [{"id": 0, "label": 1}, {"id": 1, "label": 1}]
    table = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        write_table(table, rows)
    else:
        table.write_text("\n".join(map(json.dumps, rows)))
    columns = {"image/class/label": "label"}
    report = rs.add_layer(tmp_path / "out", table, name="a", on="id", features=columns)
    expected = 0 if suffix == "csv" else 1
    assert {row["image/class/label"] for row in by_id(tmp_path / "out").values()} == {expected}
    assert any("names" if suffix == "csv" else "labels" in notice for notice in report.notices)


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        ("id;name\n0;Gr\u00f6\u00dfe\n1;b", "cp1252", "Gr\u00f6\u00dfe"),
        ("id,name\n0,a\n1,b", "utf-16", "a"),
    ],
)
def test_encodings(tmp_path: Path, text: str, encoding: str, expected: str) -> None:
    rs.pack(rs.Rows({"id": n} for n in range(2)), tmp_path / "out")
    (tmp_path / "t.csv").write_text(text, encoding=encoding)
    rs.add_layer(tmp_path / "out", tmp_path / "t.csv", name="a", on="id", encoding=encoding)
    assert by_id(tmp_path / "out")[0]["name"].decode() == expected


@pytest.mark.parametrize("other", ["Pets/0.JPG", "pets/0.jpg ", "pets/0.jpg"])
def test_keys_that_are_written_in_other_ways(out: Path, tmp_path: Path, other: str) -> None:
    rows = [{"file": other if n == 0 else f"pets/{n}.jpg", "x": n} for n in range(COUNT)]
    table = write_table(tmp_path / "t.csv", rows)
    options = {"name": "a", "on": "image/filename=file", "allow_missing": True}
    notices = rs.add_layer(out, table, **options).notices
    assert any(repr(other) in notice and "differ only" in notice for notice in notices) == (
        other != "pets/0.jpg"
    )


def test_rows_without_any_cell_do_not_count(out: Path, tmp_path: Path) -> None:
    rows = [{"id": n, "x": n, "y": "a"} for n in range(COUNT)]
    table = write_table(tmp_path / "t.csv", rows)
    table.write_text(table.read_text() + ",,\n,,\n")
    assert rs.add_layer(out, table, name="a", on="id").missing_count == 0
    table.write_text(table.read_text() + ",,b\n")
    with pytest.raises(rs.OptionError) as caught:
        rs.add_layer(out, table, name="b", on="id")
    assert caught.value.option == "allow_missing"
