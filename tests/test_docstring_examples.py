"""Every public name has an example in its docstring, and all of them run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from .sources import lerobot_folder
from .sources.annotated import coco, image, voc, write
from .test_docs import blocks, page

WITHOUT = {"__version__", "engines", "remote"}
"""Names that are no function or class, or whose example needs a bucket."""

NAMES = sorted({*rs.__all__} - WITHOUT)
MODULES = ("torch", "lightning", "jax", "tensorflow", "keras", "grain", "polars", "duckdb")
"""Modules for other libraries, by which they are called in examples."""

_IN_CHILD = "RECORDSMITH_EXAMPLES_OF_A_MODULE"


def example_of(value: Any) -> str | None:
    """The code below `Example:` in a docstring."""
    text = inspect.getdoc(value) or ""
    match = re.search(r"^Example:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return textwrap.dedent(match[1]) if match else None


def members() -> Iterator[tuple[str, Any]]:
    """The public names, and the methods of the classes among them."""
    for name in NAMES:
        value = getattr(rs, name)
        yield name, value
        if isinstance(value, type):
            for key, member in vars(value).items():
                if not key.startswith("_") and example_of(member):
                    yield f"{name}.{key}", member


MEMBERS = [*members()]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which examples run: `flowers`, their dataset `out`, a copy, a damaged file,
    and a small folder for each source.
    """
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(blocks("python", page("docs/tutorial.md"))[0], {})
        rs.pack("flowers", "out", splits={"train": 0.7, "validation": 0.3}, shards=2)
        write_sources(Path())
    shutil.copytree(folder / "out", folder / "copy")
    data = bytearray((folder / "out" / "train-00001-of-00002.tfrecord").read_bytes())
    data[100] ^= 1
    (folder / "damaged.tfrecord").write_bytes(data)
    return folder


def write_sources(root: Path) -> None:
    """Small datasets under the names that the examples of sources use."""
    corners = (4, 5, 14, 15)
    voc(root / "VOCdevkit/VOC2012", {"a": [("cat", *corners)]})
    outline = {"category_id": 1, "bbox": [4, 5, 10, 10], "segmentation": [[4, 5, 14, 5, 14, 15]]}
    image(root / "coco/images/a.jpg")
    coco(root / "coco/annotations/instances_train.json", {"a.jpg": [outline]}, {1: "cat"})
    write(root / "coco128/data.yaml", "train: images\nnames: [cat]\n")
    image(root / "coco128/images/a.jpg")
    write(root / "coco128/labels/a.txt", "0 0.5 0.5 0.2 0.2")
    image(root / "DOTA/train/images/a.jpg")
    write(root / "DOTA/train/labelTxt/a.txt", "4 5 14 7 13 15 3 13 plane 0")
    image(root / "portraits/a.jpg")
    write(root / "portraits/a.txt", "a portrait of a cat")
    image(root / "celeba/img_align_celeba/a.jpg")
    write(root / "celeba/list_attr_celeba.txt", "1\nSmiling Young\na.jpg 1 -1\n")
    image(root / "animals/a.jpg")
    box = '{"x": 9, "y": 10, "width": 10, "height": 10}'
    annotation = f'[{{"label": "cat", "coordinates": {box}}}]'
    write(root / "animals/a.json", f'[{{"image": "a.jpg", "annotations": {annotation}}}]')
    image(root / "kitti/training/image_2/a.png")
    write(root / "kitti/training/label_2/a.txt", "Car 0 0 0 4 5 14 15 1 1 1 1 1 1 0\n")
    image(root / "sa_000000/a.jpg")
    runs = '{"size": [20, 40], "counts": [85, 10, 705]}'
    scores = '"predicted_iou": 0.9, "stability_score": 0.9'
    write(
        root / "sa_000000/a.json", f'[{{"segmentation": {runs}, "bbox": [4, 5, 1, 10], {scores}}}]'
    )
    image(root / "balloon/a.jpg")
    shape = '{"name": "circle", "cx": 9, "cy": 9, "r": 4}'
    region = f'{{"shape_attributes": {shape}, "region_attributes": {{}}}}'
    write(root / "balloon/a.json", f'{{"a": {{"filename": "a.jpg", "regions": [{region}]}}}}')
    image(root / "raccoons/a.jpg")
    header = "filename,width,height,class,xmin,ymin,xmax,ymax"
    write(root / "raccoons/train.csv", f"{header}\na.jpg,40,20,raccoon,4,5,14,15\n")
    image(root / "labelled/a.jpg")
    shape = {"label": "cat", "shape_type": "polygon", "points": [[4, 5], [14, 5], [14, 15]]}
    document = {"version": "5", "shapes": [shape], "imagePath": "a.jpg", "imageData": None}
    write(root / "labelled/a.json", json.dumps(document))
    image(root / "export/images/a.jpg")
    box = '<box label="cat" xtl="4" ytl="5" xbr="14" ybr="15"/>'
    entry = f'<image id="0" name="a.jpg">{box}</image>'
    write(root / "export/annotations.xml", f"<annotations><version/>{entry}</annotations>")
    image(root / "project/a.jpg")
    done = {"completed_by": {"email": "ann@example.org"}, "result": []}
    task = {"annotations": [done], "data": {"image": "/data/upload/1/0f3a9b7c-a.jpg"}}
    write(root / "project/project.json", json.dumps([task]))
    (root / "mnist").mkdir()
    np.savez(root / "mnist/mnist.npz", x_train=np.zeros((9, 28, 28), "u1"), y_train=np.arange(9))
    rs.export(root / "out", root / "mnist/3.0.1", "tfds")
    lerobot_folder.write(root / "pusht", "image")
    write(root / "rows.csv", "a,part\n1,train\n2,test\n")
    names = [example["image/filename"][0].decode() for example in rs.open(root / "out")]
    write(root / "scores.csv", "\n".join(["file,score", *(f"{name},0.5" for name in names)]))


