from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    with rs.ShardWriter(tmp_path / "rows.tfrecord") as writer:
        for number in range(250):
            row = {"id": number, "a/b": number % 3, "name": f"row {number}", "big": b"x" * 1000}
            writer.write_example({**row, "half": number / 2} if number % 2 else row)
    return tmp_path / "rows.tfrecord"


def test_counts_by_label(run: Any, rows: Path) -> None:
    sql = 'select "a/b" as label, count(*) as n, min(name) as first from data group by 1 order by 1'
    outcome = run("query", sql, rows)
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split() for line in outcome.out.splitlines()] == [
        ["label", "n", "first"],
        ["0", "84", "row", "0"],
        ["1", "83", "row", "1"],
        ["2", "83", "row", "101"],
    ]
    document = run("query", sql, rows, "--json").document
    assert document["columns"] == ["label", "n", "first"]
    assert document["rows"][2] == {"label": 2, "n": 83, "first": "row 101"}


def test_missing_values_bytes_and_nan(run: Any, rows: Path) -> None:
    sql = "select half, big, 'nan'::double as odd from data where id in (3, 4) order by id"
    found = run("query", sql, rows, "--json").document["rows"]
    assert [row["half"] for row in found] == [1.5, None]
    assert [row["odd"] for row in found] == ["NaN", "NaN"]
    assert "null" in run("query", sql, rows).out


def test_columns_of_equal_name_are_kept(run: Any, rows: Path) -> None:
    sql = "select id, id, name as id, half as id_1 from data where id = 3"
    outcome = run("query", sql, rows)
    assert [line.split() for line in outcome.out.splitlines()] == [
        ["id", "id", "id", "id_1"],
        ["3", "3", "row", "3", "1.5"],
    ]
    document = run("query", sql, rows, "--json").document
    assert document["columns"] == ["id", "id_2", "id_3", "id_1"]
    assert document["rows"] == [{"id": 3, "id_2": 3, "id_3": "row 3", "id_1": 1.5}]


def test_types_of_the_packed_table(run: Any, tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([10**18 + 1], pa.timestamp("ns"))})
    rs.pack(rs.Table(table), tmp_path / "out")
    sql = 'select "at" from data'
    found = [
        run("query", sql, tmp_path / "out", "--json", *options)
        for options in ([], ["--stored-types"])
    ]
    assert [each.document["rows"][0]["at"] for each in found] == [
        "2001-09-09 01:46:40.000000001",
        10**18 + 1,
    ]


def test_long_results_are_cut_on_the_screen_only(run: Any, rows: Path) -> None:
    outcome = run("query", "select id from data", rows)
    assert len(outcome.out.splitlines()) == 101
    assert "150 more rows" in outcome.err
    assert len(run("query", "select id from data", rows, "--json").document["rows"]) == 250


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("selec 1", "syntax error"),
        ("select nope from data", "nope"),
        ("select 1; select 2", "one SELECT"),
        ("drop table data", "one SELECT"),
        ("copy data to 'x.csv'", "one SELECT"),
    ],
)
def test_invalid_queries(run: Any, rows: Path, sql: str, word: str) -> None:
    outcome = run("query", sql, rows)
    assert (outcome.code, outcome.out) == (2, "")
    assert word in outcome.err


def test_damaged_records_are_located(run: Any, rows: Path) -> None:
    from recordsmith.dataset import records_of

    dataset = rs.open(rows)
    offset = records_of(dataset).locate_record(200).offset
    data = bytearray(rows.read_bytes())
    data[offset + 700] ^= 1
    rows.write_bytes(data)
    outcome = run("query", "select sum(id) from data", rows, "--json")
    assert outcome.code == 1
    assert "payload-crc-mismatch" in outcome.err
