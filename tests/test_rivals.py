"""The rivals of the benchmark: what is packed is read whole, shuffled, and resumed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
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
    "tf_data": ("tensorflow",),
    "dali_records": ("nvidia",),
    "webdataset_tars": ("webdataset", "torch"),
    "mds": ("streaming",),
    "litdata_chunks": ("litdata",),
    "energon_tars": ("megatron",),
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


@pytest.mark.parametrize(
    ("job", "module", "sizes"),
    [
        ("table_rows", "recordsmith_shards", {"count": 2_000}),
        pytest.param("table_rows", "tf_data", {"count": 2_000}, marks=pytest.mark.slow),
        pytest.param("table_rows", "grain_array_record", {"count": 2_000}, marks=pytest.mark.slow),
        ("packed_tokens", "recordsmith_shards", {"token_count": 50_000}),
        ("packed_tokens", "recordsmith_shards, end to end", {"token_count": 50_000}),
        pytest.param(
            "packed_tokens", "grain_array_record", {"token_count": 50_000}, marks=pytest.mark.slow
        ),
    ],
)
def test_rows_and_tokens(job: str, module: str, sizes: dict[str, int], tmp_path: Path) -> None:
    """The job compares what it reads with what it wrote."""
    name = module.partition(",")[0]
    for needed in NEEDS[name]:
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    measured = run_job(name, f"{job}:measure", way=module, folder=str(tmp_path), **sizes)
    assert measured["count"] > 0.9 * max(sizes.values())
    assert 0.9 < measured.get("fill", 1) <= 1
    unknown = run_job(name, f"{job}:measure", way="torch_files", folder=str(tmp_path), **sizes)
    assert "no " in unknown["unsupported"]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tables, whose jobs run in this Python."""
    monkeypatch.syspath_prepend(FOLDER)
    import bench
    from tables import damage, resume

    monkeypatch.setattr(bench.Bench, "python", lambda *_: sys.executable)
    return SimpleNamespace(bench=bench, resume=resume, damage=damage)


def test_differences_of_a_resumed_run(tables: Any) -> None:
    steps = [[1, 2], [3, 4], [5, 6]]
    cases = [
        ([[3, 4], [5, 6]], None, (0, 0, False)),
        ([[3, 4, 5], [6]], None, (0, 0, False)),
        ([[4, 3], [5, 6]], None, (0, 0, True)),
        ([[4, 3], [5, 6]], 2, (0, 0, False)),
        ([[4, 5], [3, 6]], 2, (0, 0, True)),
        ([[3, 4], [3, 4], [5, 6]], None, (2, 0, True)),
        ([[5, 5]], None, (1, 3, True)),
    ]
    for rest, step_size, expected in cases:
        assert tables.resume.difference(steps, [[1, 2]], rest, step_size) == expected
    assert tables.resume.difference(steps, [[2, 1]], steps[1:], 2) == (0, 0, True)


def test_training_that_is_killed_resumes(tables: Any, folder: Path, tmp_path: Path) -> None:
    place = packed("recordsmith_shards", folder)
    bench = tables.bench.Bench(tmp_path, tmp_path, ("recordsmith_shards",), 1, quick=True)
    part = tables.resume.Part(batch_size=1)
    case = tables.resume.Case("killed twice", (part, part, part))
    torture = tables.resume.Torture(bench, "recordsmith_shards", str(place), tmp_path / "torture")
    assert torture.run(case, 0) == (0, 0, False)
    logs = [(tmp_path / "torture" / f"killed twice-0-{n}" / "rank-0") for n in range(3)]
    counts = [len(log.read_text().splitlines()) for log in logs]
    assert all(0 < count < len(KEYS) for count in counts)


def test_a_missing_library_is_reported(folder: Path) -> None:
    code = "import sys; sys.modules['recordsmith'] = None; del sys.argv[0]; import job; job.main()"
    options = json.dumps({"images": str(folder), "out": str(folder.parent / "out")})
    command = [sys.executable, "-c", code, "job.py", "recordsmith_shards", "pack", options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER)
    assert "recordsmith" in json.loads(done.stdout)["missing"]