def run(name: str, value: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, **known: Any) -> None:
    """Run the example of a docstring in a folder; an example may use `known`."""
    code = example_of(value)
    assert code is not None, name
    monkeypatch.chdir(folder)
    variables: dict[str, Any] = {"rs": rs, "recordsmith": rs, "np": np, "dataset": rs.open("out")}
    variables |= known
    if re.search(r'\b(pack|plan)\(.*"out"', code):
        shutil.rmtree("out")
    if code.startswith(">>>"):
        parsed = doctest.DocTestParser().get_doctest(code, variables, name, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        output: list[str] = []
        assert runner.run(parsed, out=output.append).failed == 0, "".join(output)
    else:
        exec(compile(code, name, "exec"), variables)


@pytest.mark.parametrize(("name", "value"), MEMBERS, ids=[name for name, _ in MEMBERS])
def test_the_example_runs(
    name: str, value: Any, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = example_of(value) or ""
    assert "+SKIP" not in code
    known: dict[str, Any] = {key: getattr(rs, key) for key in NAMES if key != "open"}
    for library in ("datasets", "pandas", "polars"):
        if re.search(rf"\b(to_)?{library}\b", code):
            known[library] = pytest.importorskip(library)
    if "rs.view(" in code:
        pytest.importorskip("uvicorn")
    run(name, value, shutil.copytree(prepared, tmp_path / "folder"), monkeypatch, **known)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(
    name: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    if _IN_CHILD not in os.environ:  # frameworks start threads, and other tests fork
        own_id = f"{__file__}::test_the_examples_of_a_module_run[{name}]"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", own_id],
            env={**os.environ, _IN_CHILD: "1"},
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "1 passed" in done.stdout
        return
    module = importlib.import_module(f"recordsmith.{name}")
    functions = [
        (key, value)
        for key, value in vars(module).items()
        if (inspect.isfunction(value) or (inspect.isclass(value) and example_of(value)))
        and value.__module__.startswith(module.__name__)
        and not key.startswith("_")
    ]
    assert functions
    for key, value in functions:
        folder = shutil.copytree(prepared, tmp_path / key)
        features = {"image": rs.Image(size=32), "label": "image/class/label"}
        loader = rs.Loader(rs.open(folder / "out"), features, batch_size=8)
        own = vars(importlib.import_module(value.__module__))
        run(f"{name}.{key}", value, folder, monkeypatch, loader=loader, **own)
