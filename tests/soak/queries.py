"""Random SQL queries of a dataset, compared with DuckDB on a Parquet file of the same rows.

    python tests/soak/queries.py --seed 7 --count 2000

The rows have all types that a manifest restores, with nulls, NaN, infinities and binary zeros.
Exit code 1 if a result differs, or if a query fails that DuckDB runs on the file.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import parquet
from shared import option_parser

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.duckdb import query

_ROWS = 300
_DAY = dt.datetime(2024, 2, 28, 23, 59, 59, 999_999)  # noqa: DTZ001
_FLOATS = [0.5, -1.5, 2.0, 2.0**100, -0.0, float("nan"), float("inf"), float("-inf"), 16777216.0]
_TEXTS = ["", "a", "A", "ab", "z%_", "näme", "日本", "a'b", "quite a long text, of more than 12"]
_BLOBS = [b"", b"\0", b"\0\xff", b"\xff\xfe", b"a", b"image" * 9]

Values = Callable[[random.Random], Any]

COLUMNS: dict[str, tuple[Any, Values, list[str]]] = {
    "i": (pa.int64(), lambda r: r.choice([r.randrange(9), 2**63 - 1, -(2**63)]), ["3", "2.5", "7"]),
    "small": (pa.int8(), lambda r: r.randrange(-128, 128), ["-5", "100", "1000"]),
    "u": (pa.uint16(), lambda r: r.randrange(4) * 20_000, ["20000", "-1", "65535"]),
    "f": (pa.float32(), lambda r: r.choice(_FLOATS), ["0.5", "'nan'", "'inf'", "0", "0.1", "2"]),
    "d": (pa.float64(), lambda r: r.choice(_FLOATS), ["-1.5", "'nan'", "'-inf'", "1e30", "2"]),
    "t": (pa.string(), lambda r: r.choice(_TEXTS), ["'a'", "'näme'", "''", "'a''b'", "'b'"]),
    "cat": (
        pa.dictionary(pa.int8(), pa.string()),
        lambda r: r.choice(_TEXTS[:4]),
        ["'a'", "'A'", "''"],
    ),
    "b": (
        pa.binary(),
        lambda r: r.choice(_BLOBS),
        [r"'\x00'::blob", r"'\xFF\xFE'::blob", "''::blob", "'a'::blob"],
    ),
    "three": (pa.binary(3), lambda r: r.choice([b"abc", b"\0\0\0", b"\xff\0a"]), ["'abc'::blob"]),
    "bo": (pa.bool_(), lambda r: r.random() < 0.5, ["true", "false"]),
    "day": (pa.date32(), lambda r: _DAY.date() + dt.timedelta(r.randrange(4)), ["'2024-02-29'"]),
    "ts": (
        pa.timestamp("us"),
        lambda r: _DAY + dt.timedelta(microseconds=r.randrange(4)),
        ["'2024-02-29'", "'2024-02-28 23:59:59.999999'"],
    ),
    "ns": (
        pa.timestamp("ns"),
        lambda r: 10**18 + r.randrange(4),
        ["'2001-09-09 01:46:40.000000002'", "'2001-09-09 01:46:40'"],
    ),
    "tz": (
        pa.timestamp("us", "UTC"),
        lambda r: _DAY + dt.timedelta(hours=r.randrange(4)),
        ["'2024-02-29 01:59:59.999999+00'", "'2024-02-29'"],
    ),
    "clock": (pa.time64("us"), lambda r: dt.time(r.randrange(24), 1, 2, 3), ["'12:00:00'"]),
    "dec": (
        pa.decimal128(9, 2),
        lambda r: decimal.Decimal(r.randrange(-300, 300)).scaleb(-2),
        ["1.2", "0", "-1.25", "1"],
    ),
    "list": (
        pa.list_(pa.int64()),
        lambda r: [r.randrange(3) for _ in range(r.randrange(3))],
        ["[1, 2]", "[]"],
    ),
    "pair": (pa.list_(pa.float32(), 2), lambda r: [r.random() < 0.5, 0.5], ["[0, 0.5]"]),
    "image/encoded": (
        pa.large_binary(),
        lambda r: bytes(r.randrange(3)) + b"x" * 500,
        ["'x'::blob"],
    ),
    "A.b c": (pa.int32(), lambda r: r.randrange(5), ["2", "4"]),
    "id": (pa.int64(), lambda _: 0, ["17", "250"]),
}
"""Types, values and constants by column."""

_LOCATION = {"split": ["'train'", "'test'"], "file": ["'x'"], "position": ["10", "299"]}


def make_table(dice: random.Random) -> Any:
    """Return rows with nulls in all columns but the id; int64 are too large to be added up."""
    arrays = []
    for name, (arrow_type, value, _) in COLUMNS.items():
        given = [None if dice.random() < 0.15 else value(dice) for _ in range(_ROWS)]
        if name == "id":
            given = list(range(_ROWS))
        arrays.append(pa.array(given, arrow_type))
    return pa.table(arrays, list(COLUMNS))


def pack(table: Any, folder: Path) -> tuple[rs.Dataset, Path]:
    """Return the packed rows; and a Parquet file of them, in the same order, with their places."""
    shards = {"train": 3, "test": 1}
    rs.pack(rs.Table(table), folder / "out", splits={"train": 0.7, "test": 0.3}, shards=shards)
    dataset = rs.open(folder / "out")
    ids, splits, files = [], [], []
    for shard, _, payload in records_of(dataset).located_records():
        ids.append(int(rs.decode_example(payload)["id"][0]))
        splits.append(shard.split)
        files.append(str(shard.location))
    places = {"split": splits, "file": files, "position": range(len(ids))}
    places = {name: pa.array(values) for name, values in places.items()}
    rows = table.take(pa.array(ids))
    columns = [*places.values(), *rows.columns]
    path = folder / "rows.parquet"
    parquet.write_table(pa.table(columns, [*places, *rows.column_names]), path)
    return dataset, path


class Queries:
    """Random queries, for which any order of the rows gives the same result."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def make(self) -> str:
        shapes = (self.plain, self.plain, self.aliased, self.joined, self.counted, self.excluded)
        shape = self.dice.choice(shapes)
        return shape()

    def constant(self, name: str) -> str:
        return self.dice.choice(_LOCATION[name] if name in _LOCATION else COLUMNS[name][2])

    def source(self) -> tuple[str, list[str]]:
        if self.dice.random() < 0.3:
            return "records", [*_LOCATION, *COLUMNS]
        return "data", list(COLUMNS)

    def some(self, names: list[str], most: int = 4) -> list[str]:
        return self.dice.sample(names, self.dice.randint(1, min(most, len(names))))

    def test(self, names: list[str], prefix: str = "", depth: int = 0) -> str:
        dice = self.dice
        if depth < 3 and dice.random() < 0.4:
            parts = [self.test(names, prefix, depth + 1) for _ in range(2)]
            return f"({dice.choice([' and ', ' or ']).join(parts)})"
        if depth < 3 and dice.random() < 0.1:
            return f"not {self.test(names, prefix, depth + 1)}"
        name = dice.choice(names)
        column, constant = f'{prefix}"{name}"', self.constant(name)
        kind = dice.randrange(10)
        if kind < 5:
            return f"{column} {dice.choice(['=', '<>', '<', '<=', '>', '>='])} {constant}"
        if kind == 5:
            return f"{column} is {dice.choice(['', 'not '])}null"
        if kind == 6:
            constants = ", ".join(self.constant(name) for _ in range(dice.randint(1, 3)))
            return f"{column} {dice.choice(['', 'not '])}in ({constants})"
        if kind == 7:
            return f"{column} between {constant} and {self.constant(name)}"
        if kind == 8:
            return f"{column} is {dice.choice(['', 'not '])}distinct from {constant}"
        if name in ("t", "cat", "split"):
            return (
                f"{column} {dice.choice(['', 'i'])}like {dice.choice(['a%', '%b%', '_', 'n%'])!r}"
            )
        return f"{column} = (select max({column}) from data)"

    def where(self, names: list[str], prefix: str = "") -> str:
        return f" where {self.test(names, prefix)}" if self.dice.random() < 0.75 else ""

    def ordered(self) -> str:
        limit = f" limit {self.dice.randint(0, 20)}" if self.dice.random() < 0.4 else ""
        return f" order by all{limit}"

    def plain(self) -> str:
        source, names = self.source()
        columns = ", ".join(f'"{name}"' for name in self.some(names, 6))
        chosen = self.dice.choice([columns, columns, "*", "distinct " + columns])
        return f"select {chosen} from {source}{self.where(names)}{self.ordered()}"

    def counted(self) -> str:
        source, names = self.source()
        return f"select count(*) from {source}{self.where(names)}"

    def aliased(self) -> str:
        source, names = self.source()
        inner = [f'"{name}"' for name in self.some(names, 5)]
        new = [f"c{number}" for number in range(len(inner))]
        outer = ", ".join(self.some(new, 5))
        if self.dice.random() < 0.5:
            aliases = [f"c{number}" for number in range(self.dice.randint(1, len(names)))]
            rest = [*aliases, *(f'"{name}"' for name in names[len(aliases) :])]
            renamed = f"{source} t({', '.join(aliases)})"
            return f"select {', '.join(self.some(rest))} from {renamed}{self.ordered()}"
        rows = f"select {', '.join(inner)} from {source}{self.where(names)}"
        return f"select {outer} from ({rows}) t({', '.join(new)}){self.ordered()}"

    def joined(self) -> str:
        left, right = self.dice.choice(["id", "id", "u", "f", "cat", "day"]), "id"
        if left != "id":
            right = left
        kind = self.dice.choice(["join", "left join", "semi join", "anti join", "full join"])
        source, names = self.source()
        others = list(COLUMNS)
        if kind in ("left join", "full join"):
            # DuckDB 2.0 fails in outer joins of arrays with nulls, also of its own tables
            names, others = ([n for n in each if n != "pair"] for each in (names, others))
        columns = [f'x."{name}"' for name in self.some(names)]
        if kind not in ("semi join", "anti join"):
            columns += [f'y."{name}"' for name in self.some(others)]
        limited = f"(select * from data where id < {self.dice.randint(1, 60)})"
        joined = f'{source} x {kind} {limited} y on x."{left}" = y."{right}"'
        return f"select {', '.join(columns)} from {joined}{self.where(names, 'x.')}{self.ordered()}"

    def excluded(self) -> str:
        source, names = self.source()
        left_out = ", ".join(f'"{name}"' for name in self.some(names))
        return f"select * exclude ({left_out}) from {source}{self.where(names)}{self.ordered()}"


