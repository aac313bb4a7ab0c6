"""Images with several classes, in all formats: the lists of each image are those written."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

import recordsmith as rs
from recordsmith.sources import Source

from ..raising import raises
from ..reading import read_sample
from .annotated import image, read, write
from .source_contract import SourceContract

LABEL, TEXT, CONFIDENCE = (f"image/class/{name}" for name in ("label", "text", "confidence"))
Truth = Mapping[str, Mapping[str, int] | None]
"""For each image its classes with 1, or 0 for those that it verifiably has not; None if unknown."""

NAMES = ("cat", "Dog", "wild_boar", "Größe", "5_o_Clock_Shadow", "x", "&<y>", "null")
BOX = '<box label="x" xtl="4" ytl="5" xbr="14" ybr="15"/>'


def _positive(labels: Mapping[str, int] | None) -> list[str]:
    return [name for name, share in (labels or {}).items() if share]


def _cvat(root: Path, truth: Truth, shape: str = "") -> Source:
    tags = {
        name: "".join(f"<tag label={quoteattr(t)}/>" for t in _positive(truth[name]))
        for name in truth
    }
    images = (
        f'<image id="{n}" name="{name}" width="40" height="20">{shape}{tags[name]}</image>'
        for n, name in enumerate(truth)
    )
    write(root / "annotations.xml", f"<annotations><version/>{''.join(images)}</annotations>")
    return rs.Cvat(root)


def _labelme(root: Path, truth: Truth) -> Source:
    for name, labels in truth.items():
        flags = {} if labels is None else {"never": False, **dict.fromkeys(labels, True)}
        document = {"version": "5", "flags": flags, "shapes": [], "imagePath": name}
        write(root / f"{name[:-4]}.json", json.dumps(document))
    return rs.LabelMe(root)


def _used(truth: Truth) -> list[str]:
    return sorted({name for labels in truth.values() for name in labels or ()})


def _celeba(root: Path, truth: Truth) -> Source:
    names = _used(truth)
    rows = (
        f"{name} " + "  ".join("1" if labels and labels.get(n) else "-1" for n in names)
        for name, labels in truth.items()
    )
    write(
        root / "Anno/list_attr_celeba.txt",
        "\n".join([str(len(truth)), " ".join(names), *rows]) + "\n",
    )
    return rs.ImageLabels(root)


def _open_images(root: Path, truth: Truth) -> Source:
    ids = {name: f"/m/{n}" for n, name in enumerate(_used(truth))}
    rows = [
        f"{name[:-4]},verification,{ids[n]},{share}"
        for name, labels in truth.items()
        for n, share in (labels or {}).items()
    ]
    random.Random(len(rows)).shuffle(rows)
    write(root / "a-imagelabels.csv", "\n".join(["ImageID,Source,LabelName,Confidence", *rows]))
    write(
        root / "class-descriptions.csv", "".join(f'{key},"{name}"\n' for name, key in ids.items())
    )
    return rs.ImageLabels(root)


def _rows(path: Path, truth: Truth, first: str, default: int | str) -> list[str]:
    names = _used(truth)
    rows = ([name, *((of or {}).get(n, default) for n in names)] for name, of in truth.items())
    write(path, "\n".join(",".join(map(str, row)) for row in ([first, *names], *rows)))
    return names


def _roboflow(root: Path, truth: Truth) -> Source:
    _rows(root / "_classes.csv", truth, "filename", " 0")
    return rs.Table(root)


def _columns(root: Path, truth: Truth) -> Source:
    names = _rows(root / "x.csv", truth, "file", "")
    return rs.Table(root, table="x.csv", image_column="file", label_columns=names)


def _lists(root: Path, truth: Truth) -> Source:
    rows = [
        json.dumps({"file": n, "tags": None if of is None else _positive(of)})
        for n, of in truth.items()
    ]
    write(root / "x.jsonl", "\n".join(rows))
    return rs.Table(root, table="x.jsonl", image_column="file", label_column="tags")


def _cells(root: Path, truth: Truth, cell: Callable[[list[str]], str], **options: Any) -> Source:
    rows = ["file,tags", *(f'{name},"{cell(_positive(of))}"' for name, of in truth.items())]
    write(root / "x.csv", "\n".join(rows))
    return rs.Table(root, table="x.csv", image_column="file", label_column="tags", **options)


FORMS: Mapping[str, tuple[Callable[[Path, Truth], Source], str]] = {
    "cvat": (_cvat, "empty"),
    "cvat with boxes": (partial(_cvat, shape=BOX), "empty"),
    "labelme": (_labelme, "empty absent"),
    "celeba": (_celeba, "empty"),
    "open images": (_open_images, "negative"),
    "roboflow": (_roboflow, "empty"),
    "columns": (_columns, "absent negative"),
    "lists": (_lists, "empty absent"),
    "separated": (partial(_cells, cell=" | ".join, label_separator="|"), "empty"),
    "bracketed": (partial(_cells, cell=str), "empty"),
}
"""How a set is written, and what its images may be besides having classes."""


def _random(form: str, seed: int) -> dict[str, dict[str, int] | None]:
    """A set in which the first image has two classes, and one of three in all is negative."""
    rng, kinds = random.Random(f"{form} {seed}"), FORMS[form][1].split()
    names = rng.sample(NAMES, rng.randint(2, len(NAMES)))
    truth: dict[str, dict[str, int] | None] = {"0.jpg": dict.fromkeys(names[:2], 1)}
    for number in range(1, rng.randint(2, 7)):
        chosen = rng.sample(names, rng.randint(1, len(names)))
        kind = rng.choice(("some", *kinds))
        labels = {name: int(kind != "negative" or rng.random() < 0.5) for name in chosen}
        truth[f"{number}.jpg"] = {} if kind == "empty" else None if kind == "absent" else labels
    if "negative" in kinds:
        truth["9.jpg"] = {names[0]: 0}
    return truth


def _check(
    features: Mapping[str, Any], names: Any, labels: Mapping[str, int] | None, *, negatives: bool
) -> None:
    if labels is None:
        assert {LABEL, TEXT, CONFIDENCE}.isdisjoint(features)
        return
    texts = [text.decode() for text in features[TEXT]]
    assert [names[number] for number in features[LABEL]] == texts
    assert (CONFIDENCE in features) == negatives
    shares = features[CONFIDENCE] if negatives else [1] * len(texts)
    assert dict(zip(texts, shares, strict=True)) == labels
    assert len({*texts}) == len(texts)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "seeds", [range(5), pytest.param(range(5, 105), marks=pytest.mark.slow)], ids=("few", "many")
)
def test_lists_are_those_that_were_written(form: str, seeds: range, tmp_path: Path) -> None:
    """Read, packed, and packed again from two exports; only one set of the fast ones is packed."""
    for seed in seeds:
        truth, root = _random(form, seed), tmp_path / f"{seed}"
        for name in truth:
            image(root / "images" / name if form in ("celeba", "cvat") else root / name)
        source = FORMS[form][0](root, truth)
        listing = source.list_samples()
        negatives = "negative" in FORMS[form][1]
        assert len(listing.samples) == len(truth)
        for sample in listing.samples:
            features = read_sample(source, sample)
            name = Path(features["image/filename"].decode()).name
            _check(features, listing.class_names, truth[name], negatives=negatives)
        if seed and len(seeds) < 10:
            continue
        out = tmp_path / f"{seed}-packed"
        rs.pack(source, out)
        folders = [out]
        for kind in ("huggingface", "webdataset"):
            rs.export(out, tmp_path / f"{seed}-{kind}", kind)
            folders.append(tmp_path / f"{seed}-again-{kind}")
            rs.pack(tmp_path / f"{seed}-{kind}", folders[-1])
        for folder in folders:
            dataset = rs.open(folder)
            found = {Path(e["image/filename"][0].decode()).name: e for e in dataset}
            assert found.keys() == truth.keys()
            for name, example in found.items():
                names = listing.class_names if "webdataset" in folder.name else dataset.class_names
                _check(example, names, truth[name], negatives=negatives)


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        truth = {f"{number}.jpg": {"a": 1, "b": number % 2} for number in range(6)}
        for name in truth:
            image(folder / "img" / name)
        rows = "\n".join(f"{name} {number // 2}" for number, name in enumerate(truth))
        write(folder / "list_eval_partition.txt", rows)
        return _celeba(folder, truth)


@pytest.mark.parametrize("form", ["cvat", "open images", "columns", "lists"])
def test_splits_have_their_shares_of_the_rarest_class(form: str, tmp_path: Path) -> None:
    """All images have one class, and eight of twenty another one: two each."""
    names = dict(enumerate(name for name in "abcd" for _ in range(2)))
    truth = {f"{n}.jpg": {"x": 1, **({names[n]: 1} if n in names else {})} for n in range(20)}
    if form == "open images":  # those that are verified to be absent do not count
        truth = {name: {**dict.fromkeys("abcd", 0), **of} for name, of in truth.items()}
    for name in truth:
        image(tmp_path / "in" / name)
    source = FORMS[form][0](tmp_path / "in", truth)
    rs.pack(source, tmp_path / "out", splits={"p": 0.5, "q": 0.5}, stratify=True)
    for split in "pq":
        found = Counter(
            text.decode()
            for example in rs.open(tmp_path / "out", split)
            for text, share in zip(
                example[TEXT], example.get(CONFIDENCE, [1] * len(example[TEXT])), strict=True
            )
            if share
        )
        assert found == {"x": 10, **dict.fromkeys("abcd", 1)}


CELEBA, ROWS = "list_attr_celeba.txt", "labels.csv"
HEAD = "ImageID,Source,LabelName,Confidence\n0,v,/m/a,1\n"
FAULTS: list[tuple[str, str, str]] = [
    # a file, its content, and what the error says besides the file
    (CELEBA, "2\na b\n0.jpg 1 -1\n1.jpg 1 0\n", "line 4: found '0'; expected 1 or -1 for each"),
    (CELEBA, "2\na b\n0.jpg 1 -1\n1.jpg 1\n", "line 4: found 1 attributes"),
    (CELEBA, "3\na b\n0.jpg 1 -1\n\n1.jpg 1 1\n", "line 1: found 2 rows; its first line has 3"),
    (CELEBA, "1\na a\n0.jpg 1 -1\n", "line 2: the names of attributes"),
    (CELEBA[:-3] + "csv", "image_id, a,b\n0.jpg,1,-1\n1.jpg,1,x\n", "line 3: found 'x'"),
    (CELEBA[:-3] + "csv", "image_id,a,a\n0.jpg,1,-1\n", "line 1: the names of attributes"),
    (ROWS, f"{HEAD}1,v,/m/a,1.5\n", "line 3: found '1,v,/m/a,1.5'; .*confidence from 0 to 1"),
    (ROWS, f"{HEAD}1,v,/m/a,nan\n", "line 3: "),
    (ROWS, f"{HEAD}1,v,,1\n", "line 3: "),
    (ROWS, f"{HEAD}1,v\n", "line 3: "),
    (ROWS, f"{HEAD}\n,v,/m/a,1\n", "line 4: "),
    ("x.csv", "file,a,b\n0.jpg,1,2\n", "line 2, column 'b': '2'; expected 0 or 1"),
    ("x.csv", "file,a,b\n0.jpg,yes,\n", "line 2, column 'a': 'yes'; expected 0 or 1"),
    ("x.csv", "file,a,b\n0.jpg,1,0\n1.jpg,-1,\n",
     "0 and -1: 0 in .*line 2, column 'b' and -1 in .*line 3, column 'a'"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "content", "problem"), FAULTS)
def test_faults_are_named(tmp_path: Path, file: str, content: str, problem: str) -> None:
    for name in ("0.jpg", "1.jpg"):
        image(tmp_path / name)
    write(tmp_path / file, content)
    options: Any = {"table": file, "image_column": "file", "label_columns": "a, b"}
    source = rs.Table(tmp_path, **options) if file == "x.csv" else rs.ImageLabels(tmp_path)
    with raises(rs.SourceError, match=problem) as caught:
        source.list_samples()
    assert file in str(caught.value)


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("label_columns", {"label_columns": "a,b", "label_column": "a"}),
        ("label_columns", {"label_columns": "a,,b"}),
        ("label_columns", {"label_columns": ["a", "a"]}),
        ("label_columns", {"label_columns": []}),
        ("label_columns", {"label_columns": "a,c"}),
        ("label_columns", {"label_columns": "a,b", "image_column": None}),
        ("label_separator", {"label_separator": "|"}),
        ("caption_column", {"label_column": "a", "caption_column": "a"}),
    ],
)
def test_wrong_columns(tmp_path: Path, option: str, options: dict[str, Any]) -> None:
    image(tmp_path / "0.jpg")
    table = write(tmp_path / "x.csv", "file,a,b\n0.jpg,1,0\n")
    with raises(rs.OptionError, option=option):
        rs.Table(table, **{"image_column": "file", **options}).list_samples()


@pytest.mark.parametrize(
    ("cells", "between"),
    [
        ("cat|Paris, France;dog", "|"),
        ("cat;Paris, France;cat, dog", ","),
        ("cat;Paris, France", None),
    ],
)
def test_classes_that_seem_to_be_lists(tmp_path: Path, cells: str, between: str | None) -> None:
    rows = (f'{number}.jpg,"{cell}"' for number, cell in enumerate(cells.split(";")))
    write(tmp_path / "x.csv", "\n".join(["file,a", *rows]))
    notices = rs.Table(tmp_path / "x.csv", label_column="a").list_samples().notices
    assert [str(n).count(f"label_separator={between!r}") for n in notices] == [1] * bool(between)


def test_classes_of_a_label_map(tmp_path: Path) -> None:
    """An unknown class is a fault of its image; CelebA's columns have the numbers of the map."""
    for name in ("0.jpg", "1.jpg"):
        image(tmp_path / name)
    items = (f"item {{ id: {number} name: '{name}' }}" for number, name in ((3, "b"), (8, "a")))
    label_map = write(tmp_path / "map.pbtxt", "\n".join(items))
    write(tmp_path / CELEBA, "2\na b c\n0.jpg 1 1 -1\n1.jpg 1 -1 1\n")
    listing = rs.ImageLabels(tmp_path, label_map=label_map).list_samples()
    features, _ = read(listing, 0)
    assert (features[LABEL], features[TEXT]) == ([8, 3], [b"a", b"b"])
    with raises(rs.SourceError, path=CELEBA, match="1.jpg, line 4: class 'c'"):
        read(listing, 1)


