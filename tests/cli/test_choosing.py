"""--at, --where and --sample choose the same records in each command that has them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.format.wire import COMPRESSIONS
from recordsmith.support.reports import SourceLocation, show_command, show_commands


@pytest.fixture(params=COMPRESSIONS)
def numbers(tmp_path: Path, request: Any) -> Path:
    """Two shards of train and one of test, with the numbers 0 to 29."""
    folder = tmp_path / "numbers"
    folder.mkdir()
    suffix = {"none": "", "gzip": ".gz", "zlib": ".zz"}[request.param]
    names = ("test-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002")
    for shard, name in enumerate(names):
        with rs.ShardWriter(
            folder / f"{name}.tfrecord{suffix}", compression=request.param
        ) as writer:
            for number in range(10 * shard, 10 * shard + 10):
                writer.write_example({"id": number, "label": number % 3})
    return folder


def found(run: Any, *arguments: object) -> list[tuple[int, int]]:
    """The position and the id of each printed record."""
    outcome = run("head", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return [
        (record["position"], record["features"]["id"]["values"][0])
        for record in outcome.document["records"]
    ]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("7", [7]),
        ("29,0,11", [29, 0, 11]),
        ("8-12,9,3", [8, 9, 10, 11, 12, 3]),
        ("0-29", list(range(30))),
    ],
)
def test_positions(run, numbers: Path, at: str, expected: list[int]) -> None:
    assert found(run, numbers, "--at", at) == [(number, number) for number in expected]


def test_positions_count_in_the_split(run, numbers: Path) -> None:
    assert found(run, numbers, "--split", "train", "--at", "0,19") == [(0, 10), (19, 29)]
    assert found(run, numbers, "--split", "train", "--at", "3-9", "-n", 2) == [(3, 13), (4, 14)]


def test_conditions(run, numbers: Path) -> None:
    expected = [(number, number) for number in range(30) if number % 3 == 1]
    assert found(run, numbers, "--where", "label == 1") == expected[:5]
    assert found(run, numbers, "--where", "label == 1", "-n", 30) == expected
    of_train = [(number - 10, number) for number in range(10, 30) if number % 3 == 1]
    assert found(run, numbers, "--where", "label == 1", "--split", "train") == of_train[:5]
    assert "no record matches" in run("head", numbers, "--where", "label == 7").out
    if "zz" not in str(next(numbers.iterdir())) and "gz" not in str(next(numbers.iterdir())):
        last = found(run, numbers, "--where", "label == 2", "--split", "train[-3:]")
        assert last == [(2, 29)]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (("--at", "30"), "at"),
        (("--at", "5-30"), "at"),
        (("--at", "-1"), "at"),
        (("--at", "3-1"), "at"),
        (("--at", "x"), "at"),
        (("--at", "10", "--split", "test"), "at"),
        (("--at", "1", "--where", "label == 1"), "at"),
        (("--where", "label = 1"), "where"),
    ],
)
@pytest.mark.parametrize(
    "command", [("head",), ("sheet", "s.png"), ("export", "out"), ("reshard", "out")]
)
def test_invalid_choices(
    run, numbers: Path, command: tuple[str, ...], options: tuple[str, ...], option: str
) -> None:
    out = [numbers.parent / name for name in command[1:]]
    outcome = run(command[0], numbers, *out, *options, "--json")
    assert outcome.code == 2
    assert outcome.document["option"] == option
    assert not any(path.exists() for path in out)


def test_sheets(run, packed: Path, tmp_path: Path) -> None:
    def positions(*options: object) -> list[int]:
        out = tmp_path / "s.png"
        outcome = run("sheet", packed, out, *options, "--overwrite", "--json")
        assert outcome.code == 0, outcome.err
        with Image.open(out) as page:
            assert page.width == outcome.document["width"]
        found: list[int] = outcome.document["positions"]
        return found

    labels = [int(example["image/class/label"][0]) for example in rs.open(packed)]
    assert positions("--at", "8,2-3") == [2, 3, 8]
    assert positions("--where", "image/class/label == 1") == [
        place for place, label in enumerate(labels) if label == 1
    ]
    assert positions("--where", "image/class/label == 1", "-n", 1)[0] in range(9)
    one, other = (positions("--sample", 5, "--seed", seed) for seed in (1, 2))
    assert len(one) == len(other) == 5
    assert one != other
    assert positions("--sample", 5) == positions("--sample", 5, "--seed", 0)
    for invalid in (("--seed", 1), ("--sample", 3, "-n", 2), ("--sample", 3, "--at", "1")):
        assert run("sheet", packed, tmp_path / "t.png", *invalid).code == 2


def test_exports(run, packed: Path, tmp_path: Path) -> None:
    outcome = run("export", packed, tmp_path / "two", "--format", "csv", "--at", "8,1", "--json")
    assert (outcome.code, outcome.document["records"]) == (0, 2)
    where = 'image/class/text == "dog"'
    outcome = run("export", packed, tmp_path / "dogs", "--where", where, "--json")
    assert (outcome.code, outcome.document["records"]) == (0, 4)
    assert {path.parent.name for path in (tmp_path / "dogs").rglob("*.png")} == {"dog"}


def test_reshards(run, numbers: Path, tmp_path: Path) -> None:
    file = tmp_path / "positions.txt"
    file.write_text("29,0\n11 8-10,0\n")
    order = [29, 0, 11, 8, 9, 10]
    assert found(run, numbers, "--at", f"@{file}") == [(number, number) for number in order]

    def numbers_of(out: Path) -> dict[str, list[int]]:
        splits = rs.open(out).view.split_names
        return {name: [int(e["id"][0]) for e in rs.open(out, name)] for name in splits}

    for is_new in (True, False):
        outcome = run("reshard", numbers, tmp_path / "some", "--at", f"@{file}", "--json")
        assert (outcome.code, outcome.document["is_new"]) == (0, is_new)
        assert numbers_of(tmp_path / "some") == {"test": [0, 8, 9], "train": [10, 11, 29]}
    options = ("--split", "train[:50%]", "--at", "0,9", "--splits", "a=0.5,b=0.5")
    assert run("reshard", numbers, tmp_path / "two", *options).code == 0
    assert sorted(n for part in numbers_of(tmp_path / "two").values() for n in part) == [10, 19]
    file.write_text("\n")
    outcome = run("reshard", numbers, tmp_path / "none", "--at", f"@{file}", "--json")
    assert (outcome.code, outcome.document["option"]) == (2, "at")
    assert run("reshard", numbers, tmp_path / "none", "--at", "@missing.txt").code == 2
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("missing", ["", "starlette", "uvicorn"])
def test_commands_that_show_records(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(
        "recordsmith.support.reports.find_spec", lambda name: name != missing or None
    )
    command = "head" if missing else "view"
    assert shlex.split(show_command(["a b.tfrecord"], [3, 1, 3])) == [
        *("recordsmith", command, "a b.tfrecord", "--at", "3,1"),
    ]
    assert shlex.split(show_command(["-x", "y"], [0], "train")) == [
        *("recordsmith", command, "./-x", "y", "--split", "train", "--at", "0"),
    ]
    many = show_commands(SourceLocation(f"{number % 5}.tfrecord", number) for number in range(100))
    assert len(many) == 3
    assert shlex.split(many[0]) == [
        *("recordsmith", command, "0.tfrecord", "--at", "0,5,10,15,20,25,30,35,40,45"),
    ]
