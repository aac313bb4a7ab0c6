"""Images with masks: pairing, formats of masks, and notices about the other files."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.image import voc_colours
from recordsmith.sources import ImagePairs, Listing, Source
from recordsmith.sources.pairs.image_pairs import VOC_CLASSES

from ..raising import raises
from ..reading import read_sample
from .drawn_folders import write as drawn
from .source_contract import SourceContract, left_out

MASK = "image/segmentation/class/encoded"
NUMBERS = np.array([[0, 1, 2, 255], [3, 3, 0, 1], [20, 0, 0, 9]], np.uint8)  # 3 high, 4 wide


def png(image: Image.Image | np.ndarray, **options: Any) -> bytes:
    out = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(
        out, "PNG", **options
    )
    return out.getvalue()


def palette_png(numbers: np.ndarray = NUMBERS) -> bytes:
    image = Image.fromarray(numbers, "L").convert("P")
    image.putpalette([channel for colour in voc_colours() for channel in colour])
    image.frombytes(numbers.tobytes())
    return png(image)


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@pytest.fixture
def image(images: ModuleType) -> bytes:
    return images.jpeg(width=4, height=3)  # type: ignore[no-any-return]


def names(listing: Listing) -> list[str]:
    return [sample.name for sample in listing.samples]


def values(data: bytes) -> np.ndarray:
    """The numbers of a mask, by Pillow."""
    with Image.open(io.BytesIO(data)) as image:
        return np.array(image)


def read_one(source: Source) -> tuple[dict[str, Any], list[str]]:
    """The features of the only sample, and the notes on it."""
    (sample,) = source.list_samples().samples
    notes: list[str] = []
    return dict(read_sample(source, sample, lambda what, _: notes.append(what))), notes


def problem_of(source: Source) -> str:
    """What is wrong with the only sample."""
    (sample,) = source.list_samples().samples
    with pytest.raises(rs.SourceError) as caught:
        read_sample(source, sample)
    assert len(caught.value.problems) == 1
    assert str(caught.value).startswith(caught.value.problems[0])
    return str(caught.value)


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:
        for number in range(4):
            image = images.jpeg(seed=number, width=4, height=3)
            write(folder, {f"images/é {number}.jpg": image, f"masks/é {number}.png": png(NUMBERS)})
        return ImagePairs(folder)


# -- which belong together -----------------------------------------------------------------------


def test_features_are_those_of_the_image_and_the_masks_file(tmp_path: Path, image: bytes) -> None:
    write(tmp_path, {"JPEGImages/x.jpg": image, "SegmentationClass/x.png": palette_png()})
    features, notes = read_one(ImagePairs(tmp_path))
    assert features == {
        "image/encoded": image,
        "image/format": "jpeg",
        "image/height": 3,
        "image/width": 4,
        "image/filename": b"JPEGImages/x.jpg",
        "image/segmentation/class/encoded": palette_png(),
        "image/segmentation/class/format": "png",
    }
    assert notes == []


def test_yolo_labels_are_not_masks(tmp_path: Path, image: bytes) -> None:
    write(tmp_path, {"images/x.jpg": image, "labels/x.txt": b"0 0.5 0.5 1 1"})
    with raises(rs.SourceError, path=tmp_path, match="images and labels"):
        ImagePairs(tmp_path).list_samples()


def test_given_folders(tmp_path: Path, image: bytes) -> None:
    write(tmp_path, {"in/photo/a/x.jpg": image, "drawn/a/x_seg.png": png(NUMBERS)})
    source = ImagePairs(tmp_path, images="in/photo", masks=tmp_path / "drawn")
    assert names(source.list_samples()) == ["in/photo/a/x.jpg"]
    assert source.describe() == {
        "kind": "ImagePairs",
        "folder": tmp_path.name,
        "images": "in/photo",
        "masks": "drawn",
    }
    assert read_one(source)[0][MASK] == png(NUMBERS)
    with raises(rs.OptionError, option="masks", match="outside"):
        ImagePairs(tmp_path / "in", images="photo", masks=tmp_path / "drawn")


def test_files_without_a_partner_are_noticed(tmp_path: Path, image: bytes) -> None:
    files = {f"images/{number}.jpg": image for number in range(5)}
    files |= {f"masks/{number}.png": png(NUMBERS) for number in range(2, 6)}
    files |= {"images/words.txt": b"words", "masks/.hidden.png": b"", "README": b"words"}
    listing = ImagePairs(write(tmp_path, files)).list_samples()
    assert names(listing) == ["images/2.jpg", "images/3.jpg", "images/4.jpg"]
    assert left_out(listing) == {
        "without an annotation": ["images/0.jpg", "images/1.jpg"],
        "annotations without an image": ["masks/5.png"],
        "hidden": ["masks/.hidden.png"],
        "not images": ["images/words.txt"],
        "documentation or programs": ["README"],
    }
    assert len(listing.notices) == 5


def test_an_ambiguous_name_is_an_error(tmp_path: Path, image: bytes) -> None:
    write(tmp_path, {"images/x.jpg": image, "images/x.png": image, "images/y.jpg": image})
    write(tmp_path, {"masks/x.png": png(NUMBERS), "masks/y.png": png(NUMBERS)})
    write(tmp_path, {"masks/y_mask.png": png(NUMBERS)})  # the same name counts more
    with raises(rs.SourceError, path=tmp_path / "images", match=r"x\.jpg and x\.png"):
        ImagePairs(tmp_path).list_samples()
    (tmp_path / "images" / "x.png").unlink()
    source = ImagePairs(tmp_path)
    listing = source.list_samples()
    assert names(listing) == ["images/x.jpg", "images/y.jpg"]
    assert read_sample(source, listing.samples[1])[MASK] == png(NUMBERS)
    assert [*left_out(listing).values()] == [["masks/y_mask.png"]]
    assert len(listing.notices) == 1


def test_no_pairs_at_all(tmp_path: Path, image: bytes) -> None:
    with raises(rs.SourceError, path=tmp_path, match="is empty"):
        ImagePairs(tmp_path).list_samples()
    write(tmp_path, {"images/img_1.jpg": image, "masks/mask-of-2.png": png(NUMBERS)})
    with raises(rs.SourceError, path=tmp_path, match="found images and masks"):
        ImagePairs(tmp_path).list_samples()
    with pytest.raises(rs.SourceError, match=r"img_1\.jpg and mask-of-2\.png") as caught:
        ImagePairs(tmp_path, images="images", masks="masks").list_samples()
    assert len(caught.value.problems) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(rs.SourceError, match=r"no images .*/empty"):
        ImagePairs(tmp_path, images="images", masks="empty").list_samples()
    with raises(rs.FileAccessError, path=tmp_path / "nothing"):
        ImagePairs(tmp_path, images="images", masks="nothing").list_samples()
    with raises(rs.OptionError, value=tmp_path / "images/img_1.jpg", expected="a folder"):
        ImagePairs(tmp_path / "images" / "img_1.jpg").list_samples()


@pytest.mark.parametrize(
    ("options", "option", "value"),
    [
        ({"images": "a"}, "masks", None),
        ({"masks": "a"}, "images", None),
        *(
            ({"colours": colours}, "colours", repr(colours))
            for colours in (
                *("cityscapes", {}, {(1, 2): 0}, {(1, 2, 256): 0}),
                *({(1, 2, 3): "x"}, {(1, 2, 3): 65536}),
            )
        ),
    ],
)
def test_invalid_options(options: dict[str, Any], option: str, value: str | None) -> None:
    with pytest.raises(rs.OptionError) as caught:
        ImagePairs("a", **options)
    assert (caught.value.option, caught.value.value) == (option, value)


# -- lists ---------------------------------------------------------------------------------------


def write_voc(root: Path, lists: dict[str, list[str]], images: ModuleType) -> Path:
    """PASCAL VOC's folders, with an image and a mask for every name of the lists."""
    for number, name in enumerate(sorted({name for lines in lists.values() for name in lines})):
        image = images.jpeg(seed=number, width=4, height=3)
        mask = palette_png()
        write(root, {f"JPEGImages/{name}.jpg": image, f"SegmentationClass/{name}.png": mask})
    for name, lines in lists.items():
        text = "".join(f"{line}\n" for line in lines)
        write(root, {f"ImageSets/Segmentation/{name}.txt": text.encode()})
    return root


