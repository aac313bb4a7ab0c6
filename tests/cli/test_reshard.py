"""`recordsmith reshard`."""

from __future__ import annotations

from pathlib import Path


def test_several_inputs(run, tmp_path: Path, numbered) -> None:
    for name in ("one", "two"):
        numbered.packed(tmp_path / name, {"train": [3, 4], "test": [2]})
    outcome = run("reshard", tmp_path / "one", tmp_path / "two", tmp_path / "out", "--shards", 2)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("wrote 18 records ")
    assert lines[0].endswith(f" 4 shards in {tmp_path / 'out'}")
    assert lines[1:3] == ["  train: 14 records", "  test: 4 records"]
    again = run("reshard", tmp_path / "one", tmp_path / "two", tmp_path / "out", "--shards", 2)
    assert again.out.startswith("nothing to do: 18 ")


def test_exit_codes(run, tmp_path: Path, numbered) -> None:
    path = numbered.write_shard(tmp_path / "a.tfrecord", range(9))
    for arguments, word in (
        ([path], "missing argument"),
        ([path, tmp_path], str(tmp_path)),
        ([path, tmp_path / "nothing.tfrecord", tmp_path / "out"], "no such file"),
    ):
        outcome = run("reshard", *arguments)
        assert outcome.code == 2
        assert word in outcome.err
    path.write_bytes(path.read_bytes()[:-1])
    outcome = run("reshard", path, tmp_path / "out")
    assert outcome.code == 1
    assert "recordsmith salvage" in outcome.err
    assert not (tmp_path / "out").exists()
