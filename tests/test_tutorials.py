"""examples/tutorials: the scripts print what they say, and TensorFlow reads what they write."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs

pytestmark = pytest.mark.slow  # runs all scripts
TUTORIALS = Path(__file__).parent.parent / "examples" / "tutorials"
README = (TUTORIALS / "README.md").read_text("utf-8")
SCRIPTS = (
    "voc_pairs",
    "voc_batches",
    "class_folders",
    "image_sizes",
    "rows",
    "flower_records",
    "flower_batches",
)
FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")
ROWS_COLS = {"filename": "bytes", "rows": "int64", "cols": "int64", "channels": "int64",
             "image": "bytes", "label": "int64"}  # fmt: skip
WAYS = ("floats", "raw", "bytes", "jpeg-100", "jpeg-95")


class Ran(NamedTuple):
    """A script that has run: where, and the lines it printed."""

    folder: Path
    lines: list[str]


def run_script(name: str, *arguments: Path) -> Ran:
    done = subprocess.run(
        [sys.executable, "-W", "error", TUTORIALS / f"{name}.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said, *lines = done.stdout.splitlines()
    return Ran(Path(said.removeprefix("in ")), lines)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Every script, run in a folder of its own."""
    folder = tmp_path_factory.mktemp("tutorials")
    done = {name: run_script(name, folder / name) for name in SCRIPTS}
    assert {name: ran.folder for name, ran in done.items()} == {
        name: folder / name for name in SCRIPTS
    }
    return done


def kinds(folder: Path) -> dict[str, str]:
    return {key: feature.kind for key, feature in rs.open(folder).schema.features.items()}


