"""What errors say at the command line: options that can be typed, and commands that help."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import recordsmith as rs


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    """The only shard of a dataset of small records."""
    with rs.ShardWriter(tmp_path / "train.tfrecord") as writer:
        for number in range(20):
            writer.write_example({"id": number, "name": f"record {number}"})
    assert rs.reshard(tmp_path / "train.tfrecord", tmp_path / "data").record_count == 20
    return next((tmp_path / "data").glob("*-of-*"))


def _cut(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-30])


def _flip(shard: Path) -> None:
    data = bytearray(shard.read_bytes())
    data[-8] ^= 1  # in the payload of the last record
    shard.write_bytes(data)


@pytest.mark.parametrize("damage", [_cut, _flip])
@pytest.mark.parametrize(
    "command", ["head {} -n 20", "inspect {}", "reshard {} out", "export {} out", "diff {} {}"]
)
def test_damage_comes_with_what_helps(run, shard: Path, damage, command: str, tmp_path) -> None:
    damage(shard)
    data = str(shard.parent)
    words = [data if word == "{}" else word.replace("out", str(tmp_path / "out"))
             for word in command.split()]  # fmt: skip
    outcome = run(*words)
    if outcome.code == 0:  # it does not look so closely
        assert (words[0], damage) == ("inspect", _flip)
        return
    assert outcome.code == 1
    assert "recordsmith salvage" in outcome.err
    if words[0] != "reshard" or damage is _cut:
        path = shlex.quote(data)
        assert f"`recordsmith verify {path}` says all that is wrong" in outcome.err
        assert f"`recordsmith salvage {path} OUT` rescues" in outcome.err


def test_verify_says_so_too(run, shard: Path) -> None:
    _cut(shard)
    outcome = run("verify", shard.parent)
    sizes = outcome.out.partition("shard-size-mismatch: A shard")[2]
    assert "recordsmith salvage" in sizes.partition("\n\n")[0]


def test_a_mistake_has_no_such_advice(run, tmp_path: Path) -> None:
    assert "salvage" not in run("head", tmp_path / "none").err


def test_options_stand_for_arguments(run, shard: Path, tmp_path: Path) -> None:
    """In Python the argument alone, at the command line the option alone."""
    out = tmp_path / "out"
    assert run("reshard", shard.parent, out).code == 0
    with pytest.raises(rs.OptionError, match=r"say overwrite=True to replace it$"):
        rs.reshard(shard.parent, out, shards=2)
    outcome = run("reshard", shard.parent, out, "--shards", "2")
    assert outcome.code == 2
    assert "or say --overwrite to replace it" in " ".join(outcome.err.split())
    assert "overwrite=True" not in outcome.err


def test_a_loader_says_how_to_go_on(shard: Path) -> None:
    _flip(shard)
    loader = rs.Loader(rs.open(shard), {"id": rs.Scalar("id")}, batch_size=5, epochs=1)
    for _ in range(2):
        with pytest.raises(rs.CorruptDataError, match="skip_errors= says how many") as caught:
            list(loader)
        assert str(caught.value).count("skip_errors=") == 1
