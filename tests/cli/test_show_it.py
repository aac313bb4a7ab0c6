"""Every report of a record prints the command that shows it, and that command works."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ..images import encode, smooth

Shown = Callable[[str], dict[str, list[int]]]


@pytest.fixture(autouse=True, params=["head", "view"])
def command(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The command that is printed, with and without the extra `view`."""
    found = object() if request.param == "view" else None
    monkeypatch.setattr("recordsmith.support.reports.find_spec", lambda _: found)
    return str(request.param)


@pytest.fixture
def shown(run: Any, command: str) -> Shown:
    """Runs the printed commands; returns the positions that they show, by path."""

    def run_all(text: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for line in re.findall(rf"recordsmith {command} ([^`<]*)[`<]", " ".join(text.split())):
            words = shlex.split(line)  # both commands have these arguments
            outcome = run("head", *words, "--json")
            assert outcome.code == 0, (line, outcome.err)
            positions = [record["position"] for record in outcome.document["records"]]
            assert run("head", *words).code == 0
            found.setdefault(words[0], []).extend(positions)
        return found

    return run_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a folder"  # which the shell must have in quotes


def write(path: Path, rows: list[Any], compression: str = "none") -> str:
    path.parent.mkdir(exist_ok=True)
    with rs.ShardWriter(path, compression=compression) as writer:
        for row in rows:
            writer.write(row if isinstance(row, bytes) else rs.encode_example(row))
    return str(path)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_verify(run, shown: Shown, folder: Path, compression: str) -> None:
    rows = [{"image/encoded": b"\xff\xd8\xff broken", "x": n} for n in range(4)]
    ones = write(folder / "one.tfrecord", [*rows, {"x": 1}, b"\x0a\x05daisy"], compression)
    two = write(folder / "two.tfrecord", [{"x": 1.5}, {"x": 2}, {"x": 3}])
    outcome = run("verify", folder, "--deep")
    assert outcome.code == 1
    assert outcome.out.count("show it:") == 3  # one for each kind of defect in a file
    found = shown(outcome.out)
    assert set(found[ones]) >= {0, 1, 2, 3}
    assert two in found
    defects = run("verify", folder, "--deep", "--json").document["defects"]
    assert {(path, place) for path, places in found.items() for place in places} == {
        (defect["path"], defect["record"]) for defect in defects
    }


def test_pages(run, shown: Shown, folder: Path, tmp_path: Path) -> None:
    path = write(folder / "a b.tfrecord", [{"x": 1}, {"x": 2.5}, {"x": 3}])
    page = tmp_path / "page.html"
    assert run("verify", path, "--deep", "--html", page).code == 1
    assert shown(html.unescape(page.read_text())) == {path: [1]}


def test_lint(run, shown: Shown, folder: Path) -> None:
    image = encode(smooth(32, 24), "PNG")
    rows = [{"image/encoded": data, "image/filename": "a.png"} for data in (image, image[:90])]
    path = write(folder / "a.tfrecord", rows * 2)
    outcome = run("lint", folder)
    assert outcome.code == 1
    assert {*shown(outcome.out)[path]} == {0, 1, 2, 3}


def test_loaders(run, shown: Shown, folder: Path) -> None:
    image = encode(smooth(32, 24), "PNG")
    rows = [{"image/encoded": data} for data in (image, image, image[:90])]
    path = write(folder / "a.tfrecord", rows)
    features = {"x": rs.Image("image/encoded", (8, 8))}
    loader = rs.Loader(rs.open(path), features, batch_size=1, skip_errors=1)
    assert [len(batch["x"]) for batch in loader] == [1, 1, 0]
    assert shown(str(loader.skipped[0])) == {}  # which reports list
    loader = rs.Loader(rs.open(path), features, batch_size=1)
    for _ in range(2):
        with pytest.raises(rs.DataError) as caught:
            list(loader)
        assert shown(str(caught.value)) == {path: [2]}
    outcome = run("bench", path, "--size", 8)
    assert (outcome.code, shown(outcome.err)) == (1, {path: [2]})  # named once


def test_records_behind_damaged_framing_are_not_shown(run, shown: Shown, folder: Path) -> None:
    path = Path(write(folder / "one.tfrecord", [{"image/encoded": b"\xff\xd8\xff broken"}] * 3))
    path.write_bytes(path.read_bytes()[:-4])
    outcome = run("verify", path, "--deep")
    assert "unreadable-image" in outcome.out
    assert shown(outcome.out) == {}


def test_payloads_with_a_wrong_checksum(run, folder: Path, command: str) -> None:
    path = Path(write(folder / "one.tfrecord", [{"x": n} for n in range(3)]))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    outcomes = [run("verify", path), run("stats", path)]
    assert [outcome.code for outcome in outcomes] == [1, 1]
    for outcome in outcomes:  # only the viewer shows such a record
        text = " ".join((outcome.out + outcome.err).split())
        shown = f"`recordsmith view {shlex.quote(str(path))} --at 1`"
        assert (shown in text) == (command == "view")


def test_diff(run, shown: Shown, folder: Path) -> None:
    a = write(folder / "a.tfrecord", [{"id": n, "x": 1} for n in range(5)])
    b = write(folder / "b.tfrecord", [{"id": n, "x": n // 4 + 1} for n in (9, 1, 2, 3, 4)])
    outcome = run("diff", a, b)
    changed, lone = outcome.out.split("changed (1)")[1].split("only in A")
    assert shown(changed) == {a: [4], b: [4]}
    assert shown(lone) == {a: [0], b: [0]}


def test_errors_of_jobs(run, shown: Shown, folder: Path) -> None:
    malformed = rs.encode_example({"x": 2})[:-1]
    path = write(folder / "a.tfrecord", [{"x": 1}, {"x": 2}, malformed])
    for command in (
        ("edit", path, folder / "edited", "--drop", "x"),
        ("reshard", path, folder / "resharded", "--where", "x == 1"),
    ):
        outcome = run(*command)
        assert outcome.code == 1, command
        assert shown(outcome.err) == {path: [2]}, command


def test_skipped_records_of_an_export(run, shown: Shown, folder: Path, packed: Path) -> None:
    examples = [dict(example) for example in rs.open(packed)]
    del examples[1]["image/encoded"]
    del examples[4]["image/encoded"]
    path = write(folder / "a.tfrecord", examples)
    outcome = run("export", path, folder / "out", "--skip-errors")
    assert outcome.code == 0, outcome.err
    assert shown(outcome.out) == {path: [1, 4]}
    outcome = run("export", path, folder / "out2", "--at", "3-5")
    assert outcome.code == 1
    assert shown(outcome.err) == {path: [4]}
