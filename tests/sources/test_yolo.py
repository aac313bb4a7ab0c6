"""YOLO in both of its layouts and in none; its small files; invalid labels."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.sources import Source, Yolo
from recordsmith.sources.boxes.yolo_files import read_data_file
from recordsmith.stores import as_location

from ..raising import places, raises
from ..reading import read_sample
from .annotated import boxes_of, image, problems_of, read, write
from .source_contract import SourceContract, left_out

ONE = "0 0.5 0.5 0.5 0.25"
BOX = (0.375, 0.25, 0.625, 0.75)  # of ONE: ymin, xmin, ymax, xmax
YAML = "train: images/train\nval: images/val\nnames: [cat, Dog]\n"


def _ultralytics(root: Path, yaml: str = YAML) -> Path:
    write(root / "data.yaml", yaml)
    for name, labels in {"train/a": ONE, "train/b": "", "val/c": f"{ONE}\n1 1 1 0 0\n"}.items():
        image(root / "images" / f"{name}.jpg")
        write(root / "labels" / f"{name}.txt", labels)
    write(root / "labels" / "val" / "c.txt", f"{ONE}\n1 0.5 0.5 1 1\n")
    image(root / "images" / "val" / "bare.png")
    return root


def _darknet(root: Path, folder: str = "data") -> Path:
    data = root / folder
    lines = f"classes = 2\ntrain = {folder}/train.txt\nvalid = {folder}/test.txt\n"
    write(data / "obj.data", f"{lines}names = {folder}/obj.names\nbackup = backup/\n")
    write(data / "obj.names", "cat\nDog\n")
    for name in "abcd":
        image(data / "img" / f"{name}.jpg")
        write(data / "img" / f"{name}.txt", f"{ONE}\n")
    write(data / "train.txt", f"{folder}/img/a.jpg\n\n{folder}/img/b.jpg\n")
    write(data / "test.txt", f"{folder}/img/c.jpg\n{folder}/img/d.jpg\n")
    return root


class TestContract(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Yolo(_darknet(folder))


class TestContractOfUltralytics(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Yolo(_ultralytics(folder))


def _names(source: Source) -> dict[str, str | None]:
    """Name -> split."""
    return {sample.name: sample.split for sample in source.list_samples().samples}


def test_features(tmp_path: Path) -> None:
    source = Yolo(_ultralytics(tmp_path))
    listing = source.list_samples()
    assert listing.class_names == (None, "cat", "Dog")
    assert listing.splits == ("train", "val")
    (notice,) = listing.notices
    assert notice.endswith("without boxes: images/val/bare.png")
    assert _names(source) == {
        "images/train/a.jpg": "train",
        "images/train/b.jpg": "train",
        "images/val/bare.png": "val",
        "images/val/c.jpg": "val",
    }
    features, notes = read(source, 3)
    assert notes == []
    assert boxes_of(features) == [BOX, (0, 0, 1, 1)]
    del features["image/encoded"]
    assert {key: value for key, value in features.items() if "bbox" not in key} == {
        "image/format": "jpeg",
        "image/height": 20,
        "image/width": 40,
        "image/filename": b"images/val/c.jpg",
        "image/source_id": b"c.jpg",
        "image/object/class/label": [1, 2],
        "image/object/class/text": [b"cat", b"Dog"],
    }
    assert boxes_of(read(source, 1)[0]) == boxes_of(read(source, 2)[0]) == []


# -- layouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("yaml", "noted"),
    [
        ("path: .\ntrain: images/train\nval: images/val\nnames: [cat, Dog]", 0),
        ("path: ../datasets/mine\ntrain: images/train\nval: images/val\nnames: [cat, Dog]", 0),
        ("train: ../train/images\nval: ./images/val\ntest:\nnames: [cat, Dog]", 1),
        ("train: /content/x/images/train\nval: images/val/\nnames: [cat, Dog]", 1),
        (r"train: C:\x\images\train" + "\nval: images/val\nnames: [cat, Dog]", 1),
        ("train: [images/train]\nval:\n  - images/val\nnames: [cat, Dog]", 0),
        ("train: train.txt\nval: val.txt\nnames: [cat, Dog]", 0),
        ("train: images/train\nval: images/val\ntest: images/test\nnames: [cat, Dog]", 1),
    ],
)
def test_folders_and_lists_of_data_yaml(tmp_path: Path, yaml: str, noted: int) -> None:
    _ultralytics(tmp_path, yaml)
    image(tmp_path / "train" / "images" / "other.jpg")
    if "train/images" not in yaml:
        (tmp_path / "train" / "images" / "other.jpg").unlink()
    write(tmp_path / "train.txt", "./images/train/a.jpg\nimages/train/b.jpg\n")
    write(tmp_path / "val.txt", "/home/me/images/val/c.jpg\n./images/val/bare.png\n")
    source = Yolo(tmp_path)
    listing = source.list_samples()
    notices = [notice for notice in listing.notices if notice.startswith("data.yaml: ")]
    assert len(notices) == noted
    names = _names(source)
    if "train/images" in yaml:
        assert names.pop("train/images/other.jpg") == "train"
    else:
        assert names.pop("images/train/a.jpg") == names.pop("images/train/b.jpg") == "train"
    assert names == {"images/val/c.jpg": "val", "images/val/bare.png": "val"}
    is_foreign = "val.txt" in yaml and listing.samples[2].name.endswith("c.jpg")
    assert ["last part" in what for what, _ in read(source, 2)[1]] == [True] * is_foreign


@pytest.mark.parametrize("folder", ["data", "x64/Release/data"])
def test_darknet(tmp_path: Path, folder: str) -> None:
    """Paths in it begin where the program is started, wherever that is above."""
    root = _darknet(tmp_path, "data")
    if folder != "data":
        (tmp_path / "x64/Release").mkdir(parents=True)
        (tmp_path / "data").rename(tmp_path / folder)
    source = Yolo(root)
    listing = source.list_samples()
    assert listing.splits == ("train", "valid")
    assert listing.class_names == (None, "cat", "Dog")
    assert listing.notices == ()
    splits = ("train", "train", "valid", "valid")
    assert _names(source) == {
        f"{folder}/img/{name}.jpg": split for name, split in zip("abcd", splits, strict=True)
    }
    for number in range(4):
        features, notes = read(source, number)
        assert (boxes_of(features), notes) == ([BOX], [])


def test_a_repeated_list_is_not_a_split(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    path = root / "data" / "obj.data"
    path.write_text(path.read_text().replace("test.txt", "train.txt"))
    listing = Yolo(root).list_samples()
    assert listing.splits == ()
    assert len(listing.samples) == 2
    assert listing.notices[0].startswith("data/obj.data: valid skipped")
    paths = {path for names in left_out(listing).values() for path in names}
    assert {"data/img/c.jpg", "data/img/d.jpg"} <= paths


def test_many_paths_of_a_split(tmp_path: Path) -> None:
    paths = ["images/train", "./images/train", "a/" * 30_000 + "images/train", "images/tra"]
    root = _ultralytics(tmp_path, f"train: [{', '.join(paths * 2)}]\nnames: [cat, Dog]\n")
    listing = Yolo(root).list_samples()
    assert [sample.name for sample in listing.samples] == [
        "images/train/a.jpg",
        "images/train/b.jpg",
    ]
    assert sum("not found" in notice for notice in listing.notices) == 2  # each path once


def test_list_that_names_missing_images(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    write(root / "data" / "train.txt", "data/img/a.jpg\n\ndata/img/gone.jpg\n../../../etc/passwd\n")
    source = Yolo(root)
    names = list(_names(source))
    for line in (3, 4):
        sample = source.list_samples().samples[names.index(f"data/train.txt/{line}")]
        with raises(rs.SourceError, path="data/train.txt", line=line, match="not found"):
            read_sample(source, sample)


@pytest.mark.parametrize(
    ("names", "images", "labels"),
    [
        ("classes.txt", "", ""),
        ("classes.txt", "images", "labels"),
        ("labels/classes.txt", "images", "labels"),
        ("data/obj.names", "img", "img"),
        ("_darknet.labels", "img", "labels"),
    ],
)
def test_without_a_description(tmp_path: Path, names: str, images: str, labels: str) -> None:
    write(tmp_path / names, "cat\nDog\n")
    for name in "ab":
        image(tmp_path / images / f"{name}.jpg")
        write(tmp_path / labels / f"{name}.txt", ONE)
    source = Yolo(tmp_path)
    assert source.list_samples().class_names == (None, "cat", "Dog")
    assert source.list_samples().notices == ()
    assert [boxes_of(read(source, number)[0]) for number in range(2)] == [[BOX], [BOX]]


def test_splits_with_other_names_of_classes(tmp_path: Path) -> None:
    for name, kind in (("train/a", "cat"), ("valid/b", "Dog")):
        image(tmp_path / f"{name}.jpg")
        write(tmp_path / f"{name}.txt", ONE)
        write((tmp_path / name).with_name("_darknet.labels"), kind)
    with raises(rs.SourceError, path=tmp_path, match="train/_darknet"):
        Yolo(tmp_path).list_samples()


def test_nothing_there(tmp_path: Path) -> None:
    image(tmp_path / "a.jpg")
    with pytest.raises(rs.SourceError, match=r"found a\.jpg;") as caught:
        Yolo(tmp_path).list_samples()
    assert caught.value.path == str(tmp_path)
    write(tmp_path / "classes.txt", "cat")
    with raises(rs.SourceError, path=tmp_path, match=r"a\.jpg and classes\.txt"):
        Yolo(tmp_path).list_samples()
    write(tmp_path / "one.yaml", YAML)
    write(tmp_path / "two.yml", YAML)
    with raises(rs.SourceError, path=tmp_path, match=r"one\.yaml and two\.yml"):
        Yolo(tmp_path).list_samples()


def test_missing_names_file(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    (root / "data" / "obj.names").unlink()
    with pytest.raises(rs.SourceError, match=r"'data/obj\.names' not found") as caught:
        Yolo(root).list_samples()
    assert caught.value.path == "data/obj.data"


# -- labels --------------------------------------------------------------------------------------


def test_wrong_labels_are_listed_with_their_lines(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    lines = [
        "",
        "2 0.5 0.5 0.5 0.5",
        "-1 0.5 0.5 0.5 0.5",
        "cat 0.5 0.5 0.5 0.5",
        "0 0.5 0.5 0.5",
        "0 0.5 0.5 0.5 0.5 0.9",
        "0 0.9 0.5 0.5 0.5",
        "0 0.5 0.5 0 0.5",
        "0 0.5 x 0.5 0.5",
        ONE,
    ]
    write(root / "data" / "img" / "a.txt", "\r\n".join(lines))
    place = "data/img/a.txt, line"
    expected = [
        ("2", "'2'"),
        ("3", "'-1'"),
        ("4", "'cat'"),
        ("5", "3 numbers"),
        ("6", "5 numbers"),
        ("7 (cat)", "xmax 1.15"),
        ("8 (cat)", "xmin and xmax"),
        ("9 (cat)", "ymin, ymax"),
    ]
    problems = problems_of(Yolo(root))
    assert places(problems) == [f"{place} {line}" for line, _ in expected]
    for problem, (_, words) in zip(problems, expected, strict=True):
        assert words in problem
    features, notes = read(Yolo(root, boxes="drop"))
    assert (boxes_of(features), len(notes)) == ([BOX], 8)
    features, notes = read(Yolo(root, boxes="clip"))
    assert (boxes_of(features), len(notes)) == ([(0.25, 0.65, 0.75, 1), BOX], 8)


def test_polygons_become_boxes(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    write(root / "data" / "img" / "a.txt", f"1 0.5 0.1 0.9 0.5 0.5 0.9 0.2 0.4\n{ONE}")
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [(0.1, 0.2, 0.9, 0.9), BOX]
    assert features["image/object/class/label"] == [2, 1]
    ((what, where),) = notes
    assert what.startswith("polygons")
    assert where == "data/img/a.txt, line 1 (Dog)"


def test_keypoints_are_left_out(tmp_path: Path) -> None:
    root = _ultralytics(tmp_path, f"{YAML}kpt_shape: [2, 3]\n")
    write(root / "labels" / "train" / "a.txt", f"{ONE} 0.1 0.1 2 0.2 0.2 2\n")
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [BOX]
    assert "keypoints" in notes[0][0]


def test_orientation(tmp_path: Path) -> None:
    """Ultralytics trains on the upright image, Darknet on the stored one."""
    corner = "0 0.125 0.125 0.25 0.25"
    root = _ultralytics(tmp_path / "u")
    image(root / "images/train/a.jpg", orientation=6)
    write(root / "labels/train/a.txt", corner)
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [(0.75, 0, 1, 0.25)]
    assert "rotated" in notes[0][0]
    root = _darknet(tmp_path / "d")
    image(root / "data/img/a.jpg", orientation=6)
    write(root / "data/img/a.txt", corner)
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [(0, 0, 0.25, 0.25)]
    assert "drawn on" in notes[0][0]


# -- the small files -----------------------------------------------------------------------------

NAMES = {
    "[a, 'b c', 0]": ["a", "b c", "0"],
    "\n- yes\n- '01'\n- c d  # words\n": ["yes", "01", "c d"],
    "\n  0: a\n  1: 'b'\n  3: \"it's\"\n": {0: "a", 1: "b", 3: "it's"},
    "{0: child's toy, 1: x:y}": {0: "child's toy", 1: "x:y"},
    "&a [x]\nother: *a": ["x"],
    "[]": [],
}


@pytest.mark.parametrize("text", NAMES)
def test_names_in_data_yaml(tmp_path: Path, text: str) -> None:
    around = "download: |\n  y = [\nroboflow:\n  a: !!python/name:os.system {b: c}\n"
    path = write(tmp_path / "d.yaml", f'{around}train: x\nval:\nnames: {text}\n"nc": 2 # two\n')
    data = read_data_file(as_location(path), "d.yaml")
    assert data is not None
    expected = NAMES[text]
    assert data.names == (expected if isinstance(expected, dict) else dict(enumerate(expected)))
    assert data.splits == {"train": ["x"]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("names: cat\ntrain: x", 1),
        ("train: x\nnames: [a, b", 2),
        ("train: x\nnames: [a, [b]]", 2),
        *((f"train: x\nnames:\n  {n}: a\n", 3) for n in ("9" * 5000, "1000001", "-1", "x", "²")),
        ("train: x\nnames:\n  0: a\n  0: b\n", 4),
        ("train: x\nnames:\n  0: a\n  1:\n", 4),
        ("train: x\nnames:\n  0: [a]\n", 3),
        ("train: {0: x}\nnames: [a]", 1),
        ("names: [a]\ntrain: x\nnames: [b]", 3),
        ("train: x\nnames: &a [b, *a]", 2),
        ("train: x\nnames: " + "[" * 100_000, None),
        ("train: x\nnames: [a]\nx: " + "y" * (1 << 18), None),
    ],
)
def test_invalid_yaml(tmp_path: Path, text: str, line: int | None) -> None:
    path = write(tmp_path / "d.yaml", text)
    with pytest.raises(rs.SourceError, match=r"d.yaml") as caught:
        read_data_file(as_location(path), "d.yaml")
    assert (caught.value.path, caught.value.line) == ("d.yaml", line)


@pytest.mark.parametrize("name", [r"a\nb", r"a\rb", r"\ud800"])
def test_names_that_cannot_be_class_names(tmp_path: Path, name: str) -> None:
    root = _ultralytics(tmp_path / "in", YAML.replace("Dog", f'"{name}"'))
    with pytest.raises(rs.SourceError, match="class"):
        rs.pack(Yolo(root), tmp_path / "out", skip_errors=True)


def test_files_of_another_type(tmp_path: Path) -> None:
    path = str(write(tmp_path / "x", "a: b\nnames: [x]\n"))
    assert read_data_file(as_location(path), "x.yaml") is None
    assert read_data_file(as_location(path), "x.data") is None
    for text in (
        '"\nnames: a\ntrain: b\n"',
        '- a: "\nnames: x\ntrain: y"',
        'a: "\nnames: b\ntrain: c"',
    ):
        assert read_data_file(as_location(write(tmp_path / "y", text)), "y.yaml") is None
    write(tmp_path / "x", "names = x.names\n")
    with raises(rs.SourceError, path="x.data", match=r"train = train\.txt"):
        read_data_file(as_location(path), "x.data")


# -- one file of several, and files that lead to nothing -------------------------------------------


def test_the_description_may_be_named(tmp_path: Path) -> None:
    root = _ultralytics(tmp_path / "d")
    write(root / "other.yaml", "train: images/val\nnames: [x, y]\n")
    with raises(rs.SourceError, path=tmp_path / "d", match=r"Pass .*data\.yaml"):
        Yolo(root).list_samples()
    source = Yolo(root / "data.yaml")
    assert str(source.root) == str(root)
    assert _names(source)["images/train/a.jpg"] == "train"
    assert _names(Yolo(root / "other.yaml")) == {
        "images/val/bare.png": None,
        "images/val/c.jpg": None,
    }
    assert source.describe() != Yolo(root / "other.yaml").describe()
    darknet = _darknet(tmp_path / "darknet")
    assert len(_names(Yolo(darknet / "data" / "obj.data"))) == 4
    names = darknet / "data" / "obj.names"
    with raises(rs.OptionError, value=names, expected="the folder of the dataset"):
        Yolo(names).list_samples()


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("train: images/nope\nnames: [x]\n", "images/nope not found"),
        ("train: labels\nnames: [x]\n", "contain no images"),
        ("names: [x]\n", "top-level keys"),
        (" train: images\n names: [x]\n", "top-level keys"),
    ],
)
def test_a_description_without_images(tmp_path: Path, yaml: str, words: str) -> None:
    with pytest.raises(rs.SourceError, match=words) as caught:
        Yolo(_ultralytics(tmp_path, yaml)).list_samples()
    assert caught.value.path == "data.yaml"


def test_no_classes_means_no_objects(tmp_path: Path) -> None:
    root = _ultralytics(tmp_path, "train: images/train\nnames: {}\n")
    write(root / "labels" / "train" / "a.txt", "")
    listing = Yolo(root).list_samples()
    assert [sample.name for sample in listing.samples] == [
        "images/train/a.jpg",
        "images/train/b.jpg",
    ]
    assert listing.class_names == ()
    write(root / "labels" / "train" / "a.txt", ONE)
    source = Yolo(root)
    with pytest.raises(rs.SourceError, match="no class"):
        read_sample(source, source.list_samples().samples[0])


def test_an_image_in_two_splits_stays_in_the_first(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    write(root / "data" / "test.txt", "data/img/a.jpg\ndata/img/c.jpg\ndata/img/c.jpg\n")
    source = Yolo(root)
    assert _names(source)["data/img/a.jpg"] == "train"
    notice = source.list_samples().notices[0]
    assert notice.startswith("2 repeated")
    assert re.search(r"img/a\.jpg in .*train.* valid", notice)
    assert re.search(r"img/c\.jpg twice .*valid", notice)
