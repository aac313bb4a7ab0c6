from __future__ import annotations

import re
from pathlib import Path


def test_lost_and_repaired_records(run, packed: Path, tmp_path: Path) -> None:
    shard = packed / "train-00000-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    first = int.from_bytes(data[:8], "little") + 16
    data[0] ^= 1
    data[first + 20] ^= 1
    shard.write_bytes(data)
    (packed / "train-00001-of-00002.tfrecord").write_bytes(b"a text")
    outcome = run("salvage", packed, tmp_path / "rescued")
    assert outcome.code == 1
    assert f"{shard}: 2 of 3 records" in outcome.out
    assert f"bytes {first:,} to " in outcome.out
    assert "payload-crc-mismatch" in outcome.out
    assert re.search(r"byte 0, bit 0, .*length", outcome.out)
    assert "train-00001-of-00002.tfrecord: skipped, " in outcome.out
    assert "text file" in outcome.out
    again = run("salvage", packed, tmp_path / "rescued", "--json")
    assert again.code == 1
    document = again.document
    assert document["records"] == 5
    assert document["expected"] == 9
    assert not document["is_complete"]


def test_nothing_can_be_recovered(run, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    outcome = run("salvage", path, tmp_path / "rescued")
    assert outcome.code == 1
    assert "git-lfs" in outcome.err
    assert run("salvage", path, tmp_path).code == 2
    assert run("salvage", tmp_path / "nowhere", tmp_path / "rescued").code == 2
