"""What a reading leaves behind stops `pack`, unless it is usual or accepted by name."""

from __future__ import annotations

import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.sources.files import account
from recordsmith.writing import PackPlan

from ..raising import raises
from .drawn_folders import write
from .source_contract import left_out

SPLITS = {f"{split}/{name}/{{01-10}}.jpg": "photo" for split in ("train", "val") for name in "ab"}
PAIRS = {"images/{01-10}.jpg": "photo", "masks/{01-10}.png": "numbers"}
PHOTOS = {"photos/img_{01-10}.jpg": "photo"}
VOC = (
    "<annotation><filename>01.jpg</filename><size><width>32</width><height>24</height></size>"
    "<object><name>cat</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>9</ymax>"
    "</bndbox></object></annotation>"
)


def _names(number: int) -> str:
    return "".join(f"img_{n:02}.jpg 1\n" for n in range(1, number + 1))


# files -> reason, what is named in the problem, the paths to accept, samples
GUARD: dict[str, tuple[dict[str, str], str, list[str], list[str], int]] = {
    "class folder": (
        SPLITS | {"more/A/{1-2}.jpg": "photo"},
        "outside what is read", ["2 labelled images", "more/A/"], ["more/A"], 40),
    "split with class folders": (
        SPLITS | {"holdout/a/1.jpg": "photo", "holdout/b/1.jpg": "photo"},
        "outside what is read", ["2 labelled images", "holdout/a/"], ["holdout/a", "holdout/b"],
        40),
    "masks": (
        PAIRS | {"test/masks/{1-2}.png": "numbers"},
        "a split without labels", ["2 labelled images", "test/masks/"], ["test/masks"], 10),
    "more than a tenth": (
        {"images/{01-10}.jpg": "photo", "masks/{01-08}.png": "numbers"},
        "without an annotation", ["2 images", "images/09.jpg"],
        ["images/09.jpg", "images/10.jpg"], 8),
    "a list of half of the images": (
        PHOTOS | {"notes/names.txt": _names(5)},
        "names of images that are not read", ["1 file", "notes/names.txt"], ["notes"], 10),
    "a list in the root": (
        PHOTOS | {"names.txt": _names(10)},
        "names of images that are not read", ["1 file", "names.txt"], ["names.txt"], 10),
    "a table of half of the images": (
        PHOTOS | {"facts.json": json.dumps({f"img_{n:02}.jpg": n for n in range(1, 6)})},
        "names of images that are not read", ["1 file", "facts.json"], ["facts.json"], 10),
    "annotations of one image, of an unknown format": (
        PHOTOS | {"x.json": json.dumps([{"url": "img_01.jpg", "annotations": [{"cls": "cat"}]}])},
        "names of images that are not read", ["1 file", "x.json"], ["x.json"], 10),
    "annotations of a known format": (
        PAIRS | {"xmls/01.xml": VOC},
        "annotations that are not read", ["1 annotation file", "xmls/01.xml"], ["xmls"], 10),
    "a large list, several lines for each image": (
        {f"{name}/img_{name}{{01-30}}.jpg": "photo" for name in "ab"} | {"notes.txt": "".join(
            f"img_{name}{n:02}.jpg {'words ' * 6}\n" * 100 for name in "ab" for n in range(1, 31))},
        "names of images that are not read", ["1 file", "notes.txt"], ["notes.txt"], 60),
    "a text for each image": (
        {f"pics/{name}/{name}{{1-5}}.jpg": "photo" for name in "ab"}
        | {f"notes/{name}{{1-5}}.gt.txt": "abc" for name in "ab"},
        "not images", ["10 data files", "notes/a1.gt.txt"], ["notes"], 10),
    "a file without a suffix for each image": (
        {f"pics/{name}/{name}{{1-5}}.jpg": "photo" for name in "ab"}
        | {f"notes/{name}/{name}{{1-5}}": "<annotation/>" for name in "ab"},
        "not images", ["10 data files", "notes/a/a1"], ["notes/a", "notes/b"], 10),
}  # fmt: skip