def parsed(tf: Any, folder: Path, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All records of a folder as TensorFlow parses them by a tutorial's spec."""
    paths = sorted(str(path) for path in folder.glob("*.tfrecord*"))
    records = tf.data.TFRecordDataset(paths)
    return [tf.io.parse_single_example(record, spec) for record in records]


def one(tf: Any, kind: str) -> Any:
    """The spec of a feature with one value."""
    types = {"int64": tf.int64, "bytes": tf.string, "float": tf.float32}
    return tf.io.FixedLenFeature([], types[kind])


def pixels_of(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.array(image)


def test_the_readme_lists_each_script_and_scripts_are_short() -> None:
    scripts = {path.stem for path in TUTORIALS.glob("*.py")} - {"stand_ins"}
    assert scripts == set(SCRIPTS)
    for name in SCRIPTS:
        text = (TUTORIALS / f"{name}.py").read_text("utf-8")
        assert len(text.splitlines()) <= 50
        assert f"python examples/tutorials/{name}.py [FOLDER" in (
            ast.get_docstring(ast.parse(text)) or ""
        )
        assert f"]({name}.py)" in README


# -- images and masks ----------------------------------------------------------------------------


def test_images_and_masks_are_unchanged(ran: dict[str, Ran]) -> None:
    assert ran["voc_pairs"].lines == ["True True"] * 6
    assert kinds(ran["voc_pairs"].folder / "pairs") == {
        "height": "int64",
        "width": "int64",
        "image_raw": "bytes",
        "mask_raw": "bytes",
    }


def test_tensorflow_reads_images_and_masks(tf: Any, ran: dict[str, Ran]) -> None:
    voc, out = (ran["voc_pairs"].folder / name for name in ("VOC", "pairs"))
    examples = parsed(tf, out, {key: one(tf, kind) for key, kind in kinds(out).items()})
    names = sorted(path.stem for path in (voc / "JPEGImages").iterdir())
    classes = set()
    for name, example in zip(names, examples, strict=True):
        shape = (int(example["height"]), int(example["width"]))
        image = tf.reshape(tf.io.decode_raw(example["image_raw"], tf.uint8), (*shape, 3))
        mask = tf.reshape(tf.io.decode_raw(example["mask_raw"], tf.uint8), shape)
        encoded = (voc / "JPEGImages" / f"{name}.jpg").read_bytes()
        np.testing.assert_array_equal(image, tf.io.decode_jpeg(encoded))
        assert np.allclose(mask, pixels_of(voc / "SegmentationClass" / f"{name}.png"))
        classes |= set(np.unique(mask).tolist())
    assert classes == {0, 8, 12, 255}


def test_images_and_masks_are_batched(ran: dict[str, Ran]) -> None:
    folder, lines = ran["voc_batches"]
    assert lines == [
        "30 batches",
        "uint8 (2, 384, 384, 3) uint8 (2, 384, 384)",
        "classes [0, 8, 12, 255]",
        "10 epochs",
    ]
    with Image.open(folder / "batch.png") as page:
        assert page.width > 2 * 288


# -- class folders ---------------------------------------------------------------------------------


def test_class_folders_give_the_files_and_labels_of_slim(ran: dict[str, Ran]) -> None:
    folder, lines = ran["class_folders"]
    assert lines == [
        "flowers_train_00000-of-00002.tfrecord 17",
        "flowers_train_00001-of-00002.tfrecord 18",
        "flowers_validation_00000-of-00002.tfrecord 7",
        "flowers_validation_00001-of-00002.tfrecord 8",
        *(f"{label}:{name}" for label, name in enumerate(FLOWERS)),
        "image/class/label int64",
        "image/encoded bytes",
        "image/format bytes",
        "image/height int64",
        "image/width int64",
    ]
    out = folder / "flowers-slim"
    assert {path.name for path in out.glob("*.tfrecord")} == {line.split()[0] for line in lines[:4]}
    assert (out / "labels.txt").read_text() == "".join(f"{line}\n" for line in lines[4:9])


def test_tensorflow_reads_class_folders(tf: Any, ran: dict[str, Ran]) -> None:
    flowers, out = (ran["class_folders"].folder / name for name in ("flowers", "flowers-slim"))
    spec = {key: one(tf, kind) for key, kind in kinds(out).items()}
    labels = {
        path.read_bytes(): FLOWERS.index(path.parent.name) for path in flowers.glob("*/*.jpg")
    }
    found = {}
    for example in parsed(tf, out, spec):
        encoded = example["image/encoded"].numpy()
        assert example["image/format"] == b"jpg"
        size = (int(example["image/height"]), int(example["image/width"]))
        assert tf.io.decode_jpeg(encoded).shape == (*size, 3)
        found[encoded] = int(example["image/class/label"])
    assert found == labels
    assert len(found) == 50


# -- sizes -----------------------------------------------------------------------------------------


def sizes_in(lines: list[str]) -> dict[str, float]:
    """In KB, by the names of the folders."""
    numbers = [re.fullmatch(r".{21} +([\d.]+) KB", line) for line in lines]
    return {way: float(number[1]) for way, number in zip(WAYS, numbers, strict=True) if number}


def test_sizes_are_those_of_the_images(ran: dict[str, Ran]) -> None:
    folder, lines = ran["image_sizes"]
    paths = sorted((folder / "pets").iterdir())
    files = {path: path.stat().st_size for path in paths}
    pixels = {path: pixels_of(path).size for path in paths}
    expected = {
        "floats": sum(n * (4 if path.suffix == ".png" else 1) for path, n in pixels.items()),
        "raw": sum(pixels.values()),
        "bytes": sum(files.values()),
    }
    sizes = sizes_in(lines)
    for way, size_bytes in expected.items():
        assert size_bytes < 1000 * sizes[way] < size_bytes + 200 * len(paths), way
    assert sizes["jpeg-95"] < sizes["jpeg-100"] < sizes["bytes"] < sizes["raw"] < sizes["floats"]


def test_sizes_are_those_of_the_tutorial(shared_data: Path, tmp_path: Path) -> None:
    pets = shared_data / "sources" / "Prasad9+TFRecord_Images" / "Images"
    sizes = sizes_in(run_script("image_sizes", tmp_path, pets).lines)
    assert sizes["floats"] == pytest.approx(20_300, abs=50)
    assert sizes["bytes"] == pytest.approx(1200, abs=50)
    assert sizes["jpeg-100"] == pytest.approx(579.5, rel=0.01)  # another encoder may differ
    assert sizes["jpeg-95"] == pytest.approx(402.4, rel=0.01)
    for size in sizes.values():
        assert f"{size:,.1f} KB" in README


def test_tensorflow_reads_each_way_to_store_an_image(tf: Any, ran: dict[str, Ran]) -> None:
    folder = ran["image_sizes"].folder
    spec = {key: one(tf, kind) for key, kind in ROWS_COLS.items()}
    for way in WAYS:
        assert kinds(folder / way) == ROWS_COLS
        examples = parsed(tf, folder / way, spec)
        assert len(examples) == 10
        for example in examples:
            name = example["filename"].numpy().decode()
            original = pixels_of(folder / "pets" / name)
            if way == "raw":
                original = tf.io.decode_image((folder / "pets" / name).read_bytes()).numpy()
            shape = tuple(int(example[key]) for key in ("rows", "cols", "channels"))
            is_png = name.endswith(".png")
            assert int(example["label"]) == ("cat", "dog").index(name[:3])
            if way in ("floats", "raw"):
                assert shape == original.shape
                dtype = tf.float32 if way == "floats" and is_png else tf.uint8
                image = tf.reshape(tf.io.decode_raw(example["image"], dtype), shape)
                scale = 255 if dtype == tf.float32 else 1
                np.testing.assert_allclose(image, original / scale, rtol=1e-6)
            elif way == "bytes" or not is_png:
                assert example["image"] == (folder / "pets" / name).read_bytes()
                assert tf.io.decode_image(example["image"]).shape == shape
            else:
                given = tf.io.decode_png((folder / "pets" / name).read_bytes(), channels=3)
                quality = int(way.removeprefix("jpeg-"))
                reference = tf.io.decode_jpeg(tf.io.encode_jpeg(given, quality=quality))
                image = tf.io.decode_jpeg(example["image"])
                assert image.shape == shape == (*original.shape[:2], 3)
                difference = np.abs(image.numpy().astype(int) - reference.numpy())
                assert difference.mean() < 0.1  # bit for bit with the same JPEG library


# -- rows ------------------------------------------------------------------------------------------


def test_rows_are_printed_as_examples_and_as_columns(ran: dict[str, Ran]) -> None:
    folder, lines = ran["rows"]
    assert "'float_list2': array([256.78,  13.9 ], dtype=float32)" in lines[0]
    assert "'str_list1': [b'String 200']" in lines[1]
    assert lines[2:] == [
        "[108  37] [ 2.45 84.3 ] [b'String 100', b'String 200']",
        "[256.78  13.9 ]",
        "[  1.34 843.9   65.22]",
    ]
    columns = rs.open(folder / "rows").read_columns()
    assert isinstance(columns.pop("float_list2"), rs.RaggedArray)
    assert {key: column.shape for key, column in columns.items()} == {
        "int_list1": (2,),
        "float_list1": (2,),
        "str_list1": (2,),
    }


def test_tensorflow_reads_rows(tf: Any, ran: dict[str, Ran]) -> None:
    spec = {
        "int_list1": one(tf, "int64"),
        "float_list1": one(tf, "float"),
        "str_list1": one(tf, "bytes"),
        "float_list2": tf.io.VarLenFeature(tf.float32),
    }
    first, second = parsed(tf, ran["rows"].folder / "rows", spec)
    for example, values in (
        (first, (108, 2.45, b"String 100", [256.78, 13.9])),
        (second, (37, 84.3, b"String 200", [1.34, 843.9, 65.22])),
    ):
        assert int(example["int_list1"]) == values[0]
        assert float(example["float_list1"]) == np.float32(values[1])
        assert example["str_list1"] == values[2]
        np.testing.assert_array_equal(example["float_list2"].values, np.float32(values[3]))


# -- flowers in one file ---------------------------------------------------------------------------


def test_flowers_are_in_one_file(ran: dict[str, Ran]) -> None:
    folder, lines = ran["flower_records"]
    assert [path.name for path in (folder / "records").glob("*.tfrecord*")] == ["flower.tfrecords"]
    assert lines[:4] == ["50 flowers of 5 classes", "encoded bytes", "label int64", "text bytes"]
    for line in lines[4:]:
        label, text = line.split()[:2]
        assert FLOWERS[int(label)] == text
        assert line.endswith(" bytes of JFIF")
    assert len(lines) == 7


def test_tensorflow_reads_flowers(tf: Any, ran: dict[str, Ran]) -> None:
    folder = ran["flower_records"].folder
    spec = {"label": one(tf, "int64"), "text": one(tf, "bytes"), "encoded": one(tf, "bytes")}
    assert set(kinds(folder / "records")) == set(spec)
    files = {path.read_bytes(): path for path in (folder / "flowers").glob("*/*.jpg")}
    for example in parsed(tf, folder / "records", spec):
        path = files.pop(example["encoded"].numpy())
        assert example["text"] == path.parent.name.encode()
        assert int(example["label"]) == FLOWERS.index(path.parent.name)
        decoded = tf.io.decode_jpeg(example["encoded"], dct_method="INTEGER_ACCURATE").numpy()
        np.testing.assert_allclose(decoded.astype(int), pixels_of(path), atol=2)
    assert not files


def test_a_terminal_shows_the_progress_bar(tmp_path: Path, terminal: Any) -> None:
    code, shown, _ = terminal.run([sys.executable, TUTORIALS / "flower_records.py", tmp_path])
    assert code == 0
    assert "packing" in shown
    assert "100%" in shown


# -- the command line ------------------------------------------------------------------------------


def test_the_commands_write_the_same_bytes(
    ran: dict[str, Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = dict(re.findall(r"^## (\w+)\.py\n(.*?)(?=^## |\Z)", README, re.DOTALL | re.MULTILINE))
    assert set(shown) == set(SCRIPTS)
    for name, text in shown.items():
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        for given in ("VOC", "flowers", "pets"):
            if (ran[name].folder / given).is_dir():
                shutil.copytree(ran[name].folder / given, given)
        for rows in re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            Path("rows.jsonl").write_text(rows)
        commands = [shlex.split(line) for line in re.findall(r"^\$ (.+)$", text, re.MULTILINE)]
        assert commands or name.endswith("_batches")  # no command trains
        for command in commands:
            assert command[:2] == ["recordsmith", "pack"]
            done = subprocess.run(
                [sys.executable, "-m", *command], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            by_command, by_script = (
                {path.name: path.read_bytes() for path in base.glob("*.tfrecord*")}
                for base in (Path(command[3]), ran[name].folder / command[3])
            )
            assert by_command == by_script
            assert by_command


def test_flowers_are_batched(ran: dict[str, Ran]) -> None:
    folder, lines = ran["flower_batches"]
    assert len(lines) == 6
    for line in lines[:5]:
        assert re.fullmatch(r"float32 \(32, 192, 192, 3\) 0\.\d\d to [01]\.\d\d \[[0-4 ]+\]", line)
    assert len(set(lines[:5])) == 5
    assert lines[5] == "epoch 5"  # an epoch of fifty flowers has one whole batch
    assert (folder / "batch.png").exists()
