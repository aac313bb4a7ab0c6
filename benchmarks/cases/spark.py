"""Spark reads and writes TFRecord, next to its own Parquet: `spark_jobs` and its targets."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from case import OURS, Settings, Table
from inputs import Inputs
from measure import make_inputs, say

NAME = "spark"
_HERE = Path(__file__).resolve().parent.parent
_RECORDS = "small-50-times.tfrecord"
_WARM_UP = 2  # rounds in which Java compiles
_JOBS = {
    "hash": ("read, and hash all columns", 2.0),
    "discard": ("read, and discard the rows", 2.0),
    "write": ("read Parquet, and write", None),
    "only write": ("write: the difference to reading Parquet", 3.0),
}


def report(settings: Settings) -> Table:
    """Ten million rows, from the third round on."""
    say(NAME)
    rows: list[tuple[str, ...]] = []
    found: dict[str, Any] = {}
    if settings.spark_python is None:
        rows.append(("not measured: --spark-python is missing", *[""] * 7))
    else:
        found = _measured(settings, settings.spark_python)
        for job, (title, target) in _JOBS.items():
            ours, parquet = (_cpu(found["rounds"], job, name) for name in (OURS, "parquet"))
            ratio = ours / parquet
            shown = [f"{cpu / found['count'] * 1e9:,.0f}" for cpu in (ours, parquet)]
            goal = ("", "") if target is None else (f"{target:g}", _met(ratio <= target))
            measured = "write" if job == "only write" else job
            walls = (
                f"{_median(found['rounds'], f'{measured} {name}', 'wall'):.1f}"
                for name in (OURS, "parquet")
            )
            rows.append((title, *shown, f"{ratio:.2f}", *goal, *walls))
    return Table(
        NAME,
        "Spark: DataFrames from TFRecord and from Parquet",
        "Ten million records of 200 bytes in `local[4,4]`: an integer, bytes, 13 floats and a list "
        "of integers, all columns. CPU time of Java and all Python processes, from the third round "
        "on.",
        ("", f"{OURS}, ns a row", "Parquet", "Parquet = 1", "target", "met", f"{OURS}, s",
         "Parquet, s"),
        tuple(rows),
        data=found,
    )  # fmt: skip


def _measured(settings: Settings, python: str) -> dict[str, Any]:
    make_inputs(settings, (_RECORDS,))
    records = Inputs(settings.folder, settings.quick).path(_RECORDS)
    with tempfile.TemporaryDirectory(dir=records.parent) as folder:
        options = {
            "records": str(records), "folder": folder, "rounds": _WARM_UP + settings.repeat,
        }  # fmt: skip
        done = subprocess.run(
            [python, str(_HERE / "spark_jobs.py"), json.dumps(options)],
            stdout=subprocess.PIPE,
            check=True,
        )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _cpu(rounds: list[Any], job: str, name: str) -> float:
    if job == "only write":
        return _cpu(rounds, "write", name) - _cpu(rounds, "discard", "parquet")
    return _median(rounds, f"{job} {name}", "cpu")


def _median(rounds: list[Any], job: str, what: str) -> float:
    return float(statistics.median(one[job][what] for one in rounds[_WARM_UP:]))


def _met(is_met: bool) -> str:
    return "yes" if is_met else "**no**"
