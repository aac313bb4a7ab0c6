"""The rivals of the benchmark: what is packed is read whole, shuffled, and resumed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from .images import jpeg

FOLDER = Path(__file__).parent.parent / "benchmarks" / "rivals"
NEEDS = {
    "recordsmith_shards": (),
    "torch_files": ("torch",),
    "grain_array_record": ("array_record", "grain"),
    "hf_arrow": ("datasets", "torch"),
    "hf_parquet": ("datasets", "torchdata"),
    "lance_table": ("lancedb", "lance"),
    "spdl_files": ("spdl",),
}
KEYS = list(range(12))


def run_job(module: str, name: str, **options: Any) -> dict[str, Any]:
    command = [sys.executable, str(FOLDER / "job.py"), module, name, json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for key in KEYS:
        path = tmp_path / "images" / "ab"[key % 2] / f"{key:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(key, 64, 48))
    return tmp_path / "images"


def packed(module: str, folder: Path) -> Path:
    for name in NEEDS[module]:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    out = folder.parent / "out"
    measured = run_job(module, "pack", images=str(folder), out=str(out))
    if "unsupported" in measured:
        return folder
    assert measured["count"] == len(KEYS)
    assert measured["size_bytes"] > sum(path.stat().st_size for path in folder.glob("*/*"))
    return out


MODULES = [
    pytest.param(name, marks=() if name == "recordsmith_shards" else pytest.mark.slow)
    for name in NEEDS
]


@pytest.mark.parametrize("module", MODULES)
def test_rival(module: str, folder: Path) -> None:
    place = str(packed(module, folder))
    hashes = sorted(
        (int(path.stem), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.glob("*/*")
    )
    digest = hashlib.sha256(repr(hashes).encode()).hexdigest()
    options = {"place": place, "batch_size": 3, "threads": 1}
    assert run_job(module, "content", **options) == {"count": len(KEYS), "digest": digest}

    resumed = run_job(module, "round_trip", what="bytes", batch_count=2, **options)
    if "unsupported" not in resumed:
        assert len(resumed["before"]) == 6
        assert sorted(resumed["before"] + resumed["after"]) == KEYS

    crops = run_job(module, "epochs", what="crops", **options)["epochs"]
    assert [sorted(epoch["keys"]) for epoch in crops] == [KEYS, KEYS]

    read = run_job(module, "access", place=place, positions=[11, 3, 3, 0], batch_size=2)
    assert "unsupported" in read or read["total"] == sum(
        path.stat().st_size for path in folder.glob("*/*")
    )


def test_a_missing_library_is_reported(folder: Path) -> None:
    code = "import sys; sys.modules['recordsmith'] = None; del sys.argv[0]; import job; job.main()"
    options = json.dumps({"images": str(folder), "out": str(folder.parent / "out")})
    command = [sys.executable, "-c", code, "job.py", "recordsmith_shards", "pack", options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER)
    assert "recordsmith" in json.loads(done.stdout)["missing"]
