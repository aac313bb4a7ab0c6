from __future__ import annotations

import json
from pathlib import Path

import recordsmith as rs


def test_writes_next_to_the_manifest(run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rs.pack(rs.Rows([{"x": float("nan") if n == 3 else n / 4} for n in range(9)]), out)
    outcome = run("normalisation", out, "--feature", "x")
    assert outcome.code == 0
    assert "left out 1 NaN" in outcome.out
    document = json.loads((out / "normalisation.json").read_text())
    assert document == rs.normalisation(out, ["x"]).to_json()
    refused = run("normalisation", out, "-f", "x")
    assert refused.code == 2
    assert "already exists" in refused.err
    assert run("normalisation", out, "-f", "x", "--overwrite").code == 0
    files = run("normalisation", *out.glob("*.tfrecord"), "-f", "x")
    assert files.code == 2
    assert "--out" in files.err
    assert run("normalisation", *out.glob("*.tfrecord"), "-f", "x", "-o", tmp_path / "x").code == 0
