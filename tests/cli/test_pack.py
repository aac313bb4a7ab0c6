from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.cli import COMMANDS, wording
from recordsmith.dataset import read_manifest
from recordsmith.support.problems import MAX_PROBLEMS

_ONLY_IN_PYTHON = {
    *("--any-rank", "--blend", "--box-format", "--count-by", "--default", "--defaults"),
    "--several",
    *("--dtype", "--flip-pairs", "--mask", "--normalise", "--points", "--prefix"),
    *("--element-spec", "--epochs", "--errors", "--exact", "--features", "--frames"),
    *("--interpolation", "--kinds", "--last-batch", "--length", "--long-documents"),
    *("--map-batches", "--map-examples", "--max-decompressed-bytes", "--max-fields"),
    *("--num-workers", "--statistics", "--class-names", "--classes", "--stored"),
    *("--channels", "--choose"),
    *("--of", "--offsets", "--pad", "--parts", "--positions", "--ranges", "--raw-dtype"),
    *("--raw-shape", "--sample-weight", "--sequential-slice", "--shape", "--sharding"),
    *("--small", "--too-long", "--unit", "--values", "--weights", "--window", "--worker"),
    *("--worker-count", "--y"),
}
"""Options of functions that have no command."""


def test_summary(run, images: Path, tmp_path: Path) -> None:
    (images / "cat" / ".hidden.jpg").write_bytes(b"x")
    outcome = run("pack", images, tmp_path / "out", "--splits", "train=0.7,validation=0.3")
    assert outcome.code == 0
    head = outcome.out.splitlines()[0]
    assert re.findall(r"\d+ \w+", head)[:3] == ["9 images", "2 classes", "2 shards"]
    assert "train: 6 records" in outcome.out
    assert "validation: 3 records" in outcome.out
    assert ".hidden.jpg" in outcome.out
    assert rs.verify(tmp_path / "out").record_count == 9


def test_json_has_the_same_numbers(run, images: Path, tmp_path: Path) -> None:
    document = run("pack", images, tmp_path / "out", "--json").document
    size = sum(file.stat().st_size for file in images.rglob("*.*"))
    assert document["samples"] == 9
    assert document["classes"] == 2
    assert document["splits"] == {"train": 9}
    assert document["bytes_in"] == size
    assert document["bytes_out"] == sum(
        file.stat().st_size for file in (tmp_path / "out").glob("*.tfrecord")
    )
    assert document["is_new"] is True
    assert run("pack", images, tmp_path / "out", "--json").document == {
        **document,
        "is_new": False,
    }


def test_the_same_again_is_nothing_to_do(run, images: Path, packed: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in packed.iterdir() if file.is_file()}
    outcome = run("pack", images, packed, "--splits", "train=0.7,validation=0.3", "--shards", "2")
    assert outcome.code == 0
    assert outcome.out.startswith("nothing to do")
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_another_dataset_is_replaced_only_with_overwrite(run, images: Path, packed: Path) -> None:
    outcome = run("pack", images, packed)
    assert outcome.code == 2
    assert str(packed) in outcome.err
    assert rs.verify(packed).record_count == 9
    assert run("pack", images, packed, "--overwrite").code == 0
    assert sorted(file.name for file in packed.glob("*.tfrecord")) == [
        "train-00000-of-00001.tfrecord"
    ]


