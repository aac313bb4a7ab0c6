"""Measure the viewer: time to the first screen, tiles, filters, facets, and memory of the server.

    python benchmarks/viewer.py                       # some minutes
    python benchmarks/viewer.py --records 100_000     # a smoke test

Each viewer is a process of its own, `recordsmith view`, asked over HTTP as the page asks it. Prints
a Markdown table with elapsed seconds and the CPU seconds of the server; of several starts, with the
least elapsed time. The files are in the page cache; the last row is of a bucket whose responses
begin after 20 ms, with an empty cache in each start (see `slow_server.py`).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

import recordsmith as rs
from slow_server import SlowServer

ROUNDS, IMAGES, SHARDS = 3, 2_000, 10_000
BUCKET_DELAY_SECONDS = 0.02


class Server:
    """A viewer in a process, and a connection to it."""

    def __init__(self, path: Path | str, **variables: str) -> None:
        self.begun = time.perf_counter()
        command = [sys.executable, "-m", "recordsmith", "view", str(path), "--no-browser"]
        environment = {**os.environ, **variables}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdout is not None
        address = urlsplit(self._process.stdout.readline().strip())
        self._connection = http.client.HTTPConnection(str(address.hostname), address.port or 80)
        self._cookie = ""
        self._ask(f"/?{address.query}")

    def _ask(self, path: str) -> bytes:
        headers = {"Cookie": self._cookie} if self._cookie else {}
        self._connection.request("GET", path, headers=headers)
        response = self._connection.getresponse()
        self._cookie = (response.getheader("set-cookie") or self._cookie).partition(";")[0]
        return response.read()

    def get(self, path: str, **query: Any) -> bytes:
        pairs = [f"{name}={quote(str(value))}" for name, value in query.items()]
        return self._ask(f"{path}?{'&'.join(pairs)}")

    def poll(self, path: str, **query: Any) -> float:
        """Ask until the answer is complete; return after how long the first one had anything."""
        begun, first = time.perf_counter(), 0.0
        while True:
            answer = json.loads(self.get(path, **query))
            if not first and answer["scanned"]:
                first = time.perf_counter() - begun
            if answer["is_complete"]:
                return first
            time.sleep(0.02)

    def first_screen(self) -> None:
        for path in ("/", "/api/dataset"):
            self.get(path)
        tiles = self.get("/api/tiles", start=0, count=40, size=160)
        assert tiles.count(b"\n") == 40

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def peak_megabytes(self) -> float:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait()


def write_rows(folder: Path, count: int) -> Path:
    path = folder / "rows.tfrecord"
    rng = np.random.default_rng(0)
    with rs.ShardWriter(path) as writer:
        for start in range(0, count, 100_000):
            size = min(100_000, count - start)
            names = np.array([b"daisy", b"dandelion", b"rose", b"tulip"])
            writer.write_columns(
                {
                    "label": rng.integers(0, 100, size),
                    "name": names[rng.integers(0, 4, size)].tolist(),
                    "score": rng.standard_normal(size).astype(np.float32),
                    "width": rng.integers(100, 4000, size),
                    "height": rng.integers(100, 4000, size),
                }
            )
    return path


def write_images(folder: Path, count: int) -> Path:
    import simplejpeg

    path = folder / "images.tfrecord"
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:375, :500, :1][:2]
    with rs.ShardWriter(path) as writer:
        for number in range(count):
            waves = 128 + 90 * np.sin(x / rng.uniform(5, 50, 3) + y / 9)
            pixels = (waves + rng.normal(0, 12, waves.shape)).clip(0, 255).astype(np.uint8)
            image = simplejpeg.encode_jpeg(pixels)
            writer.write_example({"image/encoded": image, "image/class/label": number % 7})
    return path


def write_shards(folder: Path, count: int) -> Path:
    (folder / "shards").mkdir()
    data = rs.encode_example({"id": 1, "text": "a record of a small shard"})
    with rs.ShardWriter(folder / "one.tfrecord") as writer:
        for _ in range(10):
            writer.write(data)
    content = (folder / "one.tfrecord").read_bytes()
    for number in range(count):
        name = f"part-{number:05}-of-{count:05}.tfrecord"
        (folder / "shards" / name).write_bytes(content)
    return folder / "shards"


class Table:
    """Measures rows, and prints them."""

    def __init__(self) -> None:
        print("| what | seconds | CPU seconds |\n| --- | ---: | ---: |")

    def row(self, name: str, server: Server, ask: Callable[[], Any], since: float = 0) -> None:
        cpu, begun = server.cpu_seconds(), time.perf_counter()
        ask()
        elapsed = time.perf_counter() - (since or begun)
        cpu = server.cpu_seconds() - (0 if since else cpu)
        print(f"| {name} | {elapsed:.2f} | {cpu:.2f} |", flush=True)


def start(name: str, path: Path | str, caches: Path, **variables: str) -> Server:
    """Measure the first screen from the start of the process; return the last server."""
    measured = []
    for number in range(ROUNDS):
        cache = tempfile.mkdtemp(dir=caches)
        server = Server(path, XDG_CACHE_HOME=cache, **variables)
        server.first_screen()
        measured.append((time.perf_counter() - server.begun, server.cpu_seconds()))
        if number < ROUNDS - 1:
            server.close()
    seconds = min(elapsed for elapsed, _ in measured)
    cpu = statistics.median(cpu for _, cpu in measured)
    print(f"| {name}: process start to 40 tiles | {seconds:.2f} | {cpu:.2f} |", flush=True)
    return server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=lambda text: int(text.replace("_", "")), default=10**6)
    arguments = parser.parse_args()
    scale = min(1.0, arguments.records / 10**6)
    with tempfile.TemporaryDirectory() as name:
        folder, table = Path(name), Table()
        images = write_images(folder, max(500, int(IMAGES * scale)))
        server = start("images", images, folder)
        pages = {"start": 100, "count": 200, "size": 160}
        table.row("200 tiles of 500x375", server, lambda: server.get("/api/tiles", **pages))
        table.row("the same again", server, lambda: server.get("/api/tiles", **pages))
        print(f"| memory, MB | {server.peak_megabytes():.0f} | |")
        server.close()
        rows = start(f"{arguments.records:,} rows", write_rows(folder, arguments.records), folder)
        rows.poll("/api/view")
        where = "label == 7 and score > 0"
        table.row("filter by two features", rows, lambda: rows.poll("/api/view", where=where))
        table.row("sort by a feature", rows, lambda: rows.poll("/api/view", sort="-score"))
        first = 0.0

        def count() -> None:
            nonlocal first
            first = rows.poll("/api/facets")

        table.row("counts of five features", rows, count)
        print(f"| its first counts | {first:.2f} | |")
        print(f"| memory, MB | {rows.peak_megabytes():.0f} | |")
        rows.close()
        shards = int(SHARDS * scale)
        server = start(f"{shards:,} shards, not counted", write_shards(folder, shards), folder)
        table.row("until all are counted", server, lambda: server.poll("/api/view"))
        print(f"| memory, MB | {server.peak_megabytes():.0f} | |")
        server.close()
        with SlowServer(folder, delay=BUCKET_DELAY_SECONDS) as remote:
            options = json.dumps(remote.store_options)
            place = f"{remote.bucket}/{images.name}"
            start("images in a bucket", place, folder, RECORDSMITH_STORE_OPTIONS=options).close()


if __name__ == "__main__":
    main()