def test_lists_of_pascal_voc_are_splits(tmp_path: Path, images: ModuleType) -> None:
    lists = {"val": ["c"], "train": ["d", "a 1", "b"], "trainval": ["a 1", "b", "c", "d"]}
    root = write_voc(tmp_path / "VOCdevkit" / "VOC2012", lists, images)
    mask = palette_png()
    write(root, {"JPEGImages/e.jpg": b"", "JPEGImages/f.jpg": b"", "SegmentationClass/f.png": mask})
    write(root, {"Annotations/a.xml": b"", "SegmentationObject/a.png": mask})
    listing = ImagePairs(tmp_path / "VOCdevkit").list_samples()
    assert [(sample.name, sample.split) for sample in listing.samples] == [
        ("VOC2012/JPEGImages/a 1.jpg", "train"),
        ("VOC2012/JPEGImages/b.jpg", "train"),
        ("VOC2012/JPEGImages/c.jpg", "val"),
        ("VOC2012/JPEGImages/d.jpg", "train"),
    ]
    assert listing.splits == ("train", "val")
    assert left_out(listing) == {
        "not in the lists of the dataset": [
            "VOC2012/JPEGImages/e.jpg",
            "VOC2012/JPEGImages/f.jpg",
            "VOC2012/SegmentationClass/f.png",
        ],
        "not images": [
            "VOC2012/Annotations/a.xml",
            "VOC2012/ImageSets/Segmentation/trainval.txt",
        ],
        "outside what is read": ["VOC2012/SegmentationObject/a.png"],
    }


