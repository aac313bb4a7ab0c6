"""Measure recordsmith next to its peers, and print Markdown tables.

    python benchmarks/run.py                           everything
    python benchmarks/run.py --only columns pack       some of it
    python benchmarks/run.py --quick                   a tenth of the data, two rounds

README.md next to this file says what each row does.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import tempfile
from pathlib import Path

from case import Settings, processor
from cases import benchmarks
from measure import say

_PACKAGES = (
    "recordsmith",
    "obstore",
    "numpy",
    "tensorflow",
    "tensorflow-cpu",
    "pyarrow",
    "protobuf",
    "simplejpeg",
    "google-crc32c",
    "pillow",
    "opencv-python-headless",
    "jpeglib",
    "array_record",
    "grain",
    "nvidia-dali-cuda120",
    "torch",
    "albumentations",
    "torchvision",
)

_PYTHONS = {
    "tfrecord": "the tfrecord package, which cannot live next to TensorFlow",
    "tfr-reader": "tfr-reader, NumPy and Pillow",
    "tfx-bsl": "tfx_bsl, which needs TensorFlow 2.21",
    "beam": "recordsmith, apache-beam and google-crc32c",
    "ray": "recordsmith, ray[data] and tensorflow",
    "spark": "recordsmith and pyspark, which needs Java",
    "lance": "pylance and litdata",
}
"""What needs an environment of its own."""


def main() -> None:
    arguments = _parse()
    available = benchmarks()
    names = [
        name
        for name in available
        if not arguments.only or any(_is_meant(name, word) for word in arguments.only)
    ]
    if not names:
        raise SystemExit(f"there is no such benchmark; there are {', '.join(available)}")
    settings = Settings(
        folder=arguments.data,
        quick=arguments.quick,
        repeat=arguments.repeat or (2 if arguments.quick else 5),
        **{
            field: getattr(arguments, field)
            for field in (f"{name.replace('-', '_')}_python" for name in _PYTHONS)
        },
    )
    say(f"inputs are kept in {settings.folder}")
    print(f"{describe_machine()}; the middle of {settings.repeat} rounds.\n", flush=True)
    if settings.quick:
        print("Quick: little data, so fixed costs weigh too much to judge a target.\n")
    tables = []
    for name in names:
        table = available[name](settings)
        tables.append(table)
        print(table.markdown(), flush=True)
    if arguments.json:
        report = {"machine": describe_machine(), "repeat": settings.repeat, "quick": settings.quick}
        report["benchmarks"] = {table.name: table.data for table in tables}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def describe_machine() -> str:
    """Processor, system, and the versions of everything that is compared."""
    versions = []
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return (
        f"{processor()}, {os.cpu_count()} processors, {platform.system()}, "
        f"Python {platform.python_version()}; {', '.join(versions)}"
    )


def _is_meant(name: str, word: str) -> bool:
    return name == word or name.startswith(word + "-")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure recordsmith next to its peers.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these benchmarks")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, two rounds")
    parser.add_argument("--repeat", type=int, metavar="N", help="measured rounds [default: 5]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement there")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        default=Path(tempfile.gettempdir()) / "recordsmith-benchmarks",
        help="where inputs are kept; about 11 GB",
    )
    for name, contents in _PYTHONS.items():
        parser.add_argument(
            f"--{name}-python",
            metavar="PYTHON",
            default=os.environ.get(f"{name.replace('-', '_').upper()}_PYTHON"),
            help=f"a Python that has {contents}",
        )
    return parser.parse_args()


if __name__ == "__main__":
    main()
