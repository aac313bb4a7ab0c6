"""What a folder contains decides which source reads it, and with which options."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources.boxes.source import BoxOptions
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS, OPTIONS, SourceOptions
from recordsmith.stores import as_folder
from recordsmith.support.errors import with_options

from ..places import new_place
from ..raising import raises
from .drawn_folders import write
from .source_contract import left_out

# -- images and masks: files -> images, masks, other options, pairs, splits ------------------------

PAIRS: dict[str, tuple[dict[str, str], str, str, dict[str, str], int, list[str]]] = {
    "U-Net": ({"image/{0-5}.png": "gray", "label/{0-5}.png": "white"},
        "image", "label", {}, 6, []),
    "gray as RGB": ({"a/{0-5}.jpg": "photo", "b/{0-5}.png": "rgb"},
        "a", "b", {"colours": "grey"}, 6, []),
    "depth as well": (
        {"rgb/{0-5}.jpg": "photo", "depth/{0-5}.png": "depth", "semantic/{0-5}.png": "numbers"},
        "rgb", "semantic", {}, 6, []),
    "scenes": (
        {f"{scene}/{f}/{{0-5}}.png": kind for scene in ("s1", "s2")
         for f, kind in (("rgb", "photo"), ("seg", "numbers"))},
        "*/rgb", "*/seg", {}, 12, []),
    "masks in the folder of images": ({"{0-5}.jpg": "photo", "masks/{0-5}.png": "numbers"},
        ".", "masks", {}, 6, []),
    "starts of names": ({"img_{0-5}.png": "photo", "mask_{0-5}.png": "numbers"},
        ".", ".", {"image_names": "img_*", "mask_names": "mask_*"}, 6, []),
}  # fmt: skip


@pytest.mark.parametrize("layout", PAIRS)
def test_images_and_masks(tmp_path: Path, layout: str) -> None:
    files, images, masks, options, count, splits = PAIRS[layout]
    document = rs.detect(write(tmp_path / "x", files)).to_json()
    assert document["format"] == "pairs"
    assert document["options"] == {"images": images, "masks": masks, **options}
    assert (document["count"], document["splits"]) == (count, splits)
    assert document["noun"] == "pairs"


# -- several readings ------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, str], list[dict[str, str]]]] = {
    "two folders of masks": (
        {"x/{0-5}.jpg": "photo", "y/{0-5}.png": "numbers", "z/{0-5}.png": "numbers"},
        [{"format": "pairs", "images": "x", "masks": "y"},
         {"format": "pairs", "images": "x", "masks": "z"}]),
    "thumbnails": ({"images/{1-5}.jpg": "photo", "thumbs/{1-5}.jpg": "photo"},
        [{"format": "files", "images": "images"}, {"format": "folder"}]),
    "class folders next to other images": (
        {"one/a/{1-2}.jpg": "photo", "one/b/{1-2}.jpg": "photo", "two/{1-2}.jpg": "photo"},
        [{"format": "files"}, {"format": "folder", "images": "one"}]),
    "classes in classes": (
        {"animals/cats/{1-5}.jpg": "photo", "plants/roses/{1-5}.jpg": "photo",
         "plants/lilies/{1-5}.jpg": "photo"},
        [{"format": "files", "class_pattern": "^([^/]+)/"},
         {"format": "files", "class_pattern": "^(?:[^/]+/)*([^/]+)/[^/]+$"}]),
}  # fmt: skip


@pytest.mark.parametrize("layout", REFUSED)
def test_several_readings_are_named_with_their_options(tmp_path: Path, layout: str) -> None:
    files, ways = REFUSED[layout]
    root = write(tmp_path / "x", files)
    detection = rs.detect(root)
    with raises(rs.SourceError, path=root) as caught:
        _ = detection.reading
    assert len(caught.value.problems) == len(ways)
    strongest = [r for r in detection.readings if r.confidence == detection.readings[0].confidence]
    found = [{"format": reading.format, **reading.options} for reading in strongest]
    assert sorted(found, key=str) == sorted(ways, key=str)
    for way in ways:  # the options choose this reading
        made = rs.detect(root, **way).reading
        assert (made.format, *made.options.values()) == tuple(way.values())


# -- folders of others: files -> format, count, splits, whether `pack` stops ----------------------

_CLASSES = {f"{s}/{c}/{{1-5}}.jpg": "photo" for s in ("train", "val") for c in "ab"}
_LIST = "".join(f"{number}\t0\tpics/{number}.jpg\n" for number in range(9))

FOLDERS: dict[str, tuple[dict[str, str], str, int, list[str], bool]] = {
    "splits and more images": (
        {"train/{1-9}.png": "photo", "test/{1-5}.png": "photo", "extra/{1-12}.png": "photo"},
        "files", 14, ["train", "test"], True),
    "splits with other years": (
        {f"VOC_{s}/{{1-3}}.jpg": "photo" for s in ("train2014", "val2014", "test2015")},
        "files", 9, ["train", "val", "test"], False),
    "a class with an umlaut": (
        {f"{s}/{c}/{{0-4}}.jpg": "photo" for s in ("train", "test") for c in ("Öl", "Wasser")},
        "folder", 20, ["train", "test"], False),
    "a split and a class in each name": (
        {f"{s}_{c}/{{1-4}}.jpg": "photo" for s in ("train", "test") for c in ("cats", "dogs")},
        "folder", 16, ["train", "test"], False),
    "a list of any suffix": (
        {"pics/{0-8}.jpg": "photo", "train.lst": _LIST}, "files", 9, [], True),
    "masks next to images": (
        {"{01-10}.jpg": "photo", "{01-10}.png": "numbers"}, "pairs", 10, [], False),
    "masks next to images, in folders": (
        {f"{name}/Imgs/{name}{{01-10}}.{suffix}": content for name in "ab"
         for suffix, content in (("jpg", "photo"), ("png", "numbers"))}
        | {"figure.jpg": "photo", "figure.png": "photo"}, "pairs", 21, [], False),
    "a list of what folders show": (
        {"train/{10000-10003}.jpg": "photo", "val/{20000-20003}.jpg": "photo",
         "train.txt": "".join(f"train/{n}.jpg\n" for n in range(10000, 10004))},
        "files", 8, ["train", "val"], False),
}  # fmt: skip


@pytest.mark.parametrize("layout", FOLDERS)
def test_folders_of_others(tmp_path: Path, layout: str) -> None:
    files, kind, count, splits, stops = FOLDERS[layout]
    document = rs.detect(write(tmp_path / "x", files)).to_json()
    assert (document["format"], document["count"], document["splits"]) == (kind, count, splits)
    assert bool(document["stops"]) == stops


def test_an_image_next_to_folders_of_classes(tmp_path: Path) -> None:
    """It does not take the classes away, and is left out with a notice."""
    files = {f"{name}/Imgs/{{1-5}}.jpg": "photo" for name in "ab"} | {"logo.jpg": "photo"}
    listing = rs.detect(write(tmp_path, files)).source.list_samples()
    assert (listing.class_names, len(listing.samples)) == (("a", "b"), 10)
    assert left_out(listing) == {"outside what is read": ["logo.jpg"]}


@pytest.mark.parametrize("splits", [[""], ["train/", "val/"]])
def test_class_folders_of_images_with_masks(tmp_path: Path, splits: list[str]) -> None:
    """Their classes are not read, and a hint has the option that reads them."""
    ends = {"jpg": "photo", "png": "numbers"}
    files = {f"{s}{name}/{{1-5}}.{end}": ends[end] for s in splits for name in "ab" for end in ends}
    reading = rs.detect(write(tmp_path, files)).reading
    pattern = "^[^/]+/([^/]+)/" if len(splits) > 1 else "^([^/]+)/"
    assert reading.format == "pairs"
    assert f"class_pattern={pattern!r}" in with_options(reading.hints["class_pattern"])
    listing = rs.detect(tmp_path, class_pattern=pattern).source.list_samples()
    assert (listing.class_names, len(listing.samples)) == (("a", "b"), 10 * len(splits))


@pytest.mark.parametrize(
    ("files", "number"), [({"1.jpg": "photo"}, 1), ({"{1-5}.jpg": "photo"}, 5),
    ({"{1-4}.jpg": "photo", "a/{1-4}.jpg": "photo", "b/{1-4}.jpg": "photo"}, 4)],
)  # fmt: skip
def test_images_without_a_class_that_are_not_few(
    tmp_path: Path, files: dict[str, str], number: int
) -> None:
    root = write(tmp_path, files)
    with raises(rs.SourceError, match=f"^.*: {number} of [0-9]+ images have no class"):
        rs.ImageFiles(root, class_pattern="^([a-z]+)/").list_samples()


ASKED: dict[str, tuple[dict[str, str], list[dict[str, str]]]] = {
    "several loose images in splits": (
        _CLASSES | {"train/preview{1-2}.png": "photo", "val/preview{1-2}.png": "photo"},
        [{"format": "folder"}, {"format": "files"}]),
    "the same photos of two formats": (
        {"{01-10}.jpg": "photo", "{01-10}.png": "photo"},
        [{"format": "pairs", "images": ".", "masks": ".", "image_names": "*.jpg",
          "mask_names": "*.png"}, {"format": "files"}]),
    "masks of objects": (
        {"shapes/{1-5}.jpg": "photo", "annotations/{1-5}_circle_0.png": "numbers"},
        [{"format": "folder"}, {"format": "files", "images": "shapes"}]),
    "three resolutions": (
        {"HR/{1-5}.png": "photo", "LR/{1-5}.png": "photo", "upsampled/{1-5}.png": "photo"},
        [{"format": "folder"}, {"format": "files"}]),
    "high and low resolution": (
        {"hi/{1-5}.png": "photo", "lo/{1-5}.png": "photo"},
        [{"format": "folder"}, {"format": "files"}]),
    "depth below splits": (
        {f"nyu_{s}/{f}/{{0-5}}.png": k for s in ("train", "test")
         for f, k in (("rgb", "photo"), ("depth", "depth"))},
        [{"format": "pairs", "images": "*/rgb", "masks": "*/depth"}, {"format": "files"},
         {"format": "folder"}]),
    "photos in a folder named like masks": (
        {"bmw/{0-4}.jpg": "photo", "gt/{0-4}.jpg": "photo"},
        [{"format": "pairs", "images": "bmw", "masks": "gt"}, {"format": "folder"},
         {"format": "files", "images": "bmw"}]),
}  # fmt: skip


@pytest.mark.parametrize("layout", ASKED)
def test_folders_of_others_that_are_asked_about(tmp_path: Path, layout: str) -> None:
    files, ways = ASKED[layout]
    root = write(tmp_path / "x", files)
    with raises(rs.SourceError, path=root):
        _ = rs.detect(root).reading
    highest = [each for each in rs.detect(root).readings if each.confidence]
    found = [{"format": each.format, **each.options} for each in highest]
    assert sorted(found, key=str) == sorted(ways, key=str)


PROBLEMS: dict[str, tuple[dict[str, str], str]] = {
    "unknown colours": ({"images/{0-5}.jpg": "photo", "masks/{0-5}.png": "own"}, "colours"),
    "photos": ({"input/{0-5}.jpg": "photo", "target/{0-5}.jpg": "photo"}, "photos"),
}


@pytest.mark.parametrize("layout", PROBLEMS)
def test_masks_that_cannot_be_packed_as_they_are(tmp_path: Path, layout: str) -> None:
    files, words = PROBLEMS[layout]
    root = write(tmp_path / "x", files)
    with raises(rs.SourceError, path=root, match=words):
        _ = rs.detect(root).source


def test_an_option_solves_the_problem(tmp_path: Path) -> None:
    root = write(tmp_path / "x", PROBLEMS["unknown colours"][0])
    table = {(1, 2, 3): 0, (64, 128, 64): 1, (192, 0, 128): 2}
    made = rs.detect(root, colours=table)
    assert made.reading.options == {"images": "images", "masks": "masks", "colours": table}
    assert len(made.source.list_samples().samples) == 6


# -- formats and options ---------------------------------------------------------------------------


def _make(root: Path, names: str) -> Path:
    return write(root, dict.fromkeys(names.split(), ""))


@pytest.mark.parametrize(
    ("names", "format"),
    [
        ("train-00000-of-00001.tfrecord dataset.json labels.txt", "shards"),
        ("train/things.tfrecord valid/things.tfrecord", "shards"),
        ("cats/1.jpg dogs/1.jpg old/things.tfrecord", "folder"),
        ("notes/1.txt", "folder"),
        # the pixels of these cannot be read, so that names of folders decide
        ("train/images/1.jpg train/masks/1.png", "pairs"),
    ],
)
def test_formats_of_folders(tmp_path: Path, names: str, format: str) -> None:
    assert rs.detect(_make(tmp_path, names)).reading.format == format


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("rows.CSV", "table"),
        ("rows.parquet", "table"),
        ("rows.csv.gz", "table"),
        ("x.tar", "webdataset"),
        ("x.tar.gz", "webdataset"),
        ("instances.json", "coco"),
        ("data.yaml", "yolo"),
        ("x.tfrecord", "shards"),
        ("x.tfrecord-00000-of-00001", "shards"),
    ],
)
def test_formats_of_files(tmp_path: Path, name: str, format: str) -> None:
    assert rs.detect(_make(tmp_path, name) / name).reading.format == format


def test_patterns(tmp_path: Path) -> None:
    assert rs.detect(tmp_path / "x-{000..003}.tar").reading.format == "webdataset"
    assert rs.detect(tmp_path / "x-*.tfrecord").reading.format == "shards"


def test_unsupported_file(tmp_path: Path) -> None:
    with raises(rs.SourceError, path=tmp_path / "notes.docx"):
        rs.detect(_make(tmp_path, "notes.docx") / "notes.docx")
    with pytest.raises(FileNotFoundError):
        rs.detect(tmp_path / "missing")


@pytest.mark.parametrize("name", ["a.dcm", "IM0001", "a.nii", "a.nii.gz"])
def test_scans_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"" if "." in name else bytes(128) + b"DICM")
    with raises(rs.SourceError, path=tmp_path / name, match="DICOM or NIfTI"):
        rs.detect(tmp_path)


def test_an_explicit_format_wins(tmp_path: Path) -> None:
    made = rs.detect(_make(tmp_path, "rows.csv cat/1.jpg"), "folder")
    assert isinstance(made.source, rs.ImageFolder)
    assert made.reading.format == "folder"
    root = write(tmp_path / "x", PAIRS["U-Net"][0])
    assert rs.detect(root, "pairs").reading.options == {"images": "image", "masks": "label"}
    assert rs.detect(root, "folder").reading.options == {}


def test_an_option_of_one_reading_selects_it(tmp_path: Path) -> None:
    root = write(tmp_path, {"cats/{0-5}.jpg": "photo", "dogs/{0-5}.jpg": "photo"})
    made = rs.detect(root, class_pattern="^([a-z]+)/").reading
    assert (made.format, made.options) == ("files", {"class_pattern": "^([a-z]+)/"})
    made = rs.detect(root, images="cats", masks="dogs").reading
    assert (made.format, made.options) == ("pairs", {"images": "cats", "masks": "dogs"})


def test_options_of_other_formats_are_refused(tmp_path: Path) -> None:
    with raises(rs.OptionError, option="boxes", value="clip", match="coco, createml, csv-boxes"):
        _ = rs.detect(_make(tmp_path, "cat/1.jpg dog/1.jpg"), boxes="clip").source


def test_unknown_formats(tmp_path: Path) -> None:
    with raises(rs.OptionError, option="format", value="foldr", match="folder"):
        rs.detect(tmp_path, "foldr")


def test_every_format_has_a_source(tmp_path: Path) -> None:
    for name, known in FORMATS.items():
        made = rs.detect(tmp_path, name)
        assert type(made.source) is known


@pytest.mark.parametrize(
    ("files", "families"),
    [
        ("cat/1.jpg dog/1.jpg", "class_folders pairs"),
        ("cat/1.jpg dog/1.jpg notes.md", "archives boxes class_folders pairs tables"),
    ],
)
def test_a_folder_decides_which_modules_are_imported(
    tmp_path: Path, files: str, families: str
) -> None:
    """One with other files than images asks all families, but no format without its suffix."""
    code = (
        "import sys, recordsmith as rs\n"
        "assert rs.detect(sys.argv[1]).source.list_samples().samples\n"
        "names = [name.split('.')[2:] for name in sys.modules if 'recordsmith.sources.' in name]\n"
        "print(*{name[0] for name in names if name[1:] in (['detection'], ['layout'])})\n"
        "assert not [name for name in names if name[:2] == ['boxes', 'formats']], names\n"
        "assert ['archives', 'lerobot'] not in names\n"
    )
    command = [sys.executable, "-c", code, str(_make(tmp_path, files))]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert sorted(run.stdout.split()) == families.split()


def test_the_table_has_the_options_of_each_source() -> None:
    for name, known in FORMATS.items():
        parameters = inspect.signature(known).parameters
        accepted = {*parameters, *(BoxOptions.__annotations__ if "options" in parameters else ())}
        if name in BOX_SUFFIXES and not known.box_format.has_outlines:
            accepted.discard("object_masks")
        if name in BOX_SUFFIXES and not known.box_format.has_attributes:
            accepted.discard("class_from")
        if name == "image-labels":
            accepted -= {"boxes", "drawn"}
        assert OPTIONS[name] == accepted & SourceOptions.__annotations__.keys()


def test_json_is_plain(tmp_path: Path) -> None:
    document: dict[str, Any] = rs.detect(write(tmp_path, PAIRS["U-Net"][0])).to_json()
    assert json.loads(json.dumps(document)) == document
    assert document["alternatives"][0]["format"] == "folder"


# -- large and hostile folders ---------------------------------------------------------------------


def test_large_folders_are_sampled_alike(tmp_path: Path) -> None:
    count = 3000
    for folder, ending in (("a", ".jpg"), ("b", "_mask.png")):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / f"img_{number}{ending}").touch()
    tree = FileTree(as_folder(tmp_path))
    left, right = tree.folders["a"], tree.folders["b"]
    assert left.image_count == right.image_count == count
    assert len(left.names) == len(right.names) == 1000
    assert {n.partition(".")[0] for n in left.names} == {
        n.partition(".")[0].removesuffix("_mask") for n in right.names
    }
    (tmp_path / "b" / "classes.yaml").touch()  # one of another suffix is never left out
    assert "classes.yaml" in FileTree(as_folder(tmp_path)).folders["b"].names


@pytest.mark.posix
@pytest.mark.parametrize("name", ["ü/\N{SNOWMAN}", "a\nb/c\nd", "a b/'c\"", "[x]*?/{1}"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    for number in range(4):
        for folder, kind in (("one", "photo"), ("two", "numbers")):
            write(tmp_path, {f"{folder}/{name.replace('{1}', '(1)')}{number}.png": kind})
    document = rs.detect(tmp_path).to_json()
    assert (document["format"], document["count"]) == ("pairs", 4)


def test_deep_folders() -> None:
    with new_place("memory", Path()) as place:
        (place / "/".join([*["a"] * 1500, "1.jpg"])).put(b"")
        assert rs.detect(place).reading.format == "files"


@pytest.mark.posix
def test_circular_links_end(tmp_path: Path) -> None:
    write(tmp_path, {"cats/{0-5}.jpg": "photo", "dogs/{0-5}.jpg": "photo"})
    (tmp_path / "cats" / "up").symlink_to(tmp_path)
    assert rs.detect(tmp_path).reading.format == "folder"


def test_few_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from recordsmith.stores import Location

    opened = set()
    read = Location.read

    def counted(self: Location, *args: Any) -> bytes:
        opened.add(str(self))
        return read(self, *args)

    monkeypatch.setattr(Location, "read", counted)
    files = {f"c{number}/{{0-9}}.png": "white" for number in range(20)}
    rs.detect(write(tmp_path, files))
    assert len(opened) <= 48


# -- one split -------------------------------------------------------------------------------------


def _class_folders(root: Path) -> Path:
    write(root, {"a/{1-2}.jpg": "photo", "b/{1-2}.jpg": "photo"})
    return root


def _lone_table(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / "test.csv").write_text("a,b\n1,2\n")
    return root


def _lone_mnist(root: Path) -> Path:
    root.mkdir(parents=True)
    header = bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 4])
    (root / "t10k-images-idx3-ubyte").write_bytes(header + bytes(16))
    return root


def _lone_coco(root: Path) -> Path:
    write(root, {"images/{1-2}.jpg": "photo"})
    document = {
        "images": [{"id": 1, "file_name": "1.jpg"}],
        "annotations": [],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (root / "instances_val2017.json").write_text(json.dumps(document))
    return root


@pytest.mark.parametrize(
    ("make", "split"),
    [
        (lambda root: _class_folders(root / "test").parent, "test"),
        (lambda root: _class_folders(root / "val").parent, "val"),
        (lambda root: _class_folders(root / "train").parent, None),
        (lambda root: _class_folders(root / "test"), "test"),
        (_lone_table, "test"),
        (lambda root: _lone_table(root) / "test.csv", "test"),
        (_lone_mnist, "test"),
        (_lone_coco, "val"),
    ],
)
def test_a_source_with_only_one_split_keeps_it(tmp_path: Path, make: Any, split: str) -> None:
    root = make(tmp_path / "x")
    assert rs.detect(root).to_json()["splits"] == ([split] if split else [])
    assert [*rs.pack(root, tmp_path / "out").splits] == [split or "train"]
    shares = {"train": 1.0}
    report = rs.pack(root, tmp_path / "divided", splits=shares)
    assert [*report.splits] == ["train"]
    assert any("divided again" in notice for notice in report.notices) == (split is not None)


def test_a_table_of_missing_images_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"images/{1-4}.jpg": "photo"})
    (tmp_path / "test.csv").write_text("file,label\n1.jpg,a\n2.jpg,a\n3.jpg,b\n4.jpg,b\n")
    (tmp_path / "train.csv").write_text("file,label\n1.jpg,a\n7.jpg,a\n8.jpg,b\n9.jpg,b\n")
    assert [*rs.detect(tmp_path).reading.left_out] == ["train.csv"]


@pytest.mark.parametrize(
    ("column", "values", "is_class"),
    [
        ("target", "0 1 2", True),
        ("y", "a b a", True),
        ("Class", "a b c", True),
        ("y", "0.5 1.5 2", False),
        ("price", "0 1 2", False),
    ],
)
def test_the_class_of_a_plain_table(
    tmp_path: Path, column: str, values: str, is_class: bool
) -> None:
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values.split() * 4))
    (tmp_path / "rows.csv").write_text(f"a,{column}\n{rows}")
    for path in (tmp_path, tmp_path / "rows.csv"):
        reading = rs.detect(path).reading
        assert reading.options == ({"label_column": column} if is_class else {})
        assert (f"classes in column {column}" in reading.describe()) == is_class
    assert rs.detect(tmp_path, label_column="").source.list_samples().class_names is None


# -- several datasets, hints -----------------------------------------------------------------------

COCO = {"images": [{"id": 1, "file_name": "1.jpg"}], "annotations": [], "categories": []}
CLASSES = {"one/a/{1-2}.jpg": "photo", "one/b/{1-2}.jpg": "photo"}


@pytest.mark.parametrize(
    ("files", "datasets"),
    [
        (
            {
                **CLASSES,
                "two/images/{1-2}.jpg": "photo",
                "two/annotations/instances.json": json.dumps(COCO),
                "three/x-00000-of-00001.tfrecord": "",
            },
            ["one", "three", "two"],
        ),
        (
            CLASSES
            | {"two/images/{1-2}.jpg": "photo", "two/data.yaml": "train: images\nnames: [cat]\n"},
            ["one", "two"],
        ),
        ({"one/x.csv": "a,b\n1,2\n", "two/y.csv": "a,b\n1,2\n"}, ["one", "two"]),
        (CLASSES | {"two/x.csv": "a,b\n1,2\n"}, []),
        (
            {f"{name}/images/{{1-2}}.jpg": "photo" for name in ("one", "two")}
            | {f"{name}/masks/{{1-2}}.png": "numbers" for name in ("one", "two")},
            [],
        ),
    ],
)
def test_datasets_in_one_folder(tmp_path: Path, files: dict[str, str], datasets: list[str]) -> None:
    detection = rs.detect(write(tmp_path, files))
    if not datasets:
        assert detection.reading.format
        return
    with raises(rs.SourceError, path=tmp_path, match="datasets") as caught:
        _ = detection.reading
    assert [line.partition(": ")[0] for line in caught.value.problems] == [
        str(tmp_path / name) for name in datasets
    ]
    assert caught.value.remedy.startswith("Point at one of ")
    assert all(str(tmp_path / name) in caught.value.remedy for name in datasets)
    assert rs.detect(tmp_path, format="folder").reading.format == "folder"


def test_arrays_that_are_left_out_are_named(tmp_path: Path) -> None:
    others = {f"other{number}": np.arange(3.0) for number in range(6)}
    np.savez(tmp_path / "a.npz", images=np.zeros((5, 8, 8), np.uint8), **others)
    (notice,) = rs.detect(tmp_path).source.list_samples().notices
    assert all(f"a.npz/{name}" in notice for name in others)