def test_each_wrong_name_of_a_list_is_reported_with_its_line(
    tmp_path: Path, images: ModuleType
) -> None:
    lists = {"train": ["a", "gone", "", "no mask", "a"], "val": ["b", "a", "../../x"]}
    write_voc(tmp_path, {"train": ["a", "no mask"], "val": ["b"]}, images)
    for name, lines in lists.items():
        (tmp_path / "ImageSets" / "Segmentation" / f"{name}.txt").write_text("\r\n".join(lines))
    (tmp_path / "SegmentationClass" / "no mask.png").unlink()
    listing = ImagePairs(tmp_path).list_samples()
    folder = tmp_path / "ImageSets" / "Segmentation"
    assert names(listing) == ["JPEGImages/a.jpg", "JPEGImages/b.jpg"]
    gone = f"{folder}/train.txt, line 2: gone and {folder}/val.txt, line 3: ../../x"
    assert listing.notices[:3] == (
        f"1 repeated name in lists packed once: {folder}/train.txt, line 5: a",
        f"1 name in two lists packed in the first: {folder}/val.txt, line 2: a",
        f"2 names in lists without an image skipped: {gone}",
    )
    assert left_out(listing) == {"without an annotation": ["JPEGImages/no mask.jpg"]}
    checks = [finding.check.value for finding in rs.lint(tmp_path).findings]
    assert {"image-without-annotation", "annotation-without-image"} <= {*checks}


# -- what a mask may be --------------------------------------------------------------------------

TO_PNG = "masks of other formats were stored as PNG with the same values"
DEEP = NUMBERS.astype(np.uint16) * 257
VOC = np.array(list(voc_colours()), np.uint8)[NUMBERS]


def array(values: np.ndarray) -> Image.Image:
    return Image.fromarray(values)


def with_colours(*pixels: tuple[int, int, tuple[int, int, int]]) -> Image.Image:
    """The mask in VOC's colours with other ones at some pixels."""
    changed = VOC.copy()
    for row, column, colour in pixels:
        changed[row, column] = colour
    return Image.fromarray(changed)


def photo(side: int) -> Image.Image:
    random = np.random.default_rng(side)
    return Image.fromarray(random.integers(256, size=(side, side, 3), dtype=np.uint8))


KEPT = {
    "palette": palette_png(),
    "grey": png(NUMBERS),
    "16 bits": png(DEEP),
    "1 bit": png(array(NUMBERS % 2 == 1)),
}