def test_unreadable_images_fail_or_are_skipped(run, images: Path, tmp_path: Path) -> None:
    for name in ("cat/1.jpg", "dog/2.png"):
        whole = (images / name).read_bytes()
        (images / name).write_bytes(whole[: len(whole) // 2])
    outcome = run("pack", images, tmp_path / "out")
    assert outcome.code == 1
    assert "cat/1.jpg" in outcome.err
    assert "dog/2.png" in outcome.err
    assert not list((tmp_path / "out").glob("*"))
    outcome = run("pack", images, tmp_path / "out", "--skip-errors")
    assert outcome.code == 0
    assert "packed 7 images" in outcome.out
    assert "cat/1.jpg" in outcome.out
    assert "dog/2.png" in outcome.out
    outcome = run("pack", images, tmp_path / "quiet", "--skip-errors", "--quiet")
    assert (outcome.code, outcome.out) == (0, "")
    assert "cat/1.jpg" in outcome.err
    assert "dog/2.png" in outcome.err


def test_tiles(run, images: Path, tmp_path: Path) -> None:
    Image.effect_noise((320, 200), 99).save(images / "cat" / "large.jpg")
    refused = run("pack", images, tmp_path / "out", "--tiles", "--shrink")
    assert refused.code == 2
    assert "--baseline" in refused.err
    outcome = run("pack", images, tmp_path / "out", "--tiles")
    assert outcome.code == 0
    assert re.search(r"^1 JPEG was divided into tiles losslessly$", outcome.out, re.MULTILINE)
    assert read_manifest(tmp_path / "out").provenance["options"]["image_options"] == {"tiles": True}


def test_the_output_cannot_be_the_source(run, images: Path) -> None:
    for out, text in (
        (images, ""),
        (images / "cat" / "out", str(images)),
    ):
        outcome = run("pack", images, out)
        assert outcome.code == 2
        assert str(out) in outcome.err
        assert text in outcome.err
    assert sorted(file.name for file in images.iterdir()) == ["cat", "dog"]


# -- sources, images, keys --------------------------------------------------------------


def test_the_detected_source_is_printed(run, images: Path, tmp_path: Path) -> None:
    outcome = run("pack", images, tmp_path / "out")
    assert outcome.err.startswith("Detected: ")
    assert outcome.err.splitlines()[0].endswith(": 9 images")
    assert outcome.err.splitlines()[1] == "--format folder"
    outcome = run("pack", images, tmp_path / "files", "--format", "files")
    assert outcome.err == ""
    assert rs.open(tmp_path / "files").class_names is None
    assert run("pack", images, tmp_path / "json", "--json").document["format"] == "folder"


def test_the_printed_options_read_the_same(run, tmp_path: Path) -> None:
    from ..sources.drawn_folders import write

    files = {"my images/{0-5}.jpg": "photo", "drawn/{0-5}_L.png": "numbers"}
    folder = write(tmp_path / "x", files)
    document = run("detect", folder, "--json").document
    assert document["count"] == 6
    printed = run("detect", folder).out.splitlines()
    assert printed[0].endswith(": 6 pairs")
    assert run("pack", folder, tmp_path / "one").code == 0
    typed = shlex.split(printed[1])
    assert typed[:2] == ["--format", "pairs"]
    assert run("pack", folder, tmp_path / "two", *typed).code == 0
    assert run("detect", folder, *typed).out.splitlines()[1] == printed[1]
    rs.pack(str(folder), tmp_path / "three")
    for name in (path.name for path in (tmp_path / "one").iterdir() if path.is_file()):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "three" / name).read_bytes()
    one, two = (
        [example["image/encoded"] for example in rs.open(tmp_path / name)]
        for name in ("one", "two")
    )
    assert one == two


def test_detect_names_all_readings(run, tmp_path: Path) -> None:
    from ..sources.drawn_folders import write

    folder = write(tmp_path / "x", {"images/{1-5}.jpg": "photo", "thumbs/{1-5}.jpg": "photo"})
    for command in (("detect", folder), ("pack", folder, tmp_path / "out")):
        outcome = run(*command)
        assert outcome.code == 1
        lines = outcome.err.splitlines()[1:]
        assert sorted(line.partition(": ")[2] for line in lines) == [
            "--format files --images images",
            "--format folder",
        ]
    chosen = run("detect", folder, "--format", "files", "--images", "images")
    assert chosen.out.splitlines()[1].strip() == "--format files --images images"
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(folder, tmp_path / "out")
    assert len(caught.value.problems) == 2


def test_plan_on_many_machines(run, images: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.jsonl", tmp_path / "out"
    outcome = run("pack", images, out, "--shards", "3", "--seed", "4", "--write-plan", plan)
    assert outcome.code == 0
    assert "3 shards planned" in outcome.out
    assert not out.exists()
    outcome = run("run", plan, "--only", "0,2-2")
    assert outcome.code == 0
    assert outcome.out.startswith("train-00000-of-00003.tfrecord: 3 records")
    assert run("inspect", out).code != 0
    shards = run("run", plan, "--only", "1", "--json").document["shards"]
    assert [shard["file"] for shard in shards] == ["train-00001-of-00003.tfrecord"]
    assert [shard["is_new"] for shard in shards] == [True]
    again = ("run", plan, "--only", "1")
    assert "already complete" in run(*again).out
    assert [shard["is_new"] for shard in run(*again, "--json").document["shards"]] == [False]
    results = tmp_path / "results.jsonl"
    assert run("run", plan, "--results", results).code == 0
    assert "--only must be " in run("run", plan, "--only", "1-x").err
    outcome = run("finish", plan, results)
    assert outcome.code == 0, outcome.err
    assert run("verify", out).code == 0
    outcome = run("pack", images, tmp_path / "plain", "--shards", "3", "--seed", "4")
    assert "resumed" not in outcome.out
    for path in (tmp_path / "plain").glob("[!.]*"):
        assert path.read_bytes() == (out / path.name).read_bytes()


@pytest.mark.parametrize("bad_count", [MAX_PROBLEMS, MAX_PROBLEMS + 10])
def test_the_first_of_many_problems_are_listed(
    run, images: Path, tmp_path: Path, bad_count: int
) -> None:
    for number in range(bad_count):
        (images / "cat" / f"bad{number:03d}.jpg").write_bytes(b"x")
    outcome = run("pack", images, tmp_path / "out")
    assert outcome.code == 1
    lines = outcome.err.splitlines()
    assert f"{bad_count} of {bad_count + 9} samples" in lines[2]
    listed = [line.partition(":")[0].strip() for line in lines[3 : 3 + MAX_PROBLEMS]]
    assert listed == [f"{images}/cat/bad{number:03d}.jpg" for number in range(MAX_PROBLEMS)]
    assert len(lines) == 3 + MAX_PROBLEMS + (bad_count > MAX_PROBLEMS)
    outcome = run("pack", images, tmp_path / "out", "--json")
    assert outcome.code == 1
    assert len(outcome.document["problems"]) == MAX_PROBLEMS
    assert outcome.document["problem_count"] == bad_count
    assert outcome.document["error"] == "SourceError"
    assert outcome.document["message"].splitlines()[0] in outcome.err
    assert not (tmp_path / "out").exists()


def test_options_that_messages_mention_exist(run) -> None:
    import re

    known = set(re.findall(r"--[a-z][a-z-]*", "".join(
        run(command, "--help").out for command in COMMANDS
    )))  # fmt: skip
    library = "".join(path.read_text("utf-8") for path in Path(rs.__file__).parent.rglob("*.py"))
    mentioned = re.findall(r"\boption\(['\"](\w+)['\"]", library)
    flags = {wording.option_in_shell(name, None) for name in mentioned}
    assert {flag for flag in flags if flag.startswith("--")} <= known | _ONLY_IN_PYTHON


def test_many_notes_are_counted(
    run, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.writing.building.shards.MAX_PLACES", 4)
    for file in (images / "cat").iterdir():
        Image.open(file).convert("RGBA").save(file, "PNG")
    command = ("pack", images, tmp_path / "out", "--store", "jpeg")
    printed = run(*command).out
    assert re.search(r"^9 images were encoded as JPEG\n5 opaque .*:$", printed, re.MULTILINE)
    assert re.search(r"… and 2 more .*first 4 ", printed)
    document = run("pack", images, tmp_path / "json", *command[3:], "--json").document
    assert [len(note["places"]) for note in document["notes"].values()] == [4, 4]


@pytest.mark.parametrize("option", [(), ("--check-images",)])
def test_the_summary_names_what_was_checked(run, tmp_path: Path, option: tuple[str, ...]) -> None:
    (tmp_path / "images" / "roses").mkdir(parents=True)
    Image.new("RGB", (9, 7)).save(tmp_path / "images" / "roses" / "a.png")
    outcome = run("pack", tmp_path / "images", tmp_path / "out", *option)
    assert ("was decoded" in outcome.out) == bool(option)
    assert ("--check-images" in outcome.out) == (not option)
    outcome = run("pack", tmp_path / "images", tmp_path / "other", "--json", *option)
    assert outcome.document["images_are_checked"] == bool(option)
