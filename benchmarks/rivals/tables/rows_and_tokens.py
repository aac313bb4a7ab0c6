"""Rows of a table, and documents packed into rows of tokens, where a rival documents these."""

from __future__ import annotations

from typing import Any

from bench import Bench, Measured, number_text, reason, rival_of, spread
from packed_tokens import LENGTH
from packed_tokens import WAYS as TOKEN_WAYS
from table_rows import BATCH, FLOATS

from case import Table


def report_rows(bench: Bench) -> Table:
    count = 20_000 if bench.quick else 200_000
    folder = bench.folder / "rows"
    ways = {module: module for module in bench.rivals}
    results = _rounds(bench, ways, "table_rows:measure", folder=str(folder), count=count)
    base = _median(results, "cpu")
    rows = []
    for module, found in results.items():
        why = reason(found[0])
        cells = [why or "", "", ""]
        if why is None:
            cells = [spread(run[clock] * 1e6 / count for run in found) for clock in ("cpu", "wall")]
            cells.append(number_text(_median({module: found}, "cpu") / base))
        rows.append((rival_of(module).title, *cells))
    return Table(
        "rows",
        "Rows of a table",
        (
            f"{count:,} rows of three integers, {len(FLOATS)} floats and a string to shuffled "
            f"batches of {BATCH} rows, arrays of each column; the second epoch of a process, two "
            "threads or worker processes. All rows must come once, with their values. Median, in "
            "brackets the least and the most."
        ),
        ("", "CPU µs a row", "wall µs a row", "CPU, first row = 1"),
        tuple(rows),
        data={"results": results},
    )


def report_tokens(bench: Bench) -> Table:
    count = 200_000 if bench.quick else 4_000_000
    ways = {
        way: module
        for module in bench.rivals
        for way in [name for name in TOKEN_WAYS if name.split(",")[0] == module] or [module]
    }
    results = _rounds(
        bench, ways, "packed_tokens:measure", folder=str(bench.folder / "tokens"), token_count=count
    )
    base = _median(results, "second")
    rows = []
    for name, found in results.items():
        why = reason(found[0])
        cells = [why or "", "", "", ""]
        if why is None:
            million = 1e6 / found[0]["count"]
            cells = [
                *(spread(run[epoch] * million for run in found) for epoch in ("first", "second")),
                number_text(_median({name: found}, "second") / base),
                f"{found[0]['fill']:.4f}, {found[0]['share']:.2%}",
            ]
        rows.append((rival_of(ways[name]).title + name.removeprefix(ways[name]), *cells))
    return Table(
        "tokens",
        "Packed tokens",
        (
            f"{count:,} tokens in documents of log-normal length, median 245, to batches of 8 rows "
            f"of {LENGTH:,} tokens; one thread or worker process. Best fit keeps documents whole; "
            "end to end cuts them where a row ends. What is computed once is in the first epoch. "
            "Fill is the share of the rows that is tokens, and the share of the tokens that come. "
            "Median, in brackets the least and the most."
        ),
        (
            "",
            "CPU s a million tokens, first epoch",
            "second epoch",
            "second, first row = 1",
            "fill, tokens",
        ),
        tuple(rows),
        data={"results": results},
    )


def _rounds(
    bench: Bench, ways: dict[str, str], job: str, **options: Any
) -> dict[str, list[Measured]]:
    """The results of each way; only the reason if there are none."""
    results: dict[str, list[Measured]] = {way: [] for way in ways}
    for _ in range(bench.rounds):
        for way, module in ways.items():
            if results[way] and reason(results[way][0]) is not None:
                continue
            results[way].append(bench.job(module, job, way=way, **options))
    return results


def _median(results: dict[str, list[Measured]], clock: str) -> float:
    """Of the first that has results."""
    found = next(found for found in results.values() if reason(found[0]) is None)
    return float(sorted(run[clock] for run in found)[len(found) // 2])