@pytest.mark.parametrize("kind", KEPT)
def test_masks_of_numbers_keep_their_bytes(tmp_path: Path, image: bytes, kind: str) -> None:
    write(tmp_path, {"images/x.jpg": image, "masks/x.png": KEPT[kind]})
    features, notes = read_one(ImagePairs(tmp_path))
    assert features[MASK] == KEPT[kind]
    assert notes == []


CONVERTED: dict[str, tuple[str, Image.Image, dict[str, Any], np.ndarray, str]] = {
    "grey": ("x.tif", array(NUMBERS), {}, NUMBERS, TO_PNG),
    "deep": ("x.tif", array(DEEP), {}, DEEP, TO_PNG),
    "long": ("x.tif", array(DEEP.astype(np.int32)), {}, DEEP, TO_PNG),
    "bits": ("x.tif", array(NUMBERS % 2 == 1), {}, NUMBERS % 2, TO_PNG),
    "gif": ("x.gif", Image.open(io.BytesIO(palette_png())), {}, NUMBERS, TO_PNG),
    "bmp": ("x.bmp", array(NUMBERS), {}, NUMBERS, TO_PNG),
    "pgm": ("x.pgm", array(NUMBERS), {}, NUMBERS, TO_PNG),
    "alpha": ("x.png", array(NUMBERS).convert("LA"), {}, NUMBERS, "alpha"),
    "colours": ("x.png", array(VOC), {"colours": "voc"}, NUMBERS, "colours to class"),
    "colours and alpha": (
        "x.png", array(VOC).convert("RGBA"), {"colours": "voc"}, NUMBERS, "alpha channel"),
    # as drawing programs save it: colours in the order in which they come
    "another palette": (
        "x.png", array(VOC).quantize(16, dither=Image.Dither.NONE), {"colours": "voc"}, NUMBERS,
        "colours to class"),
    "the same palette": (
        "x.png", Image.open(io.BytesIO(palette_png())), {"colours": "voc"}, NUMBERS, ""),
    "levels": ("x.png", array(NUMBERS), {"colours": "grey"}, NUMBERS, "colours to class"),
    "a table": (
        "x.png", with_colours((0, 0, (1, 1, 1))),
        {"colours": {(1, 1, 1): 300, **dict.fromkeys(voc_colours(), 0)}},
        np.where(np.arange(12).reshape(3, 4) == 0, 300, 0), "colours to class"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONVERTED)
def test_masks_become_class_numbers(tmp_path: Path, image: bytes, kind: str) -> None:
    name, mask, options, expected, note = CONVERTED[kind]
    write(tmp_path, {"images/x.jpg": image, "masks/.keep": b""})
    mask.save(tmp_path / "masks" / name, **({"optimize": False} if name.endswith("gif") else {}))
    features, notes = read_one(ImagePairs(tmp_path, **options))
    assert features["image/segmentation/class/format"] == "png"
    assert values(features[MASK]).tolist() == expected.tolist()
    if note:
        assert any(note in each for each in notes)
    else:
        assert notes == []
        assert features[MASK] == (tmp_path / "masks" / name).read_bytes()


FRAMES = {"save_all": True, "append_images": [array(NUMBERS[::-1].copy())]}
REFUSED: dict[str, tuple[str, Image.Image, dict[str, Any], str]] = {
    "size": ("x.png", array(np.zeros((9, 7), np.uint8)), {},
        r"the mask is 7x9, but its image is 4x3.*nearest-neighbour"),
    "some colours": ("x.png", array(np.tile(np.uint8([[[1, 2, 3], [4, 5, 6]]]), (3, 2, 1))), {},
        r"has colours \(2 colours: \(.*\); expected class numbers. Map .* colours"),
    "colours of VOC": ("x.png", array(VOC), {},
        r"7 colours: \(0, 0, 0\), .*, ….* pass colours='voc'"),
    "grey as RGB": ("x.png", array(np.stack([NUMBERS] * 3, -1)), {}, "pass colours='grey'"),
    "floats": ("x.tif", array(NUMBERS.astype(np.float32)), {}, "the pixels are floats"),
    "negative": ("x.tif", array(NUMBERS.astype(np.int32) - 1), {},
        "values range from -1 to 254; expected 0 to 65535"),
    "frames": ("x.tif", array(NUMBERS), {}, "the mask has 2 frames"),
    "JPEG": ("x.jpg", photo(4).crop((0, 0, 4, 3)), {}, "the mask is a JPEG"),
    "unknown colours": (
        "x.png", with_colours((1, 2, (1, 2, 3)), (2, 0, (4, 5, 6)), (2, 1, (1, 2, 3))),
        {"colours": "voc"}, r"3 pixels of 2 colours .* x 2, y 1: \(1, 2, 3\)"),
    "numbers": ("x.png", array(NUMBERS), {"colours": "voc"}, "leave out colours"),
    "deep numbers": ("x.png", array(DEEP), {"colours": "voc"}, "gray with 16 bits"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_invalid_masks_are_explained(tmp_path: Path, image: bytes, kind: str) -> None:
    name, mask, options, words = REFUSED[kind]
    write(tmp_path, {"images/x.jpg": image, "masks/.keep": b""})
    mask.save(tmp_path / "masks" / name, **(FRAMES if kind == "frames" else {}))
    problem = problem_of(ImagePairs(tmp_path, images="images", masks="masks", **options))
    assert str(tmp_path / "masks" / name) in problem
    assert re.search(words, problem), problem


def test_a_photo_is_no_mask(tmp_path: Path, images: ModuleType) -> None:
    write(tmp_path, {"images/x.jpg": images.jpeg(width=30, height=30)})
    write(tmp_path, {"masks/x.png": png(photo(30))})
    assert "too many for classes: is it an image" in problem_of(ImagePairs(tmp_path))


def test_damaged_masks_are_named(tmp_path: Path, image: bytes) -> None:
    write(tmp_path, {"images/x.jpg": image, "masks/x.png": png(NUMBERS)[:-16]})
    with raises(rs.CorruptDataError, defect="unreadable-image") as caught:
        read_one(ImagePairs(tmp_path))
    assert caught.value.path == str(tmp_path / "masks" / "x.png")


@pytest.mark.parametrize("orientation", [1, 2, 3, 6])
def test_the_orientation_of_an_image(tmp_path: Path, images: ModuleType, orientation: int) -> None:
    """A mask of the stored size is used, with a note in doubt; one of the shown size is refused."""
    write(tmp_path, {"masks/x.png": png(NUMBERS), "images/.keep": b""})
    exif = Image.Exif()
    exif[0x0112] = orientation
    images.noise(4, 3).save(tmp_path / "images" / "x.jpg", exif=exif)
    _, notes = read_one(ImagePairs(tmp_path))
    assert len(notes) == (orientation in (2, 3))
    assert all("EXIF orientation" in note for note in notes)
    if orientation == 6:
        write(tmp_path, {"masks/x.png": png(NUMBERS.T.copy())})
        problem = problem_of(ImagePairs(tmp_path))
        assert re.search(r"the mask is 3x4.*orientation 6.*4x3.*exif_transpose", problem)


def test_a_table_of_colours_is_described(tmp_path: Path) -> None:
    table = {(255, 0, 0): 300, (0, 0, 0): 0}
    described = ImagePairs(tmp_path, colours=table).describe()
    assert described["colours"] == [[0, 0, 0, 0], [255, 0, 0, 300]]


# -- packed, and read by TensorFlow --------------------------------------------------------------


def test_masks_are_read_by_tensorflow_with_equal_values(
    tf: Any, tmp_path: Path, images: ModuleType
) -> None:
    random = np.random.default_rng(0)
    masks: dict[str, np.ndarray] = {}
    for number in range(6):
        dtype = np.uint16 if number % 2 else np.uint8
        mask = random.integers(np.iinfo(dtype).max + 1, size=(5 + number, 8)).astype(dtype)
        masks[f"images/{number}.jpg"] = mask
        image = images.jpeg(seed=number, width=8, height=5 + number)
        write(tmp_path / "in", {f"masks/{number}.png": png(mask), f"images/{number}.jpg": image})
    rs.pack(ImagePairs(tmp_path / "in"), tmp_path / "out", shards=2)
    spec = {key: tf.io.FixedLenFeature((), tf.string) for key in ("image/filename", MASK)}
    seen = set()
    files = [str(path) for path in sorted((tmp_path / "out").glob("*.tfrecord"))]
    for record in tf.data.TFRecordDataset(files):
        parsed = tf.io.parse_single_example(record, spec)
        name = parsed["image/filename"].numpy().decode()
        expected = masks[name]
        dtype = tf.as_dtype(expected.dtype)
        levels = tf.io.decode_png(parsed[MASK], channels=1, dtype=dtype).numpy()[:, :, 0]
        assert levels.tolist() == expected.tolist()
        seen.add(name)
    assert seen == set(masks)


@pytest.mark.parametrize(
    ("names", "listed", "expected"),
    [
        ("a{1-4}", "__ignore__\n_background_\ncat\n", ("_background_", "cat")),
        ("2007_00003{1-4}", "", VOC_CLASSES),
        ("2007_00003{1-4}", "_background_\ncat\n", ("_background_", "cat")),
        ("a{1-4}", "", None),
    ],
)
def test_classes_of_masks(
    tmp_path: Path, names: str, listed: str, expected: tuple[str, ...] | None
) -> None:
    root = drawn(
        tmp_path / "x",
        {f"JPEGImages/{names}.jpg": "photo", f"SegmentationClass/{names}.png": "palette"},
    )
    if listed:
        (root / "class_names.txt").write_text(listed)
    rs.pack(root, tmp_path / "out")
    assert rs.open(tmp_path / "out").class_names == expected
    assert not [each for each in rs.lint(root).findings if each.check == "empty-class"]


def _roboflow(root: Path, tables: dict[str, str]) -> Path:
    """Roboflow's PNG masks: in the folder of each split a table of pixel values."""
    ends = {"_jpg.rf.ab.jpg": "photo", "_jpg.rf.ab_mask.png": "numbers"}
    drawn(root, {f"{split}/{{0-4}}{end}": kind for split in tables for end, kind in ends.items()})
    for split, text in tables.items():
        (root / split / "_classes.csv").write_text(text)
    return root


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("Pixel Value, Class\n0, background\n1, sofa bed\n", ("background", "sofa bed")),
        ("Pixel Value,Class\r\n0,background\r\n2,sofa\r\n", ("background", None, "sofa")),
        ("filename, cat\nx.jpg, 1\n", None),
    ],
)
def test_classes_of_a_table_of_pixel_values(
    tmp_path: Path, table: str, expected: tuple[str | None, ...] | None
) -> None:
    root = _roboflow(tmp_path / "x", dict.fromkeys(("train", "valid"), table))
    listing = rs.detect(root, format="pairs").source.list_samples()
    assert listing.class_names == expected
    read = [name for line in listing.account or () if line.is_read for name in line.names]
    is_read = expected is not None
    assert ({"train/_classes.csv", "valid/_classes.csv"} <= {*read}) == is_read
    assert listing.account is not None
    assert listing.account.file_count == 22
    assert bool(left_out(listing)) != is_read


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        (("Pixel Value, Class\n0, a\n", "Pixel Value, Class\n0, b\n"), None),
        (("Pixel Value, Class\n0, a\nx, b\n",) * 2, 3),
        (("Pixel Value, Class\n0, a\n0, b\n",) * 2, 3),
        (("Pixel Value, Class\n70000, a\n",) * 2, 2),
    ],
)
def test_tables_of_pixel_values_that_cannot_be_right(
    tmp_path: Path, tables: tuple[str, str], line: int | None
) -> None:
    root = _roboflow(tmp_path / "x", dict(zip(("train", "valid"), tables, strict=True)))
    path = root if line is None else "train/_classes.csv"
    with raises(rs.SourceError, path=path, line=line):
        rs.detect(root).source.list_samples()


def test_classes_of_a_file_of_colours(tmp_path: Path) -> None:
    root = drawn(tmp_path / "x", {"a/{0-5}.jpg": "photo", "b/{0-5}.png": "own"})
    (root / "class_dict.csv").write_text("name,r,g,b\nVoid,1,2,3\nTree,64,128,64\nCar,192,0,128\n")
    listing = rs.detect(root).source.list_samples()
    assert listing.class_names == ("Void", "Tree", "Car")
