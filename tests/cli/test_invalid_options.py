"""Invalid options end with 2 and name the option or what is expected; nothing is written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

CASES: dict[str, dict[str, str]] = {
    "pack": {
        "--splits train=0.7": "0.7",
        "--splits train": "train=0.7,validation=0.3",
        "--splits train=x": "train=0.7,validation=0.3",
        "--splits a=0.5,a=0.5": "'a' twice",
        "--splits ../x=1": "file name",
        "--shards two": "--shards must be ",
        "--shards 0": "shards",
        "--shards 100": "9",
        "--shard-size large": "256MB",
        "--shard-size 1MB --shards 2": "and --shard-size exclude",
        "--compression zip": "gzip",
        "--threads 0": "--threads",
        "--format folders": "one of folder, ",
        "--boxes clip": "boxes",
        "--store gif": "'gif'",
        "--background red": "#rrggbb",
        "--keys a=b,c": "--keys must be ",
        "--keys none": "slim",
        "--engine abacus": "--engine must be ",
        "--engine processes:many": "--engine must be ",
        "--shards 2 --shard-names x": "'x'",
    },
    "edit": {
        "": "--drop",
        "--drop nothing": "'nothing'",
        "--rename a": "OLD=NEW, got 'a'",
        "--rename a=b --rename a=c": "'a' twice",
        "--add =3": "KEY=VALUE",
        "--add 'z={\"a\":1}'": "--add z ",
        "--recode image/class/label=none.csv": "no such file",
        "--drop image/height --where 'image/height = 3'": "did you mean ==?",
    },
    "export": {
        "--format zip": "'zip'",
        "--split test": "'test'",
        "--shard-size 1MB": "webdataset",
        "--format webdataset --shard-size large": "256MB",
    },
    "reshard": {
        "--shards x": "--shards must be",
        "--sample some": "--sample must be a share",
        "--take 0": "--take must be",
        "--split a=0.5,b=0.5": "--splits a=0.5,b=0.5",
    },
    "index": {"--format x": "dali", "--to idx": "--to"},
    "diff": {"--by image/filname": "'image/filename'"},
    "bench": {
        "--size big": "--size must be a number, or height and width",
        "--fit none": "'none'",
        "--key image/class/text": "image/class/text",
        "--seconds 0": "seconds",
    },
    "lint": {
        "--format pairz": "'pairz'",
        "--masks x --format folder": "--masks",
        "--html page.txt": ".html",
        "--ignore cmik": "'cmik' in --ignore",
    },
    "forecast": {
        "--qualities x": "--qualities",
        "--qualities 0": "--qualities",
        "--html a.gif": ".html",
        "--sample 9": "--sample",
    },
}
"""By command: options as they are typed, and what the message contains."""


@pytest.mark.parametrize(
    ("command", "options"), [(name, options) for name, cases in CASES.items() for options in cases]
)
def test_invalid_options(
    run, images: Path, packed: Path, tmp_path: Path, command: str, options: str
) -> None:
    source = images if command in ("pack", "forecast", "lint") else packed
    outs = [packed if command == "diff" else tmp_path / "new"]
    outs = [] if command in ("bench", "forecast", "index", "lint") else outs
    outcome = run(command, source, *outs, *shlex.split(options))
    assert (outcome.code, outcome.out) == (2, "")
    assert CASES[command][options] in outcome.err
    assert not (tmp_path / "new").exists()
