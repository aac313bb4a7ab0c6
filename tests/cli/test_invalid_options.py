"""Invalid options end with 2 and name the option or what is expected; nothing is written."""

from __future__ import annotations

import re
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
        "--cast image/height": "KEY=int64",
        "--cast image/height=int8": "int64, float",
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


WRONG: dict[str, str] = {
    "pack": "SOURCE",
    "pack IMAGES": "OUT",
    "pakc IMAGES new": "pack",
    "PACK IMAGES new": "pack",
    "pack IMAGES new more": "more",
    "pack IMAGES new --split train=1": "--splits",
    "pack IMAGES new --compresion gzip": "--compression",
    "pack IMAGES new --format": "--format",
    "pack IMAGES new --format yollo": "'yolo'",
    "pack IMAGES new --format YOLO": "'yolo'",
    "pack IMAGES new --format ''": "--format",
    "pack IMAGES new --compression gizp": "'gzip'",
    "pack IMAGES new --engine procesess:2": "'processes'",
    "pack IMAGES new --keys slimm": "'slim'",
    "pack IMAGES new --seed 1.5": "--seed",
    "pack IMAGES new --seed ''": "--seed",
    "pack IMAGES new --quality high": "--quality",
    "pack IMAGES new --quality 0": "--quality",
    "pack IMAGES new --skip-errors 3": "--skip-errors",
    "pack IMAGES new --no-overwrite": "--overwrite",
    "pack IMAGES new --like missing": "--like",
    "pack IMAGES new --store-options {": "--store-options",
    "pack IMAGES new --cache-bytes 10": "--cache-bytes",
    "detect IMAGES --format tables": "'table'",
    "lint IMAGES --only mask-sise": "'mask-size'",
    "head PACKED --split trian": "'train'",
    "head PACKED -n few": "--count",
    "head PACKED -n 9999999999999999999": "--count",
    "bench PACKED --seconds nan": "--seconds",
    "bench PACKED --seconds inf": "--seconds",
    "head PACKED --at first": "--at",
    "head PACKED --where": "--where",
    "head PACKED --where image/widht==1": "'image/width'",
    "inspect PACKED --reader pytorch": "tf, dali",
    "sheet PACKED": "OUT",
    "sheet PACKED sheet.png --columns 0": "--columns",
    "sheet PACKED sheet.png --sample 1.0": "--sample",
    "verify PACKED --dep": "--deep",
    "verify PACKED --schema missing.json": "missing.json",
    "export PACKED new --format web-dataset": "'webdataset'",
    "export PACKED new --fps x": "--fps",
    "reshard PACKED": "PATH",
    "reshard PACKED new --take some": "--take",
    "edit PACKED new --drop image/widht": "'image/width'",
    "diff PACKED": "B",
    "index PACKED --format dalli": "'dali'",
    "bench PACKED --seconds soon": "--seconds",
    "bench PACKED --fit center-corp": "'center-crop'",
    "forecast IMAGES --sample 9.5": "--sample",
    "normalisation PACKED": "--feature",
    "view PACKED --port x": "--port",
    "cache --claer": "--clear",
    "append IMAGES PACKED": "`recordsmith pack SOURCE NEW --like DATASET`",
    "append PACKED IMAGES": "`recordsmith append PATH DATASET`",
    "append PACKED new": "`recordsmith pack SOURCE NEW --like DATASET`",
    "query PACKED": "PATH",
    "query '' PACKED": "SQL must be one SELECT statement",
    "query 'selct 1' PACKED": '"selct"',
    "query 'select widht from data' PACKED": '"widht"',
    "query 'select image/width from data' PACKED": "double quotes",
    "query 'select * from dta' PACKED": '"data"',
    "query 'select * from train' PACKED": "The tables are data, and records",
    "query 'drop table data' PACKED": "SQL must be one SELECT statement",
    "query 'select foo(1) from data' PACKED": "foo",
    "query 'select 1' PACKED --split trian": "'train'",
    "query \"select * from 'https://localhost:1/a.parquet'\" PACKED": "Queries load no extensions",
    "query PACKED 'select 1'": "`recordsmith query SQL PATH`",
    "query PACKED 'select count(*) from data'": "`recordsmith query SQL PATH`",
    "show PACKED": "view",
    "convert IMAGES new": "pack",
    "check PACKED": "verify",
    "--vesrion": "--version",
}
"""Wrong command lines, and what the message contains."""
OF_LIBRARIES = re.compile(r"pydantic|typer|\bclick\b|DuckDB|\bNone\b|Traceback|Error:|Input should")


@pytest.mark.parametrize("line", WRONG)
def test_wrong_command_lines(run, images: Path, packed: Path, tmp_path: Path, line: str) -> None:
    if line.startswith("query") and line != "query PACKED":
        pytest.importorskip("duckdb")
    typed = shlex.split(line.replace("IMAGES", str(images)).replace("PACKED", str(packed)))
    outcome = run(*(str(tmp_path / "new") if text == "new" else text for text in typed))
    assert (outcome.code, outcome.out) == (2, "")
    assert WRONG[line] in outcome.err
    assert not OF_LIBRARIES.search(outcome.err.replace(str(tmp_path), ""))
    assert not (tmp_path / "new").exists()
