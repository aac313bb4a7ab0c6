"""Every option of a command reaches the function that the command calls, as Python takes it."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli import load_command
from recordsmith.engines.processes import Processes

VALUES: dict[str, tuple[str, Any]] = {
    "add": ("--add year=2024 --add 'camera=\"7D\"'", {"year": 2024, "camera": "7D"}),
    "again": ("--again", True),
    "allow_host": ("--allow-host a:1 --allow-host b:2", ["a:1", "b:2"]),
    "allow_missing": ("--allow-missing", True),
    "at": ("--at 7", 7),
    "batch_size": ("--batch-size 4", 4),
    "by": ("--by id", "id"),
    "checks": ("--checks alpha,cmyk", ["alpha", "cmyk"]),
    "check_images": ("--check-images", True),
    "citation": ("--citation 'a paper'", "a paper"),
    "columns": ("--columns 2", 2),
    "compression": ("--compression gzip", "gzip"),
    "count": ("--sample 4", 4),
    "deep": ("--deep", True),
    "drop": ("--drop a --drop 'b/*'", ["a", "b/*"]),
    "findings": ("--findings f.jsonl", "f.jsonl"),
    "fit": ("--fit pad", "pad"),
    "host": ("--host ::1", "::1"),
    "fps": ("--fps 10", 10.0),
    "image_key": ("--image-key left", "left"),
    "ignore": ("--ignore alpha --ignore cmyk", ["alpha", "cmyk"]),
    "image_options": (
        "--store jpeg --quality 80 --background #ffffff --shorter-side 4 --baseline --tiles",
        rs.ImageOptions(
            store="jpeg",
            quality=80,
            background=(255, 255, 255),
            shorter_side=4,
            baseline=True,
            tiles=True,
        ),
    ),
    "folds": ("--folds 5", 5),
    "group_column": ("--group-column patient", "patient"),
    "group_pattern": ("--group-pattern '(p[0-9]+)'", "(p[0-9]+)"),
    "groups": ("--groups patients.csv", "patients.csv"),
    "keep": ("--keep none", "none"),
    "key": ("--key image", "image"),
    "keys": ("--keys a=image,image/height=", {"a": "image", "image/height": None}),
    "license": ("--license mit", "mit"),
    "like": ("--like old", "old"),
    "lock": ("--no-lock", False),
    "numbers_of": ("--numbers-of a --numbers-of b", ["a", "b"]),
    "only": ("--only alpha", ["alpha"]),
    "overwrite": ("--overwrite", True),
    "port": ("--port 8000", 8000),
    "cast": ("--cast label=int64", {"label": "int64"}),
    "recode": ("--recode label=t.csv", {"label": "t.csv"}),
    "set": ("--set label=t.csv:x", {"label": "t.csv:x"}),
    "on": ("--on id=number", "id=number"),
    "on_name": ("--on-name", True),
    "encoding": ("--encoding cp1252", "cp1252"),
    "rename": ("--rename c=d", {"c": "d"}),
    "resplit": ("--resplit x,y", ["x", "y"]),
    "yolo_task": ("--yolo-task obb", "obb"),
    "restore_types": ("--stored-types", False),
    "sample": ("--sample 50%", 0.5),
    "schema": ("--schema rules.json", "rules.json"),
    "seconds": ("--seconds 0.5", 0.5),
    "seed": ("--seed 7", 7),
    "shard_names": ("--shard-names {split}_{shard}", "{split}_{shard}"),
    "shard_size_bytes": ("--shard-size 1kB", 1000),
    "shards": ("--shards a=2,b=1", {"a": 2, "b": 1}),
    "shuffle": ("--shuffle", True),
    "size": ("--size 8x16", (8, 16)),
    "skip_errors": ("--skip-errors", True),
    "split": ("--split 'train[:50%]'", "train[:50%]"),
    "splits": ("--splits a=50%,b=0.5", {"a": 0.5, "b": 0.5}),
    "stratify": ("--stratify", True),
    "take": ("--take 25", 25),
    "threads": ("--threads 2", 2),
    "together": ("--together @f.jsonl", "@f.jsonl"),
    "to": ("--to out", "out"),
    "token_file": ("--token-file token.txt", "token.txt"),
    "where": ("--where 'id == 1'", "id == 1"),
    "without": ("--without 3,5", [3, 5]),
}
"""What is typed for a parameter, and its value in Python."""

OTHERS: dict[str, dict[str, tuple[str, Any]]] = {
    "bench": {"skip_errors": ("--skip-errors 3", 3), "shuffle": ("--no-shuffle", False)},
    "export": {"format": ("--format webdataset", "webdataset")},
    "index": {"format": ("--format dali", "dali"), "split": ("--split train", "train")},
    "lint": {"deep": ("--quick", False)},
    "pack": {"shuffle": ("--in-order", False)},
}
"""The same where a command differs."""

CASES = {
    "append": "OUT",
    "bench": "",
    "diff": "OUT",
    "edit": "OUT",
    "export": "OUT",
    "index": "",
    "inspect": "",
    "lint": "",
    "pack": "OUT",
    "reshard": "OUT",
    "salvage": "OUT",
    "schema": "",
    "sheet": "OUT",
    "stats": "",
    "verify": "",
    "view": "",
}
UNTYPED = {"edits", "engine", "on_update", "progress", "token"}
"""Parameters of functions that no option sets alone; that of engines is compared by its type."""


class Recorded(rs.OptionError):
    """Ends a command when it has called its function."""


@pytest.mark.parametrize("name", CASES)
def test_options_reach_the_function(
    run: Any, packed: Path, images: Path, tmp_path: Path, monkeypatch: Any, name: str
) -> None:
    load_command(name)
    calls: list[dict[str, Any]] = []
    signature = inspect.signature(getattr(rs, name))

    def record(*arguments: Any, **options: Any) -> None:
        calls.append(dict(signature.bind(*arguments, **options).arguments))
        raise Recorded("recorded")

    monkeypatch.setattr(rs, name, record)
    options = [
        key for key, value in signature.parameters.items() if value.default is not value.empty
    ]
    typed = {key: (VALUES | OTHERS.get(name, {}))[key] for key in options if key not in UNTYPED}
    if name == "export":
        del typed["split"]  # it opens the records that options choose
    words = shlex.split(" ".join(words for words, _ in typed.values()))
    words += ["--engine", "processes:2"] if "engine" in options else []
    source = [images if name in ("pack", "lint") else packed]
    outs = [tmp_path / "new.png"] if CASES[name] else []
    outcome = run(name, *source, *outs, *words)
    assert (outcome.code, len(calls)) == (2, 1), outcome.err
    (found,) = calls
    assert ("--engine" in words) == isinstance(found.get("engine"), Processes)
    assert {key: found[key] for key in typed} == {key: value for key, (_, value) in typed.items()}


@pytest.mark.parametrize("name", CASES)
def test_options_that_are_not_typed_are_not_passed(
    run: Any, packed: Path, images: Path, tmp_path: Path, monkeypatch: Any, name: str
) -> None:
    """So that the defaults are those of the function."""
    load_command(name)
    calls: list[dict[str, Any]] = []

    def record(*_: Any, **options: Any) -> None:
        calls.append(options)
        raise Recorded("recorded")

    declared = {"count", "deep", "lint", "lock", "restore_types", "seed", "shuffle", "threads"}
    monkeypatch.setattr(rs, name, record)
    outs = [tmp_path / "x.png"] if CASES[name] else []
    assert run(name, images if name in ("pack", "lint") else packed, *outs).code == 2
    assert calls[0].keys() <= declared | {"progress", "on_update", "split"}
