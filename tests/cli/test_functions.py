"""Every option of a command reaches the function that the command calls, as Python takes it."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli import load_command
from recordsmith.engines import Processes

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "pack": (
        (
            "--splits a=50%,b=0.5 --resplit x,y --shards a=2,b=1 --shard-size 1kB --seed 7 "
            "--stratify --in-order --shard-names {split}_{shard} "
            "--keys image/encoded=image,image/height= "
            "--compression gzip --check-images --like old --skip-errors --overwrite "
            "--threads 2 --store jpeg --quality 80 --recompress "
            "--background '#ffffff' --shorter-side 4 --upright --tiles --max-pixels 99"
        ),
        {
            "splits": {"a": 0.5, "b": 0.5},
            "resplit": ["x", "y"],
            "shards": {"a": 2, "b": 1},
            "shard_size_bytes": 1000,
            "seed": 7,
            "stratify": True,
            "shuffle": False,
            "shard_names": "{split}_{shard}",
            "keys": {"image/encoded": "image", "image/height": None},
            "compression": "gzip",
            "check_images": True,
            "like": "old",
            "skip_errors": True,
            "overwrite": True,
            "threads": 2,
            "image_options": rs.ImageOptions(
                store="jpeg",
                quality=80,
                recompress=True,
                background=(255, 255, 255),
                shorter_side=4,
                orientation="apply",
                tiles=True,
                max_pixels=99,
            ),
        },
    ),
    "lint": (
        "--quick --ignore alpha --ignore cmyk --only alpha --threads 1",
        {"deep": False, "ignore": ["alpha", "cmyk"], "only": ["alpha"], "threads": 1},
    ),
    "append": (
        "OUT --split train --again --allow-missing --no-lock --threads 3",
        {"split": "train", "again": True, "allow_missing": True, "lock": False, "threads": 3},
    ),
    "stats": (
        "--split 'train[:50%]' --threads 2",
        {"split": "train[:50%]", "threads": 2},
    ),
    "inspect": ("--split train", {"split": "train"}),
    "schema": ("--split train", {"split": "train"}),
    "verify": (
        "--split train --deep --schema rules.json --threads 2",
        {"split": "train", "deep": True, "schema": "rules.json", "threads": 2},
    ),
    "diff": (
        "OUT --split train --by id --threads 2",
        {"split": "train", "by": "id", "threads": 2},
    ),
    "salvage": (
        "OUT --split train --overwrite --threads 2",
        {"split": "train", "overwrite": True, "threads": 2},
    ),
    "reshard": (
        (
            "OUT --split train --shards 2 --shard-size 1kB --shuffle --seed 3 --take 25 "
            "--sample 50% --splits a=80%,b=0.2 --where 'id == 1' "
            "--compression gzip --overwrite "
            "--threads 2 --shard-names {split}_{shard}"
        ),
        {
            "split": "train",
            "shards": 2,
            "shard_size_bytes": 1000,
            "shuffle": True,
            "seed": 3,
            "take": 25,
            "sample": 0.5,
            "splits": {"a": 0.8, "b": 0.2},
            "where": "id == 1",
            "compression": "gzip",
            "overwrite": True,
            "threads": 2,
            "shard_names": "{split}_{shard}",
        },
    ),
    "edit": (
        (
            "OUT --drop a --drop 'b/*' --rename c=d --add year=2024 --add 'camera=\"7D\"' "
            "--recode label=t.csv --where 'id == 1' --split train --shards 2 --shard-size 1kB "
            "--shard-names {split}_{shard} --compression zlib --overwrite --threads 2"
        ),
        {
            "drop": ["a", "b/*"],
            "rename": {"c": "d"},
            "add": {"year": 2024, "camera": "7D"},
            "recode": {"label": "t.csv"},
            "where": "id == 1",
            "split": "train",
            "shards": 2,
            "shard_size_bytes": 1000,
            "shard_names": "{split}_{shard}",
            "compression": "zlib",
            "overwrite": True,
            "threads": 2,
        },
    ),
    "export": (
        "OUT --format webdataset --shard-size 10kB --stored-types --skip-errors --overwrite",
        {
            "format": "webdataset",
            "shard_size_bytes": 10_000,
            "restore_types": False,
            "skip_errors": True,
            "overwrite": True,
        },
    ),
    "index": (
        "--split train --format dali --to out --overwrite",
        {"split": "train", "format": "dali", "to": "out", "overwrite": True},
    ),
    "sheet": (
        "OUT --sample 4 --seed 7 --columns 2 --overwrite --split train",
        {"count": 4, "seed": 7, "columns": 2, "overwrite": True, "split": "train"},
    ),
    "bench": (
        (
            "--split train --batch-size 4 --size 8x16 --fit pad --key image --threads 0 "
            "--no-shuffle --skip-errors 3 --seconds 0.5"
        ),
        {
            "split": "train",
            "batch_size": 4,
            "size": (8, 16),
            "fit": "pad",
            "key": "image",
            "threads": 0,
            "shuffle": False,
            "skip_errors": 3,
            "seconds": 0.5,
        },
    ),
}
OTHERWISE = {
    "edits",  # the command `edit`
    "engine",  # compared by its type
    "on_update",
    "progress",
    "split",  # of `export`, which opens the records that options choose
}
"""Parameters of functions that no option sets, or not alone."""


class Recorded(rs.OptionError):
    """Ends a command when it has called its function."""


@pytest.mark.parametrize("name", CASES)
def test_options_reach_the_function(
    run: Any, packed: Path, images: Path, tmp_path: Path, monkeypatch: Any, name: str
) -> None:
    typed, expected = CASES[name]
    load_command(name)
    calls: list[dict[str, Any]] = []
    signature = inspect.signature(getattr(rs, name))

    def record(*arguments: Any, **options: Any) -> None:
        calls.append(dict(signature.bind(*arguments, **options).arguments))
        raise Recorded("recorded")

    monkeypatch.setattr(rs, name, record)
    words = [str(tmp_path / "new.png") if word == "OUT" else word for word in shlex.split(typed)]
    words += ["--engine", "processes:2"] if "engine" in signature.parameters else []
    source = [images, tmp_path / "new"] if name == "pack" else [packed]
    source = [images] if name == "lint" else source
    outcome = run(name, *source, *words)
    assert (outcome.code, len(calls)) == (2, 1), outcome.err
    (found,) = calls
    assert ("--engine" in words) == isinstance(found.get("engine"), Processes)
    assert {key: found[key] for key in expected} == expected
    options = {
        key for key, value in signature.parameters.items() if value.default is not value.empty
    }
    assert options - OTHERWISE <= set(expected)


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
    outs = [tmp_path / "x.png"] if "OUT" in CASES[name][0] or name == "pack" else []
    assert run(name, images if name in ("pack", "lint") else packed, *outs).code == 2
    assert calls[0].keys() <= declared | {"progress", "on_update", "split"}
