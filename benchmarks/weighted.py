"""Measure weighted orders: CPU time of an epoch against a plain shuffle, and memory of the order.

    python benchmarks/weighted.py
    python benchmarks/weighted.py --records 100_000_000

Prints Markdown tables. Both loaders run in this process in turn, with one thread; the median of the
rounds counts. The second table makes the order of as many records as asked for, of drawn classes,
in a process for each number of classes, and says what its memory grows by besides mapped files. The
third packs with and without the column files of classes, in turn, and makes a first `Weighted`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import recordsmith as rs

IMAGES, ROWS, CLASSES = 600, 200_000, (10, 1_000, 100_000)


def rows(folder: Path, class_count: int = 10) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "label": rng.zipf(1.5, ROWS).clip(1, class_count),
        "x": rng.standard_normal((ROWS, 8)).astype(np.float32),
    }
    with rs.ShardWriter(folder / "rows.tfrecord") as writer:
        writer.write_columns(columns)


def many_classes(folder: Path) -> None:
    rows(folder, 1000)


def images(folder: Path) -> None:
    import simplejpeg

    rng = np.random.default_rng(0)
    y, x = np.mgrid[:375, :500, :1][:2]
    with rs.ShardWriter(folder / "images.tfrecord") as writer:
        for number in range(IMAGES):
            waves = 128 + 90 * np.sin(x / rng.uniform(5, 50, 3) + y / 9)
            pixels = (waves + rng.normal(0, 12, waves.shape)).clip(0, 255).astype(np.uint8)
            writer.write_example(
                {"image": simplejpeg.encode_jpeg(pixels), "label": number % 7 // 5}
            )


def epoch(loader: rs.Loader) -> float:
    begun = time.process_time()
    for _ in loader:
        pass
    return time.process_time() - begun


def compare(path: Path, features: Any, batch_size: int, rounds: int) -> tuple[float, float]:
    """Return CPU microseconds a record of a plain shuffle and of a weighted one."""
    dataset = rs.open(path)
    options = {"batch_size": batch_size, "shuffle": True, "threads": 0}
    sources = dataset, rs.Weighted(dataset, by="label")
    loaders = [rs.Loader(source, features, **options) for source in sources]  # type: ignore[arg-type]
    times = [[epoch(loader) for loader in loaders] for _ in range(rounds + 1)][1:]
    plain, weighted = (
        statistics.median(column) / len(dataset) * 1e6 for column in zip(*times, strict=True)
    )
    return plain, weighted


def order(record_count: int, class_count: int) -> tuple[float, float, float]:
    """Return seconds to make an order, nanoseconds a place, and growth of memory in MB."""
    from recordsmith.loading.order import weighted
    from recordsmith.loading.order.exact_draws import exact_shares
    from recordsmith.stores import scratch_array
    from recordsmith.support.buffers import offsets_from_lengths

    rng = np.random.default_rng(0)
    numbers = scratch_array(record_count, np.min_scalar_type(class_count))
    for start in range(0, record_count, 1 << 20):
        part = numbers[start : start + (1 << 20)]
        part[:] = rng.integers(0, class_count, len(part))
    before = memory()
    begun = time.process_time()
    _, strata, counts = weighted._classes_of(numbers)  # noqa: SLF001 - without a dataset
    positions = weighted._sorted_positions(strata, counts)  # noqa: SLF001
    seconds = time.process_time() - begun
    shares = exact_shares(np.ones(len(counts)), record_count)
    made = weighted._ExactOrder(positions, counts, shares, record_count, 0, "")  # noqa: SLF001
    assert len(offsets_from_lengths(counts)) == len(counts) + 1
    begun = time.process_time()
    for start in range(0, 100 << 14, 1 << 14):
        made.positions(0, np.arange(start, start + (1 << 14)) % record_count)
    per_place = (time.process_time() - begun) / (100 << 14) * 1e9
    return seconds, per_place, memory() - before


def memory() -> float:
    """Return the memory of this process in MB that is not mapped from files."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1000


def image_folder(folder: Path) -> Any:
    import simplejpeg

    rng = np.random.default_rng(0)
    for number in range(2_000):
        small = rng.integers(0, 255, (12, 12, 3), np.uint8).repeat(16, 0).repeat(16, 1)
        path = folder / "in" / str(number % 10) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(simplejpeg.encode_jpeg(np.ascontiguousarray(small)))
    return rs.ImageFolder(folder / "in")


def table(folder: Path) -> Any:  # noqa: ARG001
    import pyarrow as pa

    rng = np.random.default_rng(0)
    columns = {"label": rng.integers(0, 100, 1_000_000), "x": rng.random(1_000_000, np.float32)}
    return pa.table(columns | {"text": [f"text {number % 1000}" for number in range(1_000_000)]})


def pack_and_open(folder: Path, source: Any, by: str, rounds: int) -> list[float]:
    """Return CPU seconds to pack without and with column files, and of each first Weighted."""
    from recordsmith.writing.packing.pack_options import PackOptions

    options: Any = PackOptions
    kept = options.kept_columns
    times: list[list[float]] = []
    for number in range(2 * rounds + 2):  # the first pair warms up
        is_kept = bool(number % 2)
        options.kept_columns = kept if is_kept else lambda _: []
        out = folder / f"out-{number}"
        begun = time.process_time()
        rs.pack(source, out, threads=1, numbers_of=[by])
        packed = time.process_time()
        rs.Weighted(rs.open(out), by=by)
        times.append([packed - begun, time.process_time() - packed])
        shutil.rmtree(out)
    options.kept_columns = kept
    without, having = np.median(times[2::2], axis=0), np.median(times[3::2], axis=0)
    return [without[0], having[0], without[1], having[1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print("| an epoch of | plain shuffle, µs a record | weighted | ratio |")
    print("| --- | ---: | ---: | ---: |")
    pixels = {"image": rs.Image("image", size=(375, 500)), "label": "label"}
    with tempfile.TemporaryDirectory() as folder:
        for name, write, features, batch_size in (
            ("images of 500x375", images, pixels, 32),
            ("rows of 8 floats, 10 classes", rows, None, 1024),
            ("rows of 8 floats, 1,000 classes", many_classes, None, 1024),
        ):
            path = Path(folder, write.__name__)
            path.mkdir()
            write(path)
            plain, weighted = compare(path, features, batch_size, arguments.rounds)
            print(f"| {name} | {plain:,.2f} | {weighted:,.2f} | {weighted / plain:.3f} |")
    print(f"\n| classes of {arguments.records:,} records | s to sort | ns a place | MB more |")
    print("| ---: | ---: | ---: | ---: |")
    for class_count in CLASSES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, place, growth = pool.apply(order, (arguments.records, class_count))
        print(f"| {class_count:,} | {seconds:.1f} | {place:.0f} | {growth:.0f} |")
    print("\n| pack | s without columns | s with | ratio | Weighted: ms without | ms with |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for make, by in ((image_folder, "image/class/label"), (table, "label")):
            source = make(Path(folder))
            plain, kept, read, opened = pack_and_open(Path(folder), source, by, arguments.rounds)
            print(
                f"| {make.__name__} | {plain:.2f} | {kept:.2f} | {kept / plain:.3f} "
                f"| {read * 1e3:.1f} | {opened * 1e3:.1f} |"
            )


if __name__ == "__main__":
    main()