def test_several_confidences_of_a_class(tmp_path: Path) -> None:
    """The highest one is stored, with a note; the text of a class may name several."""
    image(tmp_path / "0.jpg")
    write(tmp_path / ROWS, f"{HEAD}0,w,/m/a,0.25\n0,v,/m/b,0.5\n")
    write(tmp_path / "class-descriptions.csv", '/m/a,"cat"\n/m/b,"cat"\n')
    features, notes = read(rs.ImageLabels(tmp_path).list_samples(), 0)
    assert features[TEXT] == [b"cat", b"cat (/m/b)"]
    assert features[CONFIDENCE] == [1, 0.5]
    assert [where for _, where in notes] == ["labels.csv, line 3: cat"]


def test_hugging_face_columns_give_way_to_columns_of_0_and_1(tmp_path: Path) -> None:
    """A column with class names is not the class where others are chosen."""
    arrow = pytest.importorskip("pyarrow")
    image(tmp_path / "0.jpg")
    described = {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["x", "y"]}}}}
    table = arrow.table({"file": ["0.jpg"], "label": [1], "a": [1], "b": [0]})
    table = table.replace_schema_metadata({"huggingface": json.dumps(described)})
    source = rs.Table(table, image_column="file", images=tmp_path, label_columns=["a", "b"])
    (sample,) = source.list_samples().samples
    assert read_sample(source, sample)[TEXT] == [b"a"]