@pytest.mark.parametrize("case", GUARD)
def test_what_may_be_needed_stops_until_it_is_accepted(tmp_path: Path, case: str) -> None:
    files, reason, words, paths, count = GUARD[case]
    root = write(tmp_path / "in", files)
    document = rs.detect(root).to_json()
    assert (document["count"], len(document["stops"])) == (count, 1)
    assert reason in left_out(rs.detect(root).source.list_samples())
    for make in (rs.pack, rs.plan):
        with raises(rs.SourceError) as caught:
            make(root, tmp_path / "out")
        assert list(caught.value.problems) == document["stops"]
        assert all(word in caught.value.problems[0] for word in words)
        assert all(f"leave_out={path!r}" in caught.value.remedy for path in paths)
    assert not [*(tmp_path / "out").glob("*.tfrecord")]
    accepted = rs.detect(root, leave_out=paths)
    assert accepted.to_json()["stops"] == []
    report = rs.pack(accepted.source, tmp_path / "out")
    assert report.sample_count == count
    (requested,) = left_out(accepted.source.list_samples()).values()
    assert all(name.startswith(tuple(paths)) for name in requested)
    assert {name for path in paths for name in requested if name.startswith(path)} == {*requested}
    (line,) = report.account["left_out"]
    assert (line["left_out"], line["files"]) == ("left out as asked", len(requested))


# what lies next to images without labels
UNREAD: dict[str, dict[str, str]] = {
    "a text for each image": {"photos/img_{01-10}.gt.txt": "abc"},
    "a text with a prefix": {"gt/gt_img_{01-10}.txt": "1,2,3,4,abc"},
    "landmarks": {"photos/img_{01-10}.pts": "version: 1"},
    "a matrix": {"labels.mat": "MATLAB 5.0"},
    "a pickle": {"labels.pkl": "x"},
    "ids that are no names": {"labels.csv": "id,label\n1,0\n2,1\n"},
    "a list of few images": {"best.txt": _names(4)},
}


@pytest.mark.parametrize("case", UNREAD)
def test_nothing_unread_lies_next_to_images_without_labels(tmp_path: Path, case: str) -> None:
    root = write(tmp_path / "in", PHOTOS | UNREAD[case])
    others = sorted(
        os.path.relpath(path, root) for path in root.rglob("*") if path.suffix not in ("", ".jpg")
    )
    with raises(rs.SourceError) as caught:
        rs.pack(root, tmp_path / "out")
    assert others[0] in caught.value.problems[0]
    assert "format='files'" in caught.value.remedy
    for accept in ({"format": "files"}, {"leave_out": others}):
        detection = rs.detect(root, **accept)
        assert detection.to_json()["stops"] == []
        report = rs.pack(detection.source, tmp_path / f"{[*accept]}")
        assert report.sample_count == 10
        (line,) = report.account["left_out"]
        assert line["files"] == len(others)


