"""What all formats of annotations share: text, encodings, limits, and how one is added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.cli import load_command
from recordsmith.sources import Coco, CsvBoxes, Cvat, LabelMe, Source, Voc
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.detection import find_candidates
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS, OPTIONS
from recordsmith.stores import as_folder

from ..raising import raises
from .annotated import (
    BOX,
    CAT,
    boxes_of,
    coco,
    csv_boxes,
    cvat,
    image,
    labelme,
    read,
    shape_of,
    voc,
    write,
)

# -- text and limits -----------------------------------------------------------------------------


def test_text_that_is_not_unicode(tmp_path: Path) -> None:
    root = csv_boxes(tmp_path / "csv", "a.jpg,40,20,cat,4,5,14,15\n", images="a")
    (root / "boxes.csv").write_bytes((root / "boxes.csv").read_bytes().replace(b"cat", b"caf\xe9"))
    with raises(rs.SourceError, path="boxes.csv", line=2, match="UTF-8"):
        CsvBoxes(root).list_samples()
    root = labelme(tmp_path / "json", shape_of((1, 1), (9, 1), (9, 9), label="\ud800"))
    with raises(rs.SourceError, path="a.json", match="invalid JSON"):
        read(LabelMe(root))


def _much_coco(root: Path, annotations: str) -> Path:
    image(root / "a.jpg")
    (root / "x.json").write_text(
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "a"}],\n'
        f'"annotations": [{annotations}]}}'
    )
    return root


def _much_cvat(root: Path, shapes: str) -> Path:
    image(root / "a.jpg")
    (root / "x.xml").write_text(
        f'<annotations><image id="0" name="a.jpg">\n{shapes}</image></annotations>'
    )
    return root


ENTRY = '{"image_id": 1, "category_id": 1, "bbox": [1, 1, 5, 5]}'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "words"),
    [  # each would take a hundred bytes and more for each byte, or time without end
        (
            lambda root: Coco(_much_coco(root, f'{ENTRY[:-1]}, "x": [{"[]," * 3_000_000}1]}}')),
            "line 2: an entry is longer than 8,388,608 bytes",
        ),
        (lambda root: Coco(_much_coco(root, f"{ENTRY}," * 100_000 + ENTRY)), "100,000 objects"),
        (
            lambda root: Cvat(_much_cvat(root, f'<polygon points="{"1,2;" * 3_000_000}"/>')),
            "line 2: a tag or text is longer than 4,194,304 bytes",
        ),
        (
            lambda root: Cvat(_much_cvat(root, '<box label="a"/>' * 100_001)),
            "more than 100,000 objects",
        ),
        (
            lambda root: CsvBoxes(csv_boxes(root, f"a.jpg,40,20,{CAT}\n" * 100_002)),
            "line 2 has more than 100,000 objects",
        ),
        (
            lambda root: Voc(voc(root, {"a": [("a", 4, 5, 14, 15)] * 30_000})),
            "more than 250,000 elements",
        ),
        (
            lambda root: LabelMe(labelme(root, shape_of(*[(1, 2), (3, 4), (5, 6)] * 120_000))),
            "more than 1,000,000 values",
        ),
    ],
    ids=["coco entry", "coco objects", "cvat polygon", "cvat objects", "csv", "voc", "labelme"],
)
def test_limits_of_annotations(tmp_path: Path, make: Any, words: str) -> None:
    with pytest.raises(rs.SourceError, match=words):
        listing = make(tmp_path).list_samples()
        list(map(listing.reader.read, listing.samples))


@pytest.mark.parametrize("masks", [None, "instance"])
def test_a_polygon_of_two_points_keeps_its_box(tmp_path: Path, masks: Any) -> None:
    line_in_labelme = labelme(tmp_path / "labelme", shape_of((4, 5), (14, 15)))
    line_in_cvat = cvat(tmp_path / "cvat", '<polygon label="cat" points="4,5;14,15"/>')
    line = {"segmentation": [[4, 5, 14, 15]], "bbox": [4, 5, 10, 10], "id": 1, "image_id": 1}
    image(tmp_path / "coco/a.jpg")
    document = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 20}],
        "annotations": [line | {"category_id": 1}],
        "categories": [{"id": 1, "name": "cat"}],
    }
    write(tmp_path / "coco/instances.json", json.dumps(document))
    folders = ((LabelMe, line_in_labelme), (Cvat, line_in_cvat), (Coco, tmp_path / "coco"))
    for source in (kind(folder, object_masks=masks) for kind, folder in folders):
        features, notes = read(source.list_samples())
        assert boxes_of(features) == [BOX]
        empty = [what for what, _ in notes if "empty mask" in what]
        assert len(empty) == (masks is not None)


# -- encodings -----------------------------------------------------------------------------------

DECLARATION = '<?xml version="1.0" encoding="{}"?>'


ENCODINGS = [  # declared, encoded, class
    ("", "utf-8", "猫"),
    ("", "utf-8-sig", "猫"),
    ("", "utf-16", "猫"),
    ("utf-16", "utf-16", "猫"),
    ("utf-16", "utf-16-le", "猫"),
    ("utf-16", "utf-16-be", "猫"),
    ("UTF-16", "utf-8", "猫"),
    ("gb2312", "ascii", "cat"),
    ("nonsense", "ascii", "cat"),
    ("utf-16", "ascii", "cat"),
    ("GB2312", "gb2312", "猫"),
    ("gbk", "gbk", "貓"),
    ("GB2312", "gbk", "貓"),
    ("Shift_JIS", "shift_jis", "猫"),
    ("EUC-KR", "euc-kr", "고양이"),
    ("Big5", "big5", "貓"),
    ("windows-1252", "cp1252", "Käfer"),
    ("ISO-8859-1", "latin-1", "Käfer"),
    ("KOI8-R", "koi8-r", "кот"),
]


def _encoded(root: Path, kind: type[Source], encoding: str, declared: str, name: str) -> Source:
    """A dataset with one class in each annotation file, which are in another encoding."""
    first = DECLARATION.format(declared) if declared else ""
    if kind is Voc:
        voc(root, {"a": [(name, 4, 5, 14, 15)], "b": [(name, 4, 5, 14, 15)]})
    elif kind is Cvat:
        cvat(root, f'<box label="{name}" xtl="4" ytl="5" xbr="14" ybr="15"/>')
    elif kind is LabelMe:
        for stem in "ab":
            labelme(root, shape_of((4, 5), (14, 15), kind="rectangle", label=name), name=stem)
    else:
        image(root / "a.jpg")
        coco(root / "x.json", {"a.jpg": [{"category_id": 1, "bbox": [4, 5, 10, 10]}]}, {1: name})
    for path in root.rglob("*.xml" if kind in (Voc, Cvat) else "*.json"):
        text = path.read_text(encoding="utf-8")
        if kind in (LabelMe, Coco):
            text = json.dumps(json.loads(text), ensure_ascii=False)
        path.write_bytes((first + text).encode(encoding))
    return kind(root)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Voc, Cvat])
@pytest.mark.parametrize(("declared", "encoding", "name"), ENCODINGS)
def test_encodings_of_xml(
    tmp_path: Path, kind: Any, declared: str, encoding: str, name: str
) -> None:
    source = _encoded(tmp_path, kind, encoding, declared, name)
    features, _ = read(source)
    assert boxes_of(features) == [BOX]
    assert features["image/object/class/text"] == [name.encode()]
    (candidate,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert (candidate.format, candidate.problem) == (source.box_format.name, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [LabelMe, Coco])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_encodings_of_json(tmp_path: Path, kind: Any, encoding: str) -> None:
    source = _encoded(tmp_path, kind, encoding, "", "猫")
    if encoding == "utf-16-be":  # with a byte order mark, as the others
        for path in tmp_path.rglob("*.json"):
            path.write_bytes(b"\xfe\xff" + path.read_bytes())
    features, _ = read(source)
    assert features["image/object/class/text"] == ["猫".encode()]
    (candidate,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert (candidate.format, candidate.problem) == (source.box_format.name, "")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kind", "declared", "encoding", "words"),
    [
        (Voc, "", "cp1252", "not valid UTF-8"),
        (Voc, "utf-8", "cp1252", "not valid UTF-8"),
        (Voc, "nonsense", "cp1252", "'nonsense'"),
        (Voc, "utf-7", "cp1252", "not valid UTF-8"),
        (Voc, "punycode", "cp1252", "'punycode'"),
        (Voc, "euc-kr", "cp1252", "euc-kr"),
        (Cvat, "", "cp1252", "not valid UTF-8"),
        (Cvat, "nonsense", "cp1252", "'nonsense'"),
        (LabelMe, "", "cp1252", "not valid UTF-8"),
        (Coco, "", "cp1252", "not valid UTF-8"),
    ],
)
def test_other_encodings_are_named_once(
    tmp_path: Path, kind: Any, declared: str, encoding: str, words: str
) -> None:
    source = _encoded(tmp_path, kind, encoding, declared, "Käfer")
    with raises(rs.SourceError, match=words) as caught:
        source.list_samples()
    assert "UTF-8" in caught.value.remedy
    assert caught.value.path in ("Annotations/a.xml", "annotations.xml", "a.json", "x.json")
    if kind in (Voc, LabelMe):
        assert len(caught.value.problems) == 2


def test_one_file_in_another_encoding_fails_alone(tmp_path: Path) -> None:
    source = _encoded(tmp_path, Voc, "utf-8", "", "cat")
    voc(tmp_path, {"c": [("Käfer", 4, 5, 14, 15)]})
    path = tmp_path / "Annotations/c.xml"
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    listing = source.list_samples()
    assert next(sample.name for sample in listing.samples) == "Annotations/c.xml"
    with raises(rs.SourceError, path="Annotations/c.xml", line=13):
        read(listing, 0)
    assert boxes_of(read(listing, 1)[0]) == [BOX]


# -- another format --------------------------------------------------------------------------------


def _parse_words(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    name, *corners = file.location.read().decode().split()
    box = AnnotatedObject("line 1", name, tuple(map(float, corners)))
    yield AnnotatedImage(size=(40, 20), objects=[box])


def test_the_table_has_the_suffixes_of_each_format() -> None:
    for name, suffixes in BOX_SUFFIXES.items():
        known = FORMATS[name].box_format
        assert known.name == name
        assert (known.suffix, {known.suffix, *known.file_suffixes}) == (suffixes[0], {*suffixes})


def test_a_format_is_a_line_in_a_table(tmp_path: Path) -> None:
    class Words(
        PerImageAnnotationSource,
        box_format=BoxFormat(
            "words",
            ".words",
            lambda head: head.startswith(b"cat "),
            _parse_words,
            what="images and boxes of files such as {}",
            expected=".words files next to their images",
            has_outlines=False,
        ),
    ):
        """Images with a box each."""

    FORMATS["words"], BOX_SUFFIXES["words"] = Words, (".words",)
    OPTIONS["words"] = frozenset(("label_map", "boxes", "drawn"))
    try:
        image(tmp_path / "in" / "a.jpg")
        write(tmp_path / "in" / "a.words", CAT.replace(",", " "))
        assert rs.detect(tmp_path / "in").reading.format == "words"
        rs.pack(tmp_path / "in", tmp_path / "out")
        example = rs.open(tmp_path / "out")[0]
        keys = (f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax"))
        assert [float(example[key][0]) for key in keys] == pytest.approx(BOX)
        for command in ("detect", "pack"):
            helps = {
                param.name: str(param.help) for param in load_command.__wrapped__(command).params
            }
            assert all("words" in helps[name].split(":")[0] for name in ("format", "boxes"))
            assert "words" not in helps["object_masks"]
    finally:
        del FORMATS["words"], BOX_SUFFIXES["words"], OPTIONS["words"]
    with raises(rs.OptionError, option="format"):
        rs.detect(tmp_path / "in", "words")