def run_on_file(sql: str, path: Path) -> Any:
    """Run a query by DuckDB on a Parquet file."""
    with duckdb.connect() as connection:
        connection.execute(f"create view records as from '{path}'")
        connection.execute(
            "create view data as select * exclude (split, file, position) from records"
        )
        return connection.sql(sql).to_arrow_table()


def compare(dice: random.Random, count: int, report: Callable[[str], None]) -> Counter[str]:
    """Run random queries; return how many are equal, refused by both, or different."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        dataset, path = pack(make_table(dice), Path(folder))
        queries = Queries(dice)
        for _ in range(count):
            sql = queries.make()
            expected = _rows(partial(run_on_file, sql, path))
            found = _rows(partial(query, sql, dataset))
            if isinstance(expected, Exception) and isinstance(found, rs.OptionError):
                outcomes["refused"] += 1
            elif type(expected) is type(found) is list and expected == found:
                outcomes["equal"] += 1
                outcomes["with rows"] += len(expected) > 1
            else:
                outcomes["different"] += 1
                report(f"{sql}\n  file: {str(expected)[:300]}\n  dataset: {str(found)[:300]}")
    return outcomes


def _rows(run: Callable[[], Any]) -> Any:
    """Return the names and rows of a result as text, in which 0.0 and -0.0 are equal."""
    try:
        table = run()
    except (rs.RecordsmithError, duckdb.Error) as error:
        return error
    columns = [
        column.cast("int64") if "[ns]" in str(column.type) else column for column in table.columns
    ]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [table.column_names, *(repr(row).replace("-0.0", "0.0") for row in rows)]


def main() -> int:
    options = option_parser(__doc__, 200, "queries to run").parse_args()
    outcomes = compare(random.Random(options.seed), options.count, print)
    print(f"DuckDB {duckdb.__version__}, pyarrow {pa.__version__}, {dict(outcomes)}")
    print(f"seed {options.seed}")
    return int(outcomes["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
