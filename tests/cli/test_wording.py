"""Errors at the command line: names of options, and commands that help."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.cli.wording import option_in_shell

from ..checking.linting.planted import photo, rotated, save, voc_pets, write_xml
from ..places import flip


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
    flip(shard, -8)  # in the payload of the last record


@pytest.mark.parametrize("damage", [_cut, _flip])
@pytest.mark.parametrize(
    "command", ["head {} -n 20", "inspect {}", "reshard {} out", "export {} out", "diff {} {}"]
)
def test_errors_about_damage_suggest_commands(
    run, shard: Path, damage, command: str, tmp_path
) -> None:
    damage(shard)
    data = str(shard.parent)
    words = [data if word == "{}" else word.replace("out", str(tmp_path / "out"))
             for word in command.split()]  # fmt: skip
    outcome = run(*words)
    if outcome.code == 0:  # it does not read records
        assert (words[0], damage) == ("inspect", _flip)
        return
    assert outcome.code == 1
    assert "recordsmith salvage" in outcome.err
    if words[0] != "reshard" or damage is _cut:
        path = shlex.quote(data)
        assert f"`recordsmith verify {path}`" in outcome.err
        assert f"`recordsmith salvage {path} OUT`" in outcome.err


@pytest.mark.parametrize(
    ("name", "value", "typed"),
    [
        ("overwrite", None, "--overwrite"),
        ("overwrite", "True", "--overwrite"),
        ("skip_errors", "True", "--skip-errors"),
        ("lock", "False", "--no-lock"),
        ("orientation", "'apply'", "--upright"),
        ("background", "(255, 255, 255)", "--background white"),
        ("boxes", "'drop'", "--boxes drop"),
        ("shard_size_bytes", None, "--shard-size"),
        ("splits", "{'a': 0.5, 'b': 0.5}", "--splits a=0.5,b=0.5"),
        ("image_column", "'my file'", "--image-column 'my file'"),
        ("max_pixels", "5", "--max-pixels 5"),
    ],
)
def test_options_as_typed(name: str, value: str | None, typed: str) -> None:
    assert option_in_shell(name, value) == typed


def test_messages_contain_the_options_of_the_interface(run, shard: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(rs.OptionError) as caught:
        rs.edit(shard.parent, out)
    assert "--" not in str(caught.value)
    outcome = run("edit", shard.parent, out)
    assert outcome.code == 2
    for name in ("drop", "rename", "add", "recode", "cast"):
        assert f"--{name}" in outcome.err
    document = run("edit", shard.parent, out, "--json").document
    assert document["error"] == "OptionError"
    assert "--drop" in document["message"]


@pytest.mark.parametrize("engine", [(), ("--engine", "processes:1")])
def test_messages_about_samples_name_options_as_typed(
    run, tmp_path: Path, engine: tuple[str, ...]
) -> None:
    voc_pets(tmp_path / "pets")
    write_xml(tmp_path / "pets", "03", [("cat", 10, 12, 97, 50)])
    for options in ((), ("--skip-errors",)):
        outcome = run("pack", tmp_path / "pets", tmp_path / "out", *options, *engine)
        message = outcome.out if options else outcome.err
        assert "--boxes clip" in message
        assert "boxes=" not in message
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(rs.Voc(tmp_path / "pets"), tmp_path / "other")
    assert "boxes='clip'" in caught.value.problems[0]


def test_notices_name_options_as_typed(run, tmp_path: Path) -> None:
    images = tmp_path / "images"
    save(images / "a/0.jpg", photo(0), exif=rotated())
    save(images / "a/1.jpg", photo(1), progressive=True)
    printed = run("pack", images, tmp_path / "out").out
    assert "decodes; --upright rotates" in printed
    assert "decode; --baseline converts" in printed
    notes = " ".join(rs.pack(rs.ImageFolder(images), tmp_path / "other").notes)
    assert "orientation='apply' rotates" in notes
    assert "baseline=True converts" in notes


def test_what_is_counted_is_printed(run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 9)
    assert " of encoded rows, " in run("pack", tmp_path / "t.csv", tmp_path / "out").out
