"""PASCAL VOC in each of its layouts, errors and notices about invalid files, and real datasets."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import recordsmith as rs
from recordsmith.sources import Listing, Source, Voc

from ..raising import places, raises
from ..reading import read_sample
from .annotated import image, problems_of, read, voc, voc_xml, write
from .source_contract import SourceContract, left_out

CAT = ("cat", 4, 5, 10, 10)
DOG = ("Dog", 0, 0, 40, 20)
FOUR = {"a": [CAT], "b": [DOG, CAT], "c": [], "d": [("a b é", 1, 2, 3, 4)]}


class TestContract(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Voc(voc(folder, FOUR))


class TestContractWithListsAndImagesWithoutBoxes(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        base = voc(folder, FOUR)
        image(base / "JPEGImages" / "bare.png")
        write(base / "ImageSets/Main/train.txt", "a\nbare\n")
        write(base / "ImageSets/Main/val.txt", "b\nc\nd\n")
        return Voc(folder)


def _names(listing: Listing) -> list[str]:
    return [sample.name for sample in listing.samples]


def _splits(listing: Listing) -> dict[str, str | None]:
    return {sample.name: sample.split for sample in listing.samples}


# -- what a sample holds -------------------------------------------------------------------------


def test_xml_is_read_once_while_listing(tmp_path: Path) -> None:
    source = Voc(voc(tmp_path, FOUR))
    listing = source.list_samples()
    listed = [listing.reader.read(sample) for sample in listing.samples]
    for path in tmp_path.rglob("*.xml"):
        path.unlink()
    for sample, features in zip(listing.samples, listed, strict=True):
        assert listing.reader.read(sample) == features
    assert [len(features["image/object/class/text"]) for features in listed] == [1, 2, 0, 1]


def test_features(tmp_path: Path) -> None:
    source = Voc(voc(tmp_path, {"a": [DOG, CAT]}))
    listing = source.list_samples()
    assert listing.class_names == (None, "Dog", "cat")
    assert listing.has_label_map
    assert listing.notices == ()
    features, notes = read(source)
    assert notes == []
    assert features == {
        "image/encoded": (tmp_path / "JPEGImages/a.jpg").read_bytes(),
        "image/format": "jpeg",
        "image/height": 20,
        "image/width": 40,
        "image/filename": b"JPEGImages/a.jpg",
        "image/source_id": b"a.jpg",
        "image/object/bbox/ymin": [0, 0.25],
        "image/object/bbox/xmin": [0, 0.1],
        "image/object/bbox/ymax": [1, 0.5],
        "image/object/bbox/xmax": [1, 0.25],
        "image/object/class/label": [1, 2],
        "image/object/class/text": [b"Dog", b"cat"],
        "image/object/difficult": [0, 0],
        "image/object/truncated": [1, 1],
        "image/object/view": [b"Left", b"Left"],
    }
    assert source.describe() == {
        "kind": "Voc",
        "folder": tmp_path.name,
        "label_map": None,
        "boxes": "stop",
    }


@pytest.mark.parametrize(
    "box", ["", "<cx>9</cx>", "<cx>9</cx><cy>9</cy><w>4</w><h>4</h><angle>inf</angle>"]
)
def test_wrong_rotated_boxes(tmp_path: Path, box: str) -> None:
    image(tmp_path / "a.jpg")
    item = f"<object>\n<name>cat</name><robndbox>{box}</robndbox></object>"
    write(tmp_path / "a.xml", f"<annotation>\n{item}</annotation>")
    (problem,) = problems_of(Voc(tmp_path))
    assert problem.startswith("a.xml, line 2")


def test_sparse_and_odd_annotations(tmp_path: Path) -> None:
    """Sides in any order, floats, no flags, parts with boxes of their own, text next to objects."""
    image(tmp_path / "a.jpg")
    write(
        tmp_path / "a.xml",
        """<?xml version="1.0" encoding="windows-1252"?><!-- words -->
        <annotation><object>
          <part><object><name>x</name></object><name>head</name><bndbox><xmin>1</xmin></bndbox></part>
          <bndbox><ymax> 10.5 </ymax><xmax>1e1</xmax><ymin>5</ymin><xmin>
          4</xmin></bndbox> <name>
          cat </name><difficult>1</difficult><truncated>Unspecified</truncated>
          <occluded>1</occluded><attributes>
            <attribute><name>colour</name><value>red &amp; x</value></attribute>
            <attribute><name>bndbox</name><value>2</value></attribute>
            <attribute><name>bndbox</name><value>3</value></attribute>
            <attribute><name/><value>1</value></attribute><attribute>y</attribute>
          </attributes>
        </object><object><name>cat</name><occluded>0</occluded><bndbox>
          <xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>""",
    )
    features, notes = read(Voc(tmp_path))
    assert notes == [
        ("parts of objects were left out", "a.xml, line 2"),
        ("attributes without a name were left out", "a.xml, line 2 (cat)"),
    ]
    names = ("colour", "bndbox", "occluded")
    assert [features[f"image/object/attribute/{name}"] for name in names] == [
        [b"red & x", b""],
        [b"2", b""],
        [b"true", b""],
    ]
    assert Voc(tmp_path, class_from="colour", boxes="drop").list_samples().class_names == (
        None,
        "red & x",
    )
    assert features["image/object/bbox/ymax"][:1] == [0.525]
    assert features["image/object/bbox/xmin"][:1] == [0.1]
    assert features["image/object/class/text"][:1] == [b"cat"]
    assert features["image/object/difficult"][:1] == [1]
    assert features["image/object/truncated"][:1] == [0]
    assert features["image/object/view"][:1] == [b""]


# -- layouts -------------------------------------------------------------------------------------


def test_lists_are_splits(tmp_path: Path) -> None:
    voc(tmp_path, FOUR | {"left": [CAT]})
    image(tmp_path / "JPEGImages" / "bare.jpg")
    image(tmp_path / "JPEGImages" / "nowhere.jpg")
    main = tmp_path / "ImageSets" / "Main"
    write(main / "train.txt", "b\r\n\r\na.jpg\n")
    write(main / "val.txt", "c\nbare\na\n")
    write(main / "trainval.txt", "a\nb\nc\nbare\n")
    write(main / "test.txt", "d  1\n")
    write(main / "cat_train.txt", "a  1\nb -1\n")
    listing = Voc(tmp_path).list_samples()
    assert listing.splits == ("train", "val", "test")
    assert _splits(listing) == {
        "JPEGImages/a.jpg": "train",
        "JPEGImages/b.jpg": "train",
        "JPEGImages/bare.jpg": "val",
        "JPEGImages/c.jpg": "val",
        "JPEGImages/d.jpg": "test",
    }
    twice, bare, *_ = (notice.partition(": ")[2] for notice in listing.notices)
    assert twice.split() == ["JPEGImages/a.jpg", "in", "train", "and", "val"]
    assert bare == "JPEGImages/bare.jpg"
    assert left_out(listing) == {
        "not in the lists of the dataset": [
            *("Annotations/left.xml", "JPEGImages/left.jpg", "JPEGImages/nowhere.jpg"),
        ],
        "of another task": [
            "ImageSets/Main/cat_train.txt",
            "ImageSets/Main/trainval.txt",
        ],
    }


def test_lists_of_classes_are_splits_without_others(tmp_path: Path) -> None:
    voc(tmp_path, FOUR)
    main = tmp_path / "ImageSets" / "Main"
    write(main / "cat_train.txt", "a  1\nb -1\n")
    write(main / "Dog_train.txt", "a -1\nc  0\n")
    write(main / "cat_trainval.txt", "a  1\nb -1\nc -1\nd -1\n")
    write(main / "cat_val.txt", "d -1\n")
    write(main / "names.txt", "b\n")
    expected = {"a": "train", "b": "train", "c": "train", "d": "val"}
    splits = _splits(Voc(tmp_path).list_samples())
    assert splits == {f"JPEGImages/{name}.jpg": split for name, split in expected.items()}


@pytest.mark.parametrize("row", ["{}", "{}.jpg", "JPEGImages/{}.jpg", "./JPEGImages/{}.jpg 1",
                                 "JPEGImages/{0}.jpg Annotations/{0}.xml"])  # fmt: skip
@pytest.mark.parametrize("base", ["", "VOCdevkit/VOC2007/"])
def test_lists_next_to_the_folders(tmp_path: Path, row: str, base: str) -> None:
    voc(tmp_path / base, {"a": [CAT], "b": [DOG]})
    write(tmp_path / base / "train.txt", row.format("b"))
    write(tmp_path / base / "val.txt", row.format("a"))
    write(tmp_path / base / "test.txt", "These images are for testing.\n")
    images = f"{base}JPEGImages"
    splits = _splits(Voc(tmp_path).list_samples())
    assert splits == {f"{images}/a.jpg": "val", f"{images}/b.jpg": "train"}


@pytest.mark.parametrize("folder", ["ImageSets/Main", "ImageSets", ""])
def test_empty_lists(tmp_path: Path, folder: str) -> None:
    voc(tmp_path, {"a": [CAT], "b": [DOG]})
    names = [str(Path(folder, f"{split}.txt")) for split in ("train", "val")]
    for name in names:
        write(tmp_path / name, "\n")
    with raises(rs.SourceError, path=tmp_path, match=" and ".join(names)):
        Voc(tmp_path).list_samples()
    write(tmp_path / names[0], "a\nb\n")
    listing = Voc(tmp_path).list_samples()
    assert set(_splits(listing)) == {"JPEGImages/a.jpg", "JPEGImages/b.jpg"}
    assert [notice for notice in listing.notices if names[1] in notice]


def test_list_with_missing_images(tmp_path: Path) -> None:
    voc(tmp_path, FOUR)
    write(tmp_path / "ImageSets" / "Main" / "train.txt", "a\n\ngone\n../../etc/passwd\n")
    source = Voc(tmp_path)
    listing = source.list_samples()
    faults = []
    for sample in listing.samples:
        try:
            read_sample(source, sample)
        except rs.SourceError as error:
            faults.append((error.path, error.line))
    assert faults == [("ImageSets/Main/train.txt", 4), ("ImageSets/Main/train.txt", 3)]


def test_several_datasets_below(tmp_path: Path) -> None:
    for year in ("VOC2007", "VOC2012"):
        voc(tmp_path / year, {"a": [CAT]})
    with raises(rs.SourceError, path=tmp_path, match=r"Pack .*VOC2007 or .*VOC2012"):
        Voc(tmp_path).list_samples()
    assert len(Voc(tmp_path / "VOC2007").list_samples().samples) == 1


# -- finding the image -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filename", "noted"),
    [
        ("a.jpg", []),
        (None, []),
        ("", []),
        ("a", ["another suffix"]),
        ("a.png", ["another suffix"]),
        ("A.JPG", ["another spelling"]),
        (r"C:\Users\me\a.jpg", ["last part"]),
        ("/home/me/a.jpg", ["by the last part"]),
        ("../../../a.jpg", ["by the last part"]),
        ("gone.jpg", ["another image than their"]),
        ("%s", ["another image than their"]),
        ("other.jpg", ["another image than their"]),
    ],
)
def test_filename_may_be_wrong(tmp_path: Path, filename: str | None, noted: list[str]) -> None:
    """other.jpg has an annotation file of its own, so it is not the one that is meant."""
    voc(tmp_path, {"a": [CAT], "other": [DOG]})
    write(tmp_path / "Annotations" / "a.xml", voc_xml([CAT], filename))
    source = Voc(tmp_path)
    assert _names(source.list_samples()) == ["JPEGImages/a.jpg", "JPEGImages/other.jpg"]
    features, notes = read(source)
    assert features["image/object/class/text"] == [b"cat"]
    assert len(notes) == len(noted)
    for (what, where), words in zip(notes, noted, strict=True):
        assert words in what
        assert where.startswith("Annotations/a.xml: ")
        assert "JPEGImages/a.jpg" in where


def test_annotations_without_an_image_and_two_for_one(tmp_path: Path) -> None:
    voc(tmp_path, {"a": [CAT], "gone": [CAT]})
    (tmp_path / "JPEGImages" / "gone.jpg").unlink()
    write(tmp_path / "Annotations" / "A 2.xml", voc_xml([DOG], "a.jpg"))  # comes before a.xml
    source = Voc(tmp_path)
    assert _names(source.list_samples()) == [
        "Annotations/A 2.xml",
        "Annotations/gone.xml",
        "JPEGImages/a.jpg",
    ]
    (twice,), (missing,) = problems_of(source, 0), problems_of(source, 1)
    assert places([twice, missing]) == ["Annotations/A 2.xml", "Annotations/gone.xml"]
    assert "JPEGImages/a.jpg already" in twice
    assert "'gone.jpg'" in missing
    assert read(source, 2)[0]["image/object/class/text"] == [b"cat"]


def test_images_without_annotation_are_skipped_with_a_notice(tmp_path: Path) -> None:
    voc(tmp_path, {"a": [CAT]})
    for number in range(5):
        image(tmp_path / "JPEGImages" / f"{number}.jpg")
    (tmp_path / "JPEGImages" / ".hidden.jpg").touch()
    write(tmp_path / "Annotations" / "settings.xml", "<project/>")
    listing = Voc(tmp_path).list_samples()
    assert left_out(listing) == {
        "without an annotation": [f"JPEGImages/{number}.jpg" for number in range(5)],
        "not images": ["Annotations/settings.xml"],
        "hidden": ["JPEGImages/.hidden.jpg"],
    }
    (images,) = (notice for notice in listing.notices if "/0.jpg" in notice)
    assert images.startswith("5 images ")
    assert re.findall(r"\S+\.jpg", images) == [f"JPEGImages/{number}.jpg" for number in range(3)]
    assert images.endswith(" 2 more")


# -- wrong annotations ---------------------------------------------------------------------------


def test_every_wrong_box_is_listed_with_its_line(tmp_path: Path) -> None:
    boxes = [CAT, ("cat", 4, 5, 50, 10), ("Dog", 9, 5, 3, 5), ("", 1, 1, 2, 2)]
    source = Voc(voc(tmp_path, {"a": boxes}))
    problems = problems_of(source)
    assert places(problems) == [
        "Annotations/a.xml, line 19 (cat)",
        "Annotations/a.xml, line 26 (Dog)",
        "Annotations/a.xml, line 26 (Dog)",
        "Annotations/a.xml, line 33",
    ]
    for problem, words in zip(
        problems, ("xmax 50", "xmin 9", "ymin and ymax", "no class"), strict=True
    ):
        assert words in problem
    lines = (tmp_path / "Annotations/a.xml").read_text().split("\n")
    assert [lines[n - 1].strip() for n in (19, 26, 33)] == ["<object>"] * 3
    features, notes = read(Voc(tmp_path, boxes="clip"))
    assert features["image/object/bbox/xmax"] == [0.25, 1]
    assert len(notes) == 3
    features, notes = read(Voc(tmp_path, boxes="drop"))
    assert features["image/object/bbox/xmax"] == [0.25]
    assert features["image/object/difficult"] == [0]
    assert len(notes) == 3


def test_label_map(tmp_path: Path) -> None:
    voc(tmp_path / "data", {"a": [CAT, DOG]})
    path = write(tmp_path / "map.pbtxt", "item { id: 5 name: 'cat' } item { id: 9 name: 'dog' }")
    source = Voc(tmp_path / "data", label_map=path)
    assert source.list_samples().class_names == (*[None] * 5, "cat", *[None] * 3, "dog")
    (problem,) = problems_of(source)
    assert problem.startswith("Annotations/a.xml, line 19 (Dog): ")
    assert problem.endswith(": cat and dog")
    for policy in ("drop", "clip"):
        features, _ = read(Voc(tmp_path / "data", label_map=path, boxes=policy))
        assert features["image/object/class/label"] == [5]
    assert source.describe()["label_map"] == "map.pbtxt"


BROKEN = {
    "cut off": ("<annotation><object>", "no element found"),
    "empty": ("", "not valid XML"),
    "words": ("words", "syntax error"),
    "unknown encoding": ("<?xml version='1.0' encoding='nonsense'?><a>é</a>", "encoding"),
    "the LabelMe web tool": (
        (
            "<annotation><object><name>a</name><polygon><pt><x>1</x></pt></polygon></object>"
            "</annotation>"
        ),
        "LabelMe web tool",
    ),
    "entities": (
        "<!DOCTYPE a [\n<!ENTITY b 'bbbb'>\n<!ENTITY c '&b;&b;'>]><annotation>&c;</annotation>",
        "line 2: ",
    ),
    "outside entities": (
        "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><annotation>&b;</annotation>",
        "XML entities",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_xml_fails_only_its_sample(tmp_path: Path, name: str) -> None:
    text, words = BROKEN[name]
    voc(tmp_path, {"a": [CAT], "b": [DOG]})
    write(tmp_path / "Annotations" / "a.xml", text)
    source = Voc(tmp_path)
    listing = source.list_samples()
    assert _names(listing) == ["Annotations/a.xml", "JPEGImages/b.jpg"]
    assert listing.class_names == (None, "Dog")
    (problem,) = problems_of(source)
    assert problem.startswith("Annotations/a.xml")
    assert problem.count("a.xml") == 1
    assert words in problem
    assert read(source, 1)[0]["image/object/class/label"] == [1]


def test_deep_xml_is_read(tmp_path: Path) -> None:
    voc(tmp_path, {"a": [CAT]})
    deep = "<x>" * 100_000 + "</x>" * 100_000
    write(tmp_path / "Annotations" / "a.xml", voc_xml([CAT], "a.jpg", inside=deep))
    assert read(Voc(tmp_path))[0]["image/object/class/label"] == [1]


# -- together ------------------------------------------------------------------------------------
