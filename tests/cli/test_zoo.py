"""The commands on files of other programs: correct results, one clear error, no traceback."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import recordsmith as rs


def test_commands(zoo_row: dict[str, Any], zoo: Path, run: Any, tmp_path: Path) -> None:
    row, path, out = zoo_row, zoo / zoo_row["file"], tmp_path / "out"
    if row["tf_error"] is not None:
        _assert_refused(path, out, run)
        return
    inspected = run("inspect", path, "--json")
    assert inspected.code == 0, inspected.err
    assert inspected.document["records"] == row["records"]
    assert inspected.document["payload"] == row["payload"]
    counted = run("stats", path, "--json")
    assert counted.code == 0, counted.err
    assert counted.document["records"] == row["records"]

    verified = run("verify", path, "--deep", "--json").document
    assert verified["records"] == row["records"]
    framing = {"length-crc-mismatch", "payload-crc-mismatch", "malformed-example"}
    assert not framing & {defect["defect"] for defect in verified["defects"]}

    count = min(3, row["records"])
    reshaped = run("reshard", path, out, "--shards", count, "--json")
    assert reshaped.code == 0, reshaped.err
    payloads = list(rs.open(out).records())
    assert hashlib.sha256(b"".join(payloads)).hexdigest() == row["records_sha256"]
    assert run("verify", out).code == 0
    assert run("inspect", out, "--json").document["payload"] == row["payload"]

    assert run("diff", path, out).code == 0
    with rs.ShardWriter(tmp_path / "other.tfrecord") as writer:
        for payload in payloads[1:]:
            writer.write(payload)
    differs = run("diff", path, tmp_path / "other.tfrecord", "--json")
    if row["records"] > 1:
        assert differs.code == 1, differs.out + differs.err

    salvaged = run("salvage", path, tmp_path / "salvaged")
    assert salvaged.code == 0, salvaged.err
    assert list(rs.open(tmp_path / "salvaged").records()) == payloads
    for command in (("head", path), ("stats", path), ("verify", path, "--deep")):
        assert run(*command).code in (0, 1)


def _assert_refused(path: Path, out: Path, run: Any) -> None:
    assert run("verify", path, "--deep", "--json").document["defects"]
    commands = [
        ("inspect", path),
        ("stats", path),
        ("verify", path, "--deep"),
        ("reshard", path, out, "--shards", "1"),
        ("diff", path, path),
        ("salvage", path, out),
    ]
    for command in commands:
        outcome = run(*command)
        assert outcome.code == 1, (command, outcome.out, outcome.err)
        assert path.name in outcome.out + outcome.err
        assert not out.exists()
