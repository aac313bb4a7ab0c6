"""How far memory rises above what the imports take, for a dataset and for one much larger.

Reading and packing stream, so both figures must be alike, but for what a plan holds of each
sample. `read_columns` holds its result, which grows with the dataset; `batches` holds one batch.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable
from importlib import import_module
from typing import Any

from case import Case, Peer, Settings, Table, Task
from inputs import Inputs
from measure import measure_peaks

_FEW, _MANY = "few", "many"
_FILES = {_FEW: "small.tfrecord", _MANY: "small-4-times.tfrecord"}
_STREAMS = {_FEW: "small-5-times.tfrecord", _MANY: "small-50-times.tfrecord"}
_FOLDERS = {_FEW: "images-quarter", _MANY: "images"}
_TABLES = {_FEW: "few-rows.csv", _MANY: "many-rows.csv"}


def _reading(
    act: Callable[[Any, Any], Any], files: dict[str, str] = _FILES, *imports: str
) -> Callable[[Inputs, str], Task]:
    def prepare(inputs: Inputs, size: str) -> Task:
        import recordsmith as rs

        for name in ("open", "verify", "FeatureSpec"):  # they are loaded when first used
            getattr(rs, name)
        for name in imports:
            import_module(name)
        path = inputs.path(files[size])
        return Task(lambda: act(rs, path), inputs.record_counts[files[size]])

    return prepare


def _iterate(rs: Any, path: Any) -> None:
    for _ in rs.open(path):
        pass


def _batches(rs: Any, path: Any) -> None:
    keys = {"label": rs.FeatureSpec("int64", ()), "dense": rs.FeatureSpec("float", (13,))}
    for _ in rs.open(path).batches(1024, keys):
        pass


def _record_batches(rs: Any, path: Any) -> None:
    for _ in rs.open(path).to_arrow(batch_size=1024):
        pass


def _query(rs: Any, path: Any) -> None:
    from recordsmith.duckdb import query

    query("select label, count(*) from data group by label", rs.open(path))


def _pack(inputs: Inputs, size: str) -> Task:
    from recordsmith import ImageFolder

    source = ImageFolder(inputs.path(_FOLDERS[size]))
    return _packing(inputs, source, inputs.image_count // (1 if size == _MANY else 4))


def _pack_table(inputs: Inputs, size: str) -> Task:
    from recordsmith import Table

    source = Table(inputs.path(_TABLES[size]))
    return _packing(inputs, source, inputs.many_rows if size == _MANY else inputs.few_rows)


def _packing(inputs: Inputs, source: Any, count: int) -> Task:
    from recordsmith import pack

    out = inputs.out("memory")

    def run() -> None:
        pack(source, out, shards=1)

    return Task(run, count, before=lambda: shutil.rmtree(out, ignore_errors=True))


_ACTIONS: dict[str, Callable[[Inputs, str], Task]] = {
    "`verify`": _reading(lambda rs, path: rs.verify(path)),
    "`for example in dataset`": _reading(_iterate),
    "`batches(1024, …)`, two features": _reading(_batches),
    "`read_columns`, one int64 feature": _reading(
        lambda rs, path: rs.open(path).read_columns(["label"])
    ),
    "`to_arrow`, all features": _reading(_record_batches, _STREAMS, "pyarrow"),
    "`query`, `count(*) … group by label`": _reading(_query, _STREAMS, "recordsmith.duckdb"),
    "`pack` of images": _pack,
    "`pack` of a CSV table": _pack_table,
}


def _peer(action: str, size: str) -> Peer:
    return Peer(f"{action}, {size}", lambda inputs: _ACTIONS[action](inputs, size))


CASE = Case(
    name="memory",
    title="Peak memory",
    what=(
        "MiB above what is resident after the imports, of one process for each figure. "
        "`read_columns` keeps 8 bytes a record by definition; a plan is a few numbers for each."
    ),
    unit="record",
    peers=tuple(_peer(action, size) for action in _ACTIONS for size in (_FEW, _MANY)),
    inputs=(*_FILES.values(), *_STREAMS.values(), *_FOLDERS.values(), *_TABLES.values()),
)


def report(settings: Settings) -> Table:
    """A table of both datasets, a row for each way to read or write them."""
    peaks, counts = measure_peaks(CASE, settings)
    rows, data = [], []
    for action in _ACTIONS:
        row = [action]
        for size in (_FEW, _MANY):
            name = f"{action}, {size}"
            peak = statistics.median(peaks[name])
            row += [f"{counts[name]:,}", f"{peak / (1 << 20):.1f}"]
            data.append({"action": action, "records": counts[name], "peak_bytes": peaks[name]})
        rows.append(tuple(row))
    header = ("", "few records", "MiB", "many records", "MiB")
    return Table(CASE.name, CASE.title, CASE.what, header, tuple(rows), data={"rows": data})
