from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

import recordsmith as rs
from recordsmith import cli
from recordsmith.cli import wording


def test_summary_says_what_was_done(run, pictures: Path, tmp_path: Path) -> None:
    (pictures / "cat" / ".hidden.jpg").write_bytes(b"x")
    outcome = run("pack", pictures, tmp_path / "out", "--split", "train=0.7,validation=0.3")
    assert outcome.code == 0
    assert "9 pictures of 2 classes into 2 shards" in outcome.out
    assert "train: 6 records" in outcome.out
    assert "validation: 3 records" in outcome.out
    assert ".hidden.jpg" in outcome.out
    assert rs.verify(tmp_path / "out").record_count == 9


def test_json_has_the_same_numbers(run, pictures: Path, tmp_path: Path) -> None:
    document = run("pack", pictures, tmp_path / "out", "--json").document
    size = sum(file.stat().st_size for file in pictures.rglob("*.*"))
    assert document["samples"] == 9
    assert document["classes"] == 2
    assert document["splits"] == {"train": 9}
    assert document["bytes_in"] == size
    assert document["bytes_out"] == sum(
        file.stat().st_size for file in (tmp_path / "out").glob("*.tfrecord")
    )
    assert document["is_new"] is True
    assert run("pack", pictures, tmp_path / "out", "--json").document == {
        **document,
        "is_new": False,
    }


def test_the_same_again_is_nothing_to_do(run, pictures: Path, packed: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in packed.iterdir()}
    outcome = run("pack", pictures, packed, "--split", "train=0.7,validation=0.3", "--shards", "2")
    assert outcome.code == 0
    assert outcome.out.startswith("nothing to do")
    assert {file: file.stat().st_mtime_ns for file in packed.iterdir()} == before


def test_another_dataset_is_replaced_only_on_demand(run, pictures: Path, packed: Path) -> None:
    outcome = run("pack", pictures, packed)
    assert outcome.code == 2
    assert "--overwrite" in outcome.err
    assert rs.verify(packed).record_count == 9
    assert run("pack", pictures, packed, "--overwrite").code == 0
    assert sorted(file.name for file in packed.glob("*.tfrecord")) == [
        "train-00000-of-00001.tfrecord"
    ]


