"""Images with several classes, in all formats: the lists of each image are those written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

import recordsmith as rs
from recordsmith.sources import Source

from ..reading import read_sample
from .annotated import image, write

LABEL, TEXT, CONFIDENCE = (f"image/class/{name}" for name in ("label", "text", "confidence"))
Truth = Mapping[str, Mapping[str, int] | None]
"""For each image its classes with 1, or 0 for those that it verifiably has not; None if unknown."""

NAMES = ("cat", "Dog", "wild_boar", "Größe", "5_o_Clock_Shadow", "x", "&<y>", "null")
PIXELS = {}


def _photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if "" not in PIXELS:
        PIXELS[""] = image(path)
    path.write_bytes(PIXELS[""])


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


def _cvat_with_boxes(root: Path, truth: Truth) -> Source:
    return _cvat(root, truth, '<box label="x" xtl="4" ytl="5" xbr="14" ybr="15"/>')


def _labelme(root: Path, truth: Truth) -> Source:
    for name, labels in truth.items():
        flags = (
            None
            if labels is None
            else {"never": False, **{key: bool(v) for key, v in labels.items()}}
        )
        document = {"version": "5", "flags": flags or {}, "shapes": [], "imagePath": name}
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


def _rows(
    root: Path, truth: Truth, cell: Callable[[str, Mapping[str, int]], str], file: str, first: str
) -> list[str]:
    names = _used(truth)
    rows = [
        ",".join((name, *(cell(n, labels or {}) for n in names))) for name, labels in truth.items()
    ]
    write(root / file, "\n".join([",".join((first, *names)), *rows]))
    return names


def _roboflow(root: Path, truth: Truth) -> Source:
    _rows(root, truth, lambda name, labels: f" {labels.get(name, 0)}", "_classes.csv", "filename")
    return rs.Table(root)


def _columns(root: Path, truth: Truth) -> Source:
    names = _rows(root, truth, lambda name, labels: str(labels.get(name, "")), "x.csv", "file")
    return rs.Table(root, table="x.csv", image_column="file", label_columns=names)


def _lists(root: Path, truth: Truth) -> Source:
    rows = [
        json.dumps({"file": n, "tags": None if of is None else _positive(of)})
        for n, of in truth.items()
    ]
    write(root / "x.jsonl", "\n".join(rows))
    return rs.Table(root, table="x.jsonl", image_column="file", label_column="tags")


def _separated(root: Path, truth: Truth) -> Source:
    write(
        root / "x.csv",
        "\n".join(["file,tags", *(f"{n},{' | '.join(_positive(of))}" for n, of in truth.items())]),
    )
    return rs.Table(
        root, table="x.csv", image_column="file", label_column="tags", label_separator="|"
    )


def _bracketed(root: Path, truth: Truth) -> Source:
    write(
        root / "x.csv",
        "\n".join(["file,tags", *(f'{n},"{_positive(of)}"' for n, of in truth.items())]),
    )
    return rs.Table(root, table="x.csv", image_column="file", label_column="tags")


FORMS: Mapping[str, tuple[Callable[[Path, Truth], Source], str]] = {
    "cvat": (_cvat, "empty"),
    "cvat with boxes": (_cvat_with_boxes, "empty"),
    "labelme": (_labelme, "empty absent"),
    "celeba": (_celeba, "empty"),
    "open images": (_open_images, "negative"),
    "roboflow": (_roboflow, "empty"),
    "columns": (_columns, "absent negative"),
    "lists": (_lists, "empty absent"),
    "separated": (_separated, "empty"),
    "bracketed": (_bracketed, "empty"),
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
            _photo(root / "images" / name if form in ("celeba", "cvat") else root / name)
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
