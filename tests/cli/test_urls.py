"""Every command reads and writes a bucket as it does local folders, with `--store-options`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli import COMMANDS as ALL_COMMANDS
from recordsmith.cli import load_command
from recordsmith.stores import Location, as_folder

from ..places import visible
from ..servers.s3 import SECRETS

COMMANDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "inspect": (("inspect", "DATA", "--json"),),
    "inspect a pattern": (("inspect", "DATA/*.tfrecord", "--json"),),
    "stats": (("stats", "DATA", "--json", "--html", "OUT/stats.html"),),
    "normalisation": (("normalisation", "DATA", "-f", "image/height", "-o", "OUT/stats.json"),),
    "verify": (
        ("schema", "DATA", "--out", "OUT/schema.json"),
        ("verify", "DATA", "--deep", "--json", "--schema", "OUT/schema.json"),
    ),
    "head": (("head", "DATA", "--json", "--where", "image/class/label == 1", "-n", "2"),),
    "sheet": (("sheet", "DATA", "OUT/sheet.png", "-n", "4"),),
    "diff": (("diff", "DATA", "DATA", "--json"),),
    "export images": (("export", "DATA", "OUT/new", "--format", "coco", "--json"),),
    "export parts of a file": (("export", "DATA", "OUT/new", "--format", "parquet", "--json"),),
    "detect": (("detect", "IMAGES", "--json"),),
    "lint": (("lint", "IMAGES", "--json", "--html", "OUT/lint.html"),),
    "forecast": (("forecast", "IMAGES", "--json"),),
    "pack": (("pack", "IMAGES", "OUT/new", "--shards", "2"),),
    "pack like": (("pack", "IMAGES", "OUT/new", "--like", "DATA"),),
    "append": (
        ("reshard", "DATA", "OUT/new", "--split", "train"),
        ("append", "DATA", "OUT/new", "--split", "validation"),
    ),
    "reshard": (("reshard", "DATA", "OUT/new", "--shards", "3", "--shuffle"),),
    "edit": (("edit", "DATA", "OUT/new", "--drop", "image/filename", "--add", "x=1"),),
    "edit in place": (
        ("reshard", "DATA", "OUT/new"),
        ("edit", "OUT/new", "--in-place", "--without", "0,2", "--json"),
        ("recover", "OUT/new", "--json"),
        ("history", "OUT/new", "--json"),
    ),
    "layers": (
        ("reshard", "DATA", "OUT/new"),
        ("layers", "list", "OUT/new", "--json"),
    ),
    "salvage": (("salvage", "DATA", "OUT/new"),),
    "engine": (
        ("salvage", "DATA", "OUT/new"),
        ("verify", "OUT/new", "--engine", "processes:2"),
    ),
    "plan": (
        ("pack", "IMAGES", "OUT/planned", "--shards", "2", "--write-plan", "OUT/plan.jsonl"),
        ("run", "OUT/plan.jsonl", "--only", "1"),
        ("run", "OUT/plan.jsonl", "--results", "OUT/results.jsonl"),
        ("finish", "OUT/plan.jsonl", "OUT/results.jsonl"),
    ),
    "engines that write": (
        ("pack", "IMAGES", "OUT/packed", "--shards", "2", "--engine", "processes:2"),
        ("reshard", "OUT/packed", "OUT/new", "--shuffle", "--engine", "processes:2"),
    ),
    "index": (("index", "DATA", "--format", "dali", "--to", "OUT/idx", "--json"),),
    "card": (("card", "DATA", "--json", "--folder", "OUT/card", "--name", "flowers"),),
    "query": (("query", 'select max("image/width") from data', "DATA", "--json"),),
}
NAMES = sorted({command[0] for commands in COMMANDS.values() for command in commands})
DIFFERENT = {"bench", "cache", "demo", "view"}
"""Commands that measure, serve, or take no path of data."""


_WITH_NAMES = r"\.html$|plan\.jsonl$|dataset\.json$|sheet\.png$|\.recordsmith/"
"""Files that name the places or versions of what was read."""


@pytest.fixture
def data(images: Path, packed: Path) -> dict[str, str]:
    """Local places by the word that stands for them."""
    return {"DATA": str(packed), "IMAGES": str(images)}


def _copied(place: str, to: Location) -> str:
    for name, content in visible(place).items():
        (to / name).put(content)
    return str(to)


def _run(run: Any, name: str, places: dict[str, str], *options: str) -> list[tuple[Any, ...]]:
    """The exit code of each command, and what it prints."""
    outcomes = []
    for command in COMMANDS[name]:
        words = [
            re.sub(r"^[A-Z]{2,}(?=/|$)", lambda found: places[found[0]], word) for word in command
        ]
        outcome = run(*words, *options)
        texts = [outcome.out, outcome.err]
        for word, place in places.items():
            texts = [" ".join(text.replace(place, word).split()) for text in texts]
        out: Any = texts[0]
        outcomes.append(
            (outcome.code, _without_times(json.loads(out)) if "--json" in command else out)
        )
        assert outcome.code < 2, outcome.err
    return outcomes


def _without_times(document: Any) -> Any:
    if isinstance(document, dict):
        # also of identities of the manifest before a change, which names the source
        times = ("seconds", "speed", "per_second", "size_bytes_on_disk", "fingerprint", "base")
        return {
            key: _without_times(value)
            for key, value in document.items()
            if not any(word in key for word in times)
        }
    return [_without_times(item) for item in document] if isinstance(document, list) else document


def test_all_commands_are_in_the_table() -> None:
    assert {*NAMES} == ALL_COMMANDS.keys() - DIFFERENT


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_from_and_to_a_bucket(
    run: Any, data: dict[str, str], bucket: tuple[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    url, options = bucket
    place = rs.remote(url, store_options=options)
    remote = {word: _copied(path, place / word.lower()) for word, path in data.items()}
    given = "--store-options", json.dumps(options)
    local_out, remote_out = str(tmp_path / "results"), f"{url}/results"
    Path(local_out).mkdir()
    expected = _run(run, name, {**data, "OUT": local_out})
    found = _run(run, name, {**remote, "OUT": remote_out}, *given)
    assert found == expected
    files, written = visible(local_out), visible(place / "results")
    assert written.keys() == files.keys()
    compared = [file for file in files if not re.search(_WITH_NAMES, file)]
    assert {file: written[file] for file in compared} == {file: files[file] for file in compared}
    assert not any(SECRETS["secret_access_key"].encode() in data for data in written.values())
    if any("OUT/new" in command for command in COMMANDS[name]):  # the other combinations
        for number, (places, out) in enumerate(((remote, str(tmp_path)), (data, url))):
            _run(run, name, {**places, "OUT": f"{out}/again-{number}"}, *given)
            again = visible(
                as_folder(f"{tmp_path}/again-0") if not number else place / f"again-{number}"
            )
            assert {file: again[file] for file in compared} == {
                file: files[file] for file in compared
            }


def test_bench(run: Any, packed: Path, bucket: tuple[str, dict[str, Any]]) -> None:
    url, options = bucket
    _copied(str(packed), rs.remote(url, store_options=options) / "data")
    given = "--store-options", json.dumps(options)
    outcome = run("bench", f"{url}/data", "--seconds", "1", "--size", "16", "--json", *given)
    assert (outcome.code, outcome.document["records"]) == (0, 9)


@pytest.mark.parametrize(
    ("option", "value", "variable"),
    [
        ("--store-options", '{"region": "a"}', "RECORDSMITH_STORE_OPTIONS"),
        ("--cache", "folder", "RECORDSMITH_CACHE"),
        ("--cache-bytes", "1kB", "RECORDSMITH_CACHE_BYTES"),
    ],
)
def test_options_are_variables_while_a_command_runs(
    run: Any,
    packed: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    value: str,
    variable: str,
) -> None:
    seen = []
    load_command("inspect")  # with the options of the function
    monkeypatch.setattr(
        rs, "inspect", lambda *_, **__: seen.append(os.environ.get(variable)) or 1 / 0
    )
    for before in (None, "before"):
        if before is not None:
            monkeypatch.setenv(variable, before)
        with pytest.raises(ZeroDivisionError):
            run("inspect", packed, option, value)
        assert os.environ.get(variable) == before
    assert seen == ["1000" if value == "1kB" else value] * 2


@pytest.mark.parametrize(
    "value", ["", "[]", "not-to-be-shown", '{"secret": "not-to-be-shown"', "1", "[" * 100_000]
)
@pytest.mark.parametrize("as_variable", [False, True])
def test_invalid_options_are_not_shown(
    run: Any, monkeypatch: pytest.MonkeyPatch, value: str, as_variable: bool
) -> None:
    arguments = ["--store-options", value]
    if as_variable:
        monkeypatch.setenv("RECORDSMITH_STORE_OPTIONS", value or "[]")
        arguments = []
    outcome = run("inspect", "s3://bucket/data", "--json", *arguments)
    assert (outcome.code, outcome.document["error"]) == (2, "OptionError")
    assert outcome.document["option"] == "store_options"
    assert "not-to-be-shown" not in outcome.out + outcome.err
    assert "[[" not in outcome.out + outcome.err


def test_a_size_must_be_one(run: Any) -> None:
    outcome = run("inspect", "s3://bucket/data", "--json", "--cache-bytes", "much")
    assert (outcome.code, outcome.document["option"]) == (2, "cache_bytes")