def test_unreadable_pictures_stop_it_or_are_skipped(run, pictures: Path, tmp_path: Path) -> None:
    for name in ("cat/1.jpg", "dog/2.png"):
        whole = (pictures / name).read_bytes()
        (pictures / name).write_bytes(whole[: len(whole) // 2])
    outcome = run("pack", pictures, tmp_path / "out")
    assert outcome.code == 1
    assert "cat/1.jpg" in outcome.err
    assert "dog/2.png" in outcome.err
    assert not list((tmp_path / "out").glob("*"))
    outcome = run("pack", pictures, tmp_path / "out", "--skip-errors")
    assert outcome.code == 0
    assert "packed 7 pictures" in outcome.out
    assert "cat/1.jpg" in outcome.out
    assert "dog/2.png" in outcome.out


def test_options_reach_the_job(run, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(
        *("pack", pictures, out, "--split", "a=50%,b=50%", "--shards", "a=2,b=1", "--stratify"),
        *("--seed", 7, "--compression", "gzip", "--threads", 1),
    )
    api = tmp_path / "api"
    rs.pack(
        rs.ImageFolder(pictures),
        api,
        splits={"a": 0.5, "b": 0.5},
        shards={"a": 2, "b": 1},
        stratify=True,
        seed=7,
        compression="gzip",
    )
    names = sorted(file.name for file in api.iterdir())
    assert names == sorted(file.name for file in out.iterdir())
    for name in names:
        if not (api / name).is_dir():
            assert (api / name).read_bytes() == (out / name).read_bytes()


def test_a_dataset_is_not_packed_into_its_pictures(run, pictures: Path) -> None:
    for out, where in (
        (pictures, "is the folder that is packed; "),
        (pictures / "cat" / "out", f"lies in {pictures}, which is packed; "),
    ):
        outcome = run("pack", pictures, out)
        assert outcome.code == 2
        assert f"{out} {where}" in outcome.err
    assert sorted(file.name for file in pictures.iterdir()) == ["cat", "dog"]


def test_urls_are_not_taken_for_folders(run, pictures: Path) -> None:
    for arguments in (("pack", pictures, "gs://bucket/out"), ("inspect", "https://host/x")):
        outcome = run(*arguments)
        assert outcome.code == 2
        assert "is a URL" in outcome.err
    assert not Path("gs:").exists()


def test_shard_size(run, pictures: Path, tmp_path: Path) -> None:
    run("pack", pictures, tmp_path / "out", "--shard-size", "1kB")
    size = sum(file.stat().st_size for file in pictures.rglob("*.*"))
    assert len(list((tmp_path / "out").glob("*.tfrecord"))) == -(-size // 1000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--split", "train=0.7"], "add up to 0.7"),
        (["--split", "train"], "train=0.7,validation=0.3"),
        (["--split", "train=x"], "train=0.7,validation=0.3"),
        (["--split", "a=0.5,a=0.5"], "'a' twice"),
        (["--split", "../x=1"], "file name"),
        (["--shards", "two"], "--shards is 'two'"),
        (["--shards", "0"], "1 or more"),
        (["--shards", "100"], "at most 9"),
        (["--shard-size", "large"], "256MB"),
        (["--shard-size", "1MB", "--shards", "2"], "give --shards or --shard-size, not both"),
        (["--compression", "zip"], "gzip"),
        (["--threads", "0"], "--threads"),
    ],
)
def test_a_wrong_option_is_explained(
    run, pictures: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    outcome = run("pack", pictures, tmp_path / "out", *options)
    assert outcome.code == 2
    assert said in outcome.err
    assert not (tmp_path / "out").exists()


def test_alpha_is_dropped_on_request_only(run, pictures: Path, tmp_path: Path) -> None:
    picture = Image.new("RGBA", (16, 16), (200, 100, 50, 0))
    picture.save(pictures / "dog" / "seen through.png")
    refused = run("pack", pictures, tmp_path / "out", "--store", "jpeg")
    assert refused.code == 1
    assert "dog/seen through.png" in refused.err
    assert "--drop-alpha" in refused.err
    outcome = run("pack", pictures, tmp_path / "out", "--store", "jpeg", "--drop-alpha")
    assert outcome.code == 0
    assert "the alpha of a picture was left out" in outcome.out
    (encoded,) = (
        example["image/encoded"][0]
        for example in rs.open(tmp_path / "out")
        if example["image/filename"] == [b"dog/seen through.png"]
    )
    with Image.open(io.BytesIO(encoded)) as stored:
        assert stored.getpixel((8, 8)) == pytest.approx((200, 100, 50), abs=3)


def test_wrong_nesting_says_what_was_found(run, pictures: Path, tmp_path: Path) -> None:
    outcome = run("pack", pictures / "cat", tmp_path / "out", "--as", "folder")
    assert outcome.code == 1
    assert "found pictures in" in outcome.err
    assert "<class>/<picture>" in outcome.err


# -- sources, pictures, keys, plans --------------------------------------------------------------


def test_what_is_recognised_is_said(run, pictures: Path, tmp_path: Path) -> None:
    outcome = run("pack", pictures, tmp_path / "out")
    assert f"{pictures} is packed as folder: folders of classes" in outcome.err
    outcome = run("pack", pictures, tmp_path / "files", "--as", "files")
    assert "is packed as" not in outcome.err
    assert rs.open(tmp_path / "files").class_names is None
    assert run("pack", pictures, tmp_path / "json", "--json").document["kind"] == "folder"


def test_tables_have_rows(run, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,age,part\nAda,36,train\nBob,41,test\n")
    outcome = run(
        "pack", tmp_path / "people.csv", tmp_path / "out", "--split-column", "part", "--in-order"
    )
    assert "packed 2 rows into 2 shards" in outcome.out
    assert rs.open(tmp_path / "out", split="test")[0]["name"] == [b"Bob"]


def test_pictures_are_stored_as_told(run, pictures: Path, tmp_path: Path) -> None:
    outcome = run(
        "pack", pictures, tmp_path / "out", "--store", "jpeg", "--quality", "80", "--recompress",
        "--shorter-side", "4", "--background", "#ffffff",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    columns = rs.open(tmp_path / "out").read_columns(["image/height", "image/width"])
    heights, widths = columns["image/height"].tolist(), columns["image/width"].tolist()
    assert {min(size) for size in zip(heights, widths, strict=True)} == {4}
    assert {bytes(e["image/format"][0]) for e in rs.open(tmp_path / "out")} == {b"jpeg"}


def test_keys_and_shard_names(run, pictures: Path, tmp_path: Path) -> None:
    outcome = run(
        "pack", pictures, tmp_path / "out", "--keys", "image/encoded=picture,image/filename=",
        "--shard-names", "x_{split}_{shard}_{shards}", "--shards", "2",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in (tmp_path / "out").glob("*.tfrecord")) == [
        "x_train_0_2.tfrecord",
        "x_train_1_2.tfrecord",
    ]
    features = rs.open(tmp_path / "out").schema.features
    assert "picture" in features
    assert "image/filename" not in features


def test_plan_on_many_machines(run, pictures: Path, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "out"
    outcome = run("pack", pictures, out, "--shards", "3", "--seed", "4", "--write-plan", plan)
    assert outcome.code == 0
    assert "3 shards planned" in outcome.out
    assert not out.exists()
    outcome = run("pack", pictures, out, "--plan", plan, "--only", "0,2-2")
    assert outcome.code == 0
    assert outcome.out.startswith("train-00000-of-00003.tfrecord: 3 records")
    assert run("inspect", out).code != 0
    shards = run("pack", pictures, out, "--plan", plan, "--only", "1", "--json").document["shards"]
    assert [shard["file"] for shard in shards] == ["train-00001-of-00003.tfrecord"]
    assert [shard["is_new"] for shard in shards] == [True]
    again = ("pack", pictures, out, "--plan", plan, "--only", "1")
    assert "complete from before" in run(*again).out
    assert [shard["is_new"] for shard in run(*again, "--json").document["shards"]] == [False]
    outcome = run("pack", pictures, out, "--plan", plan)
    assert outcome.code == 0
    assert "3 shards complete from before, checked and kept; 0 written now" in outcome.out
    assert run("verify", out).code == 0
    outcome = run("pack", pictures, tmp_path / "plain", "--shards", "3", "--seed", "4")
    assert "from before" not in outcome.out
    for path in (tmp_path / "plain").glob("[!.]*"):
        assert path.read_bytes() == (out / path.name).read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--as", "folders"], "did you mean folder"),
        (["--boxes", "clip"], "boxes is an option of voc and coco and yolo"),
        (["--store", "gif"], "--store is 'gif'"),
        (["--background", "red"], "expected white, black or #rrggbb"),
        (["--keys", "a=b,c"], "expected a preset, or new names"),
        (["--keys", "none"], "expected one of slim"),
        (["--only", "1"], "name that with --plan"),
        (["--shard-names", "x"], "several shards one name"),
    ],
)
def test_options_that_are_wrong(
    run, pictures: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    outcome = run("pack", pictures, tmp_path / "out", "--shards", "2", *options)
    assert outcome.code == 2
    assert words in outcome.err
    assert not (tmp_path / "out").exists()


def test_plan_and_options_contradict(run, pictures: Path, tmp_path: Path) -> None:
    run("pack", pictures, tmp_path / "out", "--write-plan", tmp_path / "plan.json")
    outcome = run(
        "pack", pictures, tmp_path / "out", "--plan", tmp_path / "plan.json", "--seed", "3"
    )
    assert outcome.code == 2
    assert "seed is decided by the plan already" in outcome.err
    outcome = run(
        "pack", pictures, tmp_path / "out", "--plan", tmp_path / "plan.json", "--only", "1-x"
    )
    assert "expected numbers such as" in outcome.err


def test_very_many_problems_are_listed_by_json_only(run, pictures: Path, tmp_path: Path) -> None:
    for number in range(30):
        (pictures / "cat" / f"bad\n{number:02d}.jpg").write_bytes(b"x")
    outcome = run("pack", pictures, tmp_path / "out")
    assert outcome.code == 1
    lines = outcome.err.splitlines()
    assert "30 of 39 samples cannot be read" in lines[1]
    assert len(lines) == 1 + 1 + 20 + 1  # what was recognised, the sentence, some, how many more
    assert "bad\\n" in lines[2]
    assert lines[-1] == "  … and 10 more (all of them with --json)"
    outcome = run("pack", pictures, tmp_path / "out", "--json")
    assert outcome.code == 1
    assert len(outcome.document["problems"]) == 30
    assert outcome.document["error"] in outcome.err
    assert not (tmp_path / "out").exists()


def test_pictures_of_a_table_may_lie_elsewhere(run, pictures: Path, tmp_path: Path) -> None:
    table = tmp_path / "tables" / "rows.csv"
    table.parent.mkdir()
    table.write_bytes("file;name\ncat/0.jpg;Mäxchen\n".encode("cp1252"))
    options = ("--picture-column", "file", "--encoding", "cp1252")
    assert run("pack", table, tmp_path / "out", *options).code == 1
    outcome = run("pack", table, tmp_path / "out", *options, "--pictures", pictures)
    assert outcome.code == 0
    assert rs.open(tmp_path / "out")[0]["image/filename"] == [b"cat/0.jpg"]
    assert rs.open(tmp_path / "out")[0]["name"] == ["Mäxchen".encode()]
    outcome = run("pack", table, tmp_path / "o", "--pictures", pictures)
    assert outcome.code == 2
    assert "--picture-column" in outcome.err


def test_pixels_have_a_cap(run, pictures: Path, tmp_path: Path) -> None:
    outcome = run("pack", pictures, tmp_path / "out", "--store", "raw", "--max-pixels", "1300")
    assert outcome.code == 1
    assert "more than the 1,300 that are decoded at most" in outcome.err
    assert "allow more of them with --max-pixels" in outcome.err


def test_options_that_messages_name_exist(run) -> None:
    """Whatever a message tells to do can be done."""
    import re

    known = set(re.findall(r"--[a-z][a-z-]*", "".join(
        run(command.__name__, "--help").out
        for commands in cli._COMMANDS.values() for command in commands
    )))  # fmt: skip
    subjects = (*wording._NAMED_ALIKE, *wording._NAMED_OTHERWISE)
    assert {*map(wording._option, subjects)} <= known
    assert set(re.findall(r"--[a-z][a-z-]*", " ".join(wording._OPTIONS.values()))) <= known
    library = "".join(path.read_text() for path in Path(rs.__file__).parent.rglob("*/*.py"))
    library = re.sub(r'"\s*f?"', "", library)  # a message in lines
    assert {argument for argument in wording._OPTIONS if library.count(argument) < 2} == set()
    assert re.findall(r"(?<!var)\(--[a-z][a-z-]*", library) == []  # from Python there are none


def test_writing_a_plan_and_working_by_one_are_two_things(
    run, pictures: Path, tmp_path: Path
) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "out"
    outcome = run("pack", pictures, out, "--write-plan", plan)
    assert outcome.code == 0
    assert "is packed as folder" in outcome.err
    for options in (("--plan", plan), ("--only", "0")):
        outcome = run("pack", pictures, out, "--write-plan", tmp_path / "other.json", *options)
        assert outcome.code == 2
        assert "--write-plan makes a plan" in outcome.err
    assert not (tmp_path / "other.json").exists()
    plan.write_text("[" * 100_000)
    outcome = run("pack", pictures, out, "--plan", plan)
    assert outcome.code == 2
    assert "is no plan that this version of recordsmith can read" in outcome.err
    assert "--write-plan FILE" in outcome.err


def test_of_many_notes_it_is_said_how_many_are_kept(
    run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.building.finished.MOST_PLACES", 4)
    said = run("pack", pictures, tmp_path / "out", "--store", "png").out
    assert "(5 times):" in said
    assert "… and 2 more (the first 4 with --json)" in said
    said = run("pack", pictures, tmp_path / "json", "--store", "png", "--json").document
    assert [len(note["places"]) for note in said["notes"].values() if note["count"] == 5] == [4]