KNOWN: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "images of a test": (
        SPLITS | {"test/{1-5}.jpg": "photo"},
        {"a split without labels": [f"test/{n}.jpg" for n in range(1, 6)]}),
    "images to predict": (
        SPLITS | {"seg_pred/seg_pred/{1-5}.jpg": "photo"},
        {"a split without labels": [f"seg_pred/seg_pred/{n}.jpg" for n in range(1, 6)]}),
    "a stray image": (SPLITS | {"preview.png": "photo"}, {"outside what is read": ["preview.png"]}),
    "a stray image in a split": (
        SPLITS | {"train/preview.png": "photo"}, {"outside what is read": ["train/preview.png"]}),
    "documents": (
        SPLITS | dict.fromkeys(("README.md", "LICENSE", "run.py", "a.ipynb"), "x"),
        {"documentation or programs": ["LICENSE", "README.md", "a.ipynb", "run.py"]}),
    "figures": (SPLITS | {"docs/fig.png": "photo"}, {"outside what is read": ["docs/fig.png"]}),
    "what systems leave": (
        SPLITS | dict.fromkeys(
            ("train/a/.DS_Store", "Thumbs.db", "@eaDir/01.jpg", "__MACOSX/train/._01.jpg",
             ".ipynb_checkpoints/01.jpg", "train/a/._01.jpg"), "x"),
        {"hidden": [".ipynb_checkpoints", "@eaDir", "Thumbs.db", "__MACOSX", "train/a/.DS_Store",
                    "train/a/._01.jpg"]}),
    "a sample submission": (
        SPLITS | {"sample_submission.csv": "id,label\n01,0\n02,0\n"},
        {"a sample submission": ["sample_submission.csv"]}),
    "another sample submission": (
        SPLITS | {"sample_submit.csv": "01.jpg,0\n02.jpg,0\n"},
        {"a sample submission": ["sample_submit.csv"]}),
    "names of classes": (SPLITS | {"classes.txt": "a\nb\n"}, {"not images": ["classes.txt"]}),
    "one image without a mask": (
        {"images/{01-10}.jpg": "photo", "masks/{01-09}.png": "numbers"},
        {"without an annotation": ["images/10.jpg"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", KNOWN)
def test_what_is_usual_is_a_notice(tmp_path: Path, case: str) -> None:
    files, expected = KNOWN[case]
    root = write(tmp_path / "in", files)
    report = rs.pack(root, tmp_path / "out")
    found = {line["left_out"]: line["first"] for line in report.account["left_out"]}
    assert found.keys() == expected.keys()
    assert left_out(rs.detect(root).source.list_samples()) == {
        reason: sorted(names) for reason, names in expected.items()
    }
    assert len(report.notices) == len(expected)
    assert rs.detect(root).to_json()["stops"] == []


# -- leave_out -------------------------------------------------------------------------------------

C = [f"c/{number:02}.jpg" for number in range(1, 11)]


@pytest.mark.parametrize(
    ("patterns", "requested", "count"),
    [
        ("c", C, 20),
        (["c/"], C, 20),
        (["c", "b/0[1-3].jpg"], ["b/01.jpg", "b/02.jpg", "b/03.jpg", *C], 17),
        (["01.jpg"], ["a/01.jpg", "b/01.jpg", "c/01.jpg"], 27),
        (["*/1*.jpg"], ["a/10.jpg", "b/10.jpg", "c/10.jpg"], 27),
        (["c", "c/01.jpg"], C, 20),
        (["./c"], C, 20),
        (["{root}/c/"], C, 20),
    ],
)
def test_paths_are_left_out_by_name(
    tmp_path: Path, patterns: str | list[str], requested: list[str], count: int
) -> None:
    root = write(tmp_path / "in", {f"{name}/{{01-10}}.jpg": "photo" for name in "abc"})
    if not isinstance(patterns, str):
        patterns = [pattern.replace("{root}", str(root)) for pattern in patterns]
    listing = rs.detect(root, leave_out=patterns).source.list_samples()
    assert len(listing.samples) == count
    assert left_out(listing) == {"left out as asked": requested}
    assert not {sample.name for sample in listing.samples} & {*requested}


GOOD = "file,kind,part\n1.png,a,x\n2.png,b,y\n3,a,x\n"
ROWS = {"images/{1-3}.png": "photo", "good.csv": GOOD, "README.md": "x"}
OF_SPLITS = {
    f"{split}/{name}": content
    for split in ("train", "valid")
    for name, content in (("1.png", "photo"), ("_classes.csv", "filename,a,b\n1.png,1,0\n"))
}

# files, options, what is left out -> rows, classes, splits, notices
OF_TABLES: dict[str, tuple[Any, ...]] = {
    "one of two tables": (
        ROWS | {"old.csv": GOOD.replace(",b,", ",c,")}, {"label_column": "kind"}, ["old.csv"],
        [("good.csv", 0, "a"), ("good.csv", 1, "b"), ("good.csv", 2, "a")], ("a", "b"), (),
        ["1 document skipped: README.md", "1 file left out: old.csv"]),
    "the table of a split": (
        {"images/{1-3}.png": "photo", "train.csv": "file,kind\n1.png,a\n2.png,b\n",
         "test.csv": "file,kind\n3.png,a\n"},
        {"label_column": "kind"}, ["images/3.png", "test.csv"],
        [("train.csv", 0, "a"), ("train.csv", 1, "b")], ("a", "b"), (),
        ["2 files left out: test.csv and images/3.png"]),
    "the folder of a split": (
        OF_SPLITS, {}, ["valid"], [("train/_classes.csv", 0, None)], ("a", "b"), (),
        ["2 files left out: valid/1.png and valid/_classes.csv"]),
    "the table in a folder of a split": (
        OF_SPLITS, {}, ["valid/_classes.csv"], [("train/_classes.csv", 0, None)], ("a", "b"), (),
        ["1 image skipped (a split without labels): valid/1.png",
         "1 file left out: valid/_classes.csv"]),
    "a folder of images that is a split": (
        {f"{split}/1.png": "photo" for split in ("train", "val", "test")}
        | {"good.csv": "file\ntrain/1.png\nval/1.png\ntest/1.png\n"},
        {"image_column": "file"}, ["val"],
        [("good.csv", 0, None), ("good.csv", 2, None)], None, ("train", "test"),
        ["splits from the folders of the images: train and test", "1 row skipped: image left out",
         "1 file left out: val/1.png"]),
    "images, with their class and split": (
        ROWS, {"label_column": "kind", "split_column": "part"}, ["2.png"],
        [("good.csv", 0, "a"), ("good.csv", 2, "a")], ("a",), ("x",),
        ["1 row skipped: image left out", "1 document skipped: README.md",
         "1 file left out: images/2.png"]),
    "a folder of images": (
        ROWS | {"good.csv": "file,kind\nold/1.png,a\nimages/1.png,b\nimages/2,b\n",
                "old/1.png": "photo"},
        {"image_column": "file", "label_column": "kind"}, ["old", "images/3*"],
        [("good.csv", 1, "b"), ("good.csv", 2, "b")], ("b",), (),
        ["1 row skipped: image left out", "1 document skipped: README.md",
         "2 files left out: old/1.png and images/3.png"]),
    "one of two images with a name": (
        {"images/a/1.png": "photo", "images/b/{1-2}.png": "photo",
         "good.csv": "file\n1.png\n2.png\n"},
        {"image_column": "file", "images": "images"}, ["a"],
        [("good.csv", 0, None), ("good.csv", 1, None)], None, (),
        ["1 file left out: images/a/1.png"]),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_TABLES)
def test_rows_are_left_out_with_their_table_or_their_image(tmp_path: Path, case: str) -> None:
    files, options, patterns, rows, classes, splits, notices = OF_TABLES[case]
    detection = rs.detect(write(tmp_path / "in", files), "table", leave_out=patterns, **options)
    for _ in range(2):  # the second listing scans the folder again
        listing = detection.source.list_samples()
        references = [sample.reference for sample in listing.samples]
        names = [None if s.label is None else classes[s.label] for s in listing.samples]
        assert [
            (reference["file"], reference["row"], name)
            for reference, name in zip(references, names, strict=True)
        ] == rows
        assert (listing.class_names, listing.splits) == (classes, splits)
        assert [*map(str, listing.notices)] == notices
    report = rs.pack(detection.source, tmp_path / "out")
    assert report.sample_count == len(rows)


@pytest.mark.parametrize(
    ("patterns", "options", "error"),
    [
        (["good.csv", "data"], {}, rs.SourceError),
        (["good.csv"], {"table": "good.csv"}, rs.OptionError),
        (["*.png"], {"image_column": "file", "images": "images"}, rs.SourceError),
        (["images"], {"image_column": "file", "images": "images"}, rs.SourceError),
    ],
)
def test_nothing_of_a_table_is_left(
    tmp_path: Path, patterns: list[str], options: dict[str, Any], error: type[Exception]
) -> None:
    root = write(tmp_path / "in", ROWS | {"data/more.csv": GOOD})
    source = rs.detect(root, "table", leave_out=patterns, **options).source
    with pytest.raises(error, match="leave_out") as caught:
        source.list_samples()
    assert "cannot leave out" not in str(caught.value)  # that is of formats that read all files


def test_archives_arrays_and_lists_are_left_out_or_an_error_says_why_not(tmp_path: Path) -> None:
    tar, arrays, shards = (tmp_path / name for name in ("tar", "arrays", "shards"))
    for folder in (tar, arrays, shards):
        folder.mkdir()
    for split in ("train", "test"):
        with tarfile.open(tar / f"{split}-0.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo(f"{split}.txt"))
        np.save(arrays / f"x_{split}.npy", np.zeros((3, 4, 4), np.uint8))
        with rs.ShardWriter(shards / f"{split}.tfrecord") as writer:
            writer.write_example({"x": 1})
    voc = {"JPEGImages/{1-3}.jpg": "photo", "SegmentationClass/{1-3}.png": "voc"}
    lists = "ImageSets/Segmentation"
    write(tmp_path / "voc", voc | {f"{lists}/train.txt": "1\n", f"{lists}/val.txt": "2\n3\n"})
    for name, pattern, count in (
        ("tar", "test-0.tar", 1), ("arrays", "*_test.npy", 3), ("voc", "val.txt", 1)
    ):  # fmt: skip
        source = rs.detect(tmp_path / name, leave_out=pattern).source
        assert len(source.list_samples().samples) == count
    source = rs.detect(shards, leave_out="test.tfrecord").source
    with raises(rs.SourceError, match="test.tfrecord"):
        source.list_samples()
    with raises(rs.OptionError, option="leave_out", value="x"):
        rs.detect(shards / "test.tfrecord", leave_out="x")


def test_advice_names_files_where_images_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also below more folders than a line of the account has."""
    monkeypatch.setattr(account, "_KEPT_FOLDERS", 1)
    names = "".join(f"{n:02}.jpg 1\n" for n in range(1, 11))
    root = write(tmp_path / "in", SPLITS | {f"{s}/part-{s}.txt": names for s in ("train", "val")})
    with raises(rs.SourceError) as caught:
        rs.pack(root, tmp_path / "out")
    assert re.findall("leave_out='(.*?)'", caught.value.remedy) == [
        "train/part-train.txt", "val/part-val.txt"
    ]  # fmt: skip
    assert "splits='@splits.csv'" in caught.value.remedy


@pytest.mark.parametrize("name", ["nothing", "C", "c/11.jpg", "/elsewhere/c", "../in/c"])
def test_a_path_to_leave_out_that_is_not_there(tmp_path: Path, name: str) -> None:
    root = write(tmp_path / "in", {f"{name}/{{1-3}}.jpg": "photo" for name in "abc"})
    with raises(rs.OptionError, option="leave_out", value=name):
        rs.detect(root, leave_out=["a", name])


def test_what_is_left_out_is_kept_in_the_plan_and_the_manifest(tmp_path: Path) -> None:
    root = write(tmp_path / "in", {f"{name}/{{1-3}}.jpg": "photo" for name in "abc"})
    detection = rs.detect(root, leave_out=["c", "a/1.jpg"])
    report = rs.pack(detection.source, tmp_path / "packed")
    rs.plan(detection.source, tmp_path / "planned").save(tmp_path / "plan.jsonl")
    plan = PackPlan.load(str(tmp_path / "plan.jsonl"))
    finished = rs.finish(plan, map(rs.run, plan.tasks()))
    typed = ["pack", str(root), str(tmp_path / "typed"), "--leave-out", "c", "--leave-out"]
    assert CliRunner().invoke(app, [*typed, "a/1.jpg"]).exit_code == 0
    assert plan.job.source["leave_out"] == ["c", "a/1.jpg"]
    manifests: list[dict[str, Any]] = [
        json.loads((tmp_path / folder / "dataset.json").read_text())
        for folder in ("packed", "planned", "typed")
    ]
    for manifest in manifests:
        assert manifest["provenance"]["source"]["leave_out"] == ["c", "a/1.jpg"]
        assert manifest["provenance"]["account"] == report.account == finished.account
        assert manifest["provenance"]["fingerprint"] == manifests[0]["provenance"]["fingerprint"]
        assert manifest["splits"] == manifests[0]["splits"]
    account = detection.to_json()["account"]
    assert report.account == account
    assert [sorted(line["first"]) for line in account["left_out"]] == [
        ["a/1.jpg", "c/1.jpg", "c/2.jpg", "c/3.jpg"]
    ]
    assert (account["files"], report.sample_count) == (9, 5)
    assert rs.pack(detection.source, tmp_path / "packed").is_new is False
    with raises(rs.OptionError):  # another selection is another job
        rs.pack(root, tmp_path / "packed")


@pytest.mark.posix
@pytest.mark.parametrize("format", ["folder", "shards"])
def test_pipes_are_not_opened(tmp_path: Path, format: str) -> None:
    root = write(tmp_path, SPLITS if format == "folder" else {"train/notes.md": "x"})
    if format == "shards":
        with rs.ShardWriter(root / "a.tfrecord") as writer:
            writer.write_example({"x": 1})
        (root / "train" / "notes.md").unlink()
    names = ["train/p.txt", "pipe.csv", "pipe.json"]
    for name in names:
        os.mkfifo(root / name)
    detection = rs.detect(root)
    assert detection.reading.format == format
    (line,) = detection.source.list_samples().account.left_out
    assert (sorted(line.names), line.noun) == (sorted(names), "special file")
