"""Compare recordsmith with its rivals, and print Markdown tables.

    python benchmarks/rivals/run.py install                      the locked environments, once
    python benchmarks/rivals/run.py                              everything: several hours
    python benchmarks/rivals/run.py --quick                      little data, one round
    python benchmarks/rivals/run.py --only epoch --rivals lance_table --data my-photos

benchmarks/README.md says what each table measures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench import ENVIRONMENTS, HERE, RIVALS, ROOT, Bench, reason, rival_of, say
from tables import TABLES

from case import Table, processor


def main() -> None:
    arguments = _parse()
    if arguments.command == "install":
        install(arguments.environments, arguments.rivals or RIVALS)
        return
    bench = Bench(
        folder=arguments.folder.resolve(),
        environments=arguments.environments.resolve(),
        rivals=tuple(arguments.rivals or RIVALS),
        rounds=arguments.rounds or (1 if arguments.quick else 7),
        quick=arguments.quick,
        own_photos=arguments.data,
    )
    say(f"inputs are kept in {bench.folder}")
    tables = [describe(bench)]
    print(tables[0].markdown(), flush=True)
    for name in arguments.only or TABLES:
        say(name)
        tables.append(TABLES[name](bench))
        print(tables[-1].markdown(), flush=True)
    if arguments.json:
        report = {table.name: table.data for table in tables}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def describe(bench: Bench) -> Table:
    """The machine, and for each rival its versions, what was chosen and where that is written."""
    rows, data = [], {}
    for module in bench.rivals:
        rival = rival_of(module)
        found = bench.job(module, "versions")
        versions = reason(found) or ", ".join(map(" ".join, found.items()))
        rows.append((rival.title, versions, rival.chosen, " ".join(rival.pages)))
        data[module] = found
    machine = (
        f"{processor()}, {os.cpu_count()} processors, {platform.system()}, "
        f"Python {platform.python_version()}, {bench.rounds} rounds"
    )
    return Table(
        "rivals",
        "What is compared",
        f"{machine}. Settings are those that each library's own pages advise.",
        ("", "versions", "chosen", "pages"),
        tuple(rows),
        data={"machine": machine, "versions": data},
    )


def install(environments: Path, rivals: Iterable[str]) -> None:
    """Make the environments of rivals from their lock files; one that is complete is left alone."""
    for name in sorted({rival_of(module).environment for module in rivals}):
        first, lock, folder = ENVIRONMENTS[name], HERE / f"{name}.txt", environments / name
        done = folder / "complete"
        if done.exists() and done.read_text() == lock.read_text():
            continue
        say(f"installing {folder}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        if first is not None:
            subprocess.run([*pip, first], check=True)
        # a lock file is complete
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(lock)], check=True)
        done.write_text(lock.read_text())


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare recordsmith with its rivals.")
    parser.add_argument("command", nargs="?", choices=["install"], help="make the environments")
    parser.add_argument(
        "--only", nargs="+", choices=TABLES, metavar="TABLE", help=", ".join(TABLES)
    )
    parser.add_argument(
        "--rivals", nargs="+", choices=RIVALS, metavar="NAME", help=", ".join(RIVALS)
    )
    parser.add_argument("--quick", action="store_true", help="little data, one round")
    parser.add_argument("--rounds", type=int, metavar="N", help="measured rounds [default: 7]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement there")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="your images: a folder of JPEGs for each class"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="FOLDER",
        default=Path(tempfile.gettempdir()) / "recordsmith-rivals",
        help="where inputs and packed images are kept; about 5 GB",
    )
    parser.add_argument(
        "--environments",
        type=Path,
        metavar="FOLDER",
        default=ROOT / "build" / "rivals",
        help="where the environments are [default: build/rivals]",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
