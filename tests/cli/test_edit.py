from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli.parsing import parse_value
from recordsmith.support.errors import OptionError


def test_all_kinds_of_edits(run, packed: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("old,new\n*,*\n0,100\n")
    keys = sorted(rs.open(packed).schema.features)
    assert "image/filename" in keys
    options = ("--drop", "image/height", "--drop", "image/wid*", "--rename")
    more = ("image/filename=name", "--add", "year=2024", "--add", 'camera="7D"', "--recode")
    out = tmp_path / "edited"
    outcome = run("edit", packed, out, *options, *more, f"image/class/label={tmp_path}/table.csv")
    assert outcome.code == 0
    head = outcome.out.splitlines()[0]
    assert head.startswith("wrote 9 records ")
    assert head.endswith(f" 4 shards in {out}")
    assert sorted(path.name for path in out.glob("*.tf*")) == sorted(
        path.name for path in packed.glob("*.tf*")
    )
    for before, after in zip(rs.open(packed), rs.open(out), strict=True):
        label = int(before["image/class/label"][0])
        assert after["image/class/label"].tolist() == [label or 100]
        assert after["name"] == before["image/filename"]
        assert after["year"].tolist() == [2024]
        assert after["camera"] == [b"7D"]
        assert "image/height" not in after
        assert "image/width" not in after
        assert after["image/encoded"] == before["image/encoded"]
    names = rs.open(packed).class_names
    assert names is not None
    assert rs.open(out).class_names == (None, *names[1:], *[None] * (100 - len(names)), names[0])
    again = run("edit", packed, out, *options, *more, f"image/class/label={tmp_path}/table.csv")
    assert again.out.startswith("nothing to do")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-0.5", -0.5),
        ("[1,2]", [1, 2]),
        ('["a", "b"]', ["a", "b"]),
        ('"3"', "3"),
        ("007", "007"),
        ("daisy", "daisy"),
        ("true", "true"),
        ("NaN", "NaN"),
        ('"{}"', "{}"),
        ("{a}", "{a}"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_parsed_values(text: str, value: Any) -> None:
    assert parse_value(text, "add", "x") == value
    assert type(parse_value(text, "add", "x")) is type(value)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('{"a": 1}', r'"{\"a\": 1}"'),
        ("{}", '"{}"'),
        ("[1,null]", '"[1,null]"'),
        ("[[1],[2]]", '"[[1],[2]]"'),
        ("[true]", '"[true]"'),
    ],
)
def test_json_that_is_not_a_feature(text: str, quoted: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_value(text, "add", "x")
    assert (caught.value.option, caught.value.value) == ("add", repr(text))
    assert caught.value.remedy.endswith(quoted)
    assert parse_value(quoted, "add", "x") == text
