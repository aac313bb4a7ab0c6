"""Spark reads and writes the same rows as TFRecord, by recordsmith, and as Parquet.

    python spark_jobs.py OPTIONS       OPTIONS is JSON; prints what was measured as JSON

It runs in a Python that has pyspark and recordsmith. CPU time is that of Java and of all Python
processes together. The formats take turns; the first rounds, in which Java compiles, are printed as
well.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

FORMATS = ("recordsmith", "parquet")
_SAMPLE_SECONDS = 0.05


class CpuMeter:
    """CPU seconds of this process and everything below it, also of what ended or lost its parent.

    Spark ends idle Python workers in ways that lose their times, so they are sampled.
    """

    def __init__(self) -> None:
        self._ticks: dict[tuple[int, str], int] = {}  # by process and when it began
        self._lock = threading.Lock()
        threading.Thread(target=self._sample, daemon=True).start()

    def seconds(self) -> float:
        """Return the time until now."""
        self._read()
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _sample(self) -> None:
        while True:
            self._read()
            time.sleep(_SAMPLE_SECONDS)

    def _read(self) -> None:
        with self._lock:
            parents, ticks = {}, {}
            for stat in Path("/proc").glob("[0-9]*/stat"):
                with suppress(OSError):  # it has ended meanwhile
                    fields = stat.read_text().rpartition(")")[2].split()
                    key = int(stat.parent.name), fields[19]
                    parents[key], ticks[key] = int(fields[1]), int(fields[11]) + int(fields[12])
            family = {key for key in parents if key in self._ticks or key[0] == os.getpid()}
            while True:
                processes = {process for process, _ in family}
                grown = {key for key, parent in parents.items() if parent in processes} - family
                if not grown:
                    break
                family |= grown
            self._ticks.update({key: ticks[key] for key in family})


def main() -> None:
    """Run the rounds: `records` (a TFRecord file), `folder` (for what is written), `rounds`."""
    options: dict[str, Any] = json.loads(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[4,4]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    folder = Path(options["folder"])
    rows = session.read.format("recordsmith").load(options["records"])
    places = {name: str(folder / name) for name in FORMATS}
    for name, place in places.items():
        if not Path(place).exists():
            rows.write.format(name).mode("append").save(place)
    columns = ", ".join(f"`{name}`" for name in rows.columns)

    def load(name: str) -> Any:
        return session.read.format(name).load(places[name])

    def hash_all(name: str) -> None:
        load(name).selectExpr(f"bit_xor(xxhash64({columns}))").collect()

    def discard(name: str) -> None:
        load(name).write.format("noop").mode("overwrite").save()

    def write(name: str) -> None:
        shutil.rmtree(folder / "written", ignore_errors=True)
        load("parquet").write.format(name).mode("append").save(str(folder / "written"))

    jobs: dict[str, Callable[[str], None]] = {
        "hash": hash_all,
        "discard": discard,
        "write": write,
    }
    meter = CpuMeter()
    found: dict[str, Any] = {"count": rows.count(), "rounds": []}
    for _ in range(options["rounds"]):
        measured: dict[str, Any] = {}
        for job, run in jobs.items():
            for name in FORMATS:
                before, begun = meter.seconds(), time.perf_counter()
                run(name)
                measured[f"{job} {name}"] = {
                    "cpu": meter.seconds() - before, "wall": time.perf_counter() - begun,
                }  # fmt: skip
        found["rounds"].append(measured)
    shutil.rmtree(folder / "written", ignore_errors=True)
    session.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
