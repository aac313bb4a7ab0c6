"""Hostile input takes time in proportion to its size.

Each case has an input of at most a few megabytes that took minutes to hours where work grew with
the square of the input, and takes about a second where it does not. It runs in a process of its
own, which the system ends after so much CPU time that no slow machine reaches it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from .raising import raises

pytestmark = pytest.mark.posix

CPU_SECONDS = 20

Case = Callable[[Path], None]
CASES: dict[str, Case] = {}


def case(run: Case) -> Case:
    CASES[run.__name__] = run
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_time_grows_with_the_input(name: str, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_linear_time", name, str(tmp_path)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:] or f"ended by signal {-done.returncode}"


def colliding(number: int) -> int:
    """Numbers whose hashes are all 0."""
    return number * (2**61 - 1)


@case
def heads_of_annotations(_: Path) -> None:
    from recordsmith.sources.boxes.known_formats import recognise_annotations
    from recordsmith.sources.formats import BOX_SUFFIXES, FORMATS

    pieces = (b"<annotation>", b"<annotation ", b"<annotations>", b"<object><polygon><pt>",
              b'"shapes":[', b'"asset"', b"1 ", b"1,", b"Car 1 ", b"gsd:\n", b"1\n")  # fmt: skip
    for head in (piece * (65_536 // len(piece)) for piece in pieces):
        for format_name, suffixes in BOX_SUFFIXES.items():
            FORMATS[format_name].box_format.is_format_of(f"a{suffixes[0]}", head)
        for name in ("a.json", "a.txt", "a.xml", "a.csv", "gt/gt.txt"):
            assert recognise_annotations(name, head) is None


@case
def annotations_with_little_text_for_each_object(folder: Path) -> None:
    """Groups that share a hash, texts to read again at each start, brushes of large images."""
    from recordsmith.sources.boxes.annotation import AnnotationFile
    from recordsmith.sources.formats import FORMATS
    from recordsmith.stores import as_location
    from recordsmith.support.errors import SourceError

    shape = {"label": "a", "shape_type": "point", "points": [[1, 1]]}
    groups = [shape | {"group_id": colliding(number)} for number in range(50_000)]
    label = "<label><name>{}</name>{}</label>"
    labels = label.format("a", "<parent>" + " " * 500_000) + label.format(
        "b", f"<svg>{'&lt;line ' * 100_000}</svg>"
    )
    side, runs = 1 << 13, f"100{'1' * 24}" * (1 << 12)  # of 65,536 times 255
    bits = f"{4 * side * side:032b}{7:05b}{'1' * 16}{runs}000"
    rle = [int(bits[start : start + 8], 2) for start in range(0, len(bits), 8)]
    size = {"original_width": side, "original_height": side}
    brush = {"value": {"rle": rle, "brushlabels": ["a"]}, **size}
    task = {"data": {"image": "a.jpg"}, "annotations": [{"result": [brush] * 100}]}
    for name, text, count in (
        ("labelme", json.dumps({"version": "5", "shapes": groups}), 50_000),
        ("cvat", f"<annotations><labels>{labels}</labels><image/></annotations>", None),
        ("label-studio", json.dumps([task]), 100),
    ):
        (folder / name).write_text(text)
        file = AnnotationFile(as_location(folder / name), name, with_outlines=True)
        try:
            (found,) = FORMATS[name].box_format.images(file)
        except SourceError:
            assert count is None
        else:
            assert len(found.objects) == count


@case
def tar_keys_with_one_safe_name(_: Path) -> None:
    from recordsmith.sources.archives.webdataset import SafeNames

    safe = SafeNames()
    names = [safe.take(f"{''.join(marks)}a") for marks in product("/\\", repeat=17)]
    assert len(set(names)) == len(names) > 50_000
    assert set(names) == {"a", *(f"a~{number}" for number in range(2, len(names) + 1))}


@case
def export_names_that_differ_at_their_ends(_: Path) -> None:
    from recordsmith.exporting.safe_names import TakenNames

    for length, times in ((251, 1), (246, 2), (245, 2)):  # cut at once; cut for their numbers
        taken = TakenNames()
        names = {
            taken.take((f"{'x' * (length - 6)}{number:06d}",), [("images", ".jpeg")])
            for _ in range(times)
            for number in range(30_000)
        }
        assert len(names) == 30_000 * times
        assert all(len(name) <= 250 for (name,) in names)


@case
def coco_ids_that_share_a_hash(folder: Path) -> None:
    from recordsmith.sources import Coco
    from recordsmith.support.errors import SourceError

    count = 100_000
    images = [{"id": colliding(number), "file_name": f"{number}"} for number in range(count)]
    annotations = [
        {"id": 1, "image_id": colliding(number), "category_id": colliding(number)}
        for number in range(count)
    ]
    categories = [{"id": colliding(number), "name": f"{number}"} for number in range(count)]
    document = {"categories": categories, "images": images, "annotations": annotations}
    (folder / "a.json").write_text(json.dumps(document))
    with raises(SourceError, problem_count=count - 1000):
        Coco(folder / "a.json").list_samples()
    document["categories"] = categories[:1]
    (folder / "a.json").write_text(json.dumps(document))
    assert len(Coco(folder / "a.json").list_samples().samples) == count


@case
def yolo_numbers_that_share_a_hash(folder: Path) -> None:
    from recordsmith.sources.boxes.yolo_files import read_data_file
    from recordsmith.stores import as_location
    from recordsmith.support.errors import SourceError

    lines = [f"  {colliding(number)}: x\n" for number in range(5_000)]
    path = folder / "data.yaml"
    for names in ("names:\n" + "".join(lines), f"names: {{{','.join(lines)}}}"):
        path.write_text(f"train: a\n{names}")
        with pytest.raises(SourceError):
            read_data_file(as_location(path), "data.yaml")


@case
def blank_lines_in_a_yolo_description(folder: Path) -> None:
    import recordsmith as rs

    (folder / "a.jpg").write_text("")
    for number in range(20):
        (folder / f"{number}.data").write_text("\n" * 60_000 + "train = a")
    assert "yolo" not in {reading.format for reading in rs.detect(folder).readings}


@case
def spaces_in_a_voc_list(folder: Path) -> None:
    from recordsmith.sources import Voc

    xml = "<annotation><filename>a.jpg</filename></annotation>"
    for path, text in {
        "Annotations/a.xml": xml,
        "JPEGImages/a.jpg": "",
        "ImageSets/Main/train.txt": f"a\nb{' ' * 300_000}c\nd{' ' * 300_000}-1\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert len(Voc(folder).list_samples().samples) == 3


@case
def fill_bytes_in_a_jpeg_scan(_: Path) -> None:
    from recordsmith.jpeg import SCAN, START, all_segments

    head = START + bytes([0xFF, SCAN, 0, 2])
    segments, end = all_segments(head + b"\xff" * 1_000_000 + b"\0\xff\xd9")
    assert ([segment.marker for segment in segments], end) == ([SCAN], 6 + 1_000_000 + 3)


@case
def text_of_an_xml_element(folder: Path) -> None:
    from recordsmith.sources.boxes.annotation import AnnotationFile
    from recordsmith.sources.boxes.formats.voc import parse
    from recordsmith.stores import as_location

    # the parser hands over pieces of a line; the first character makes each take four bytes
    text = "\U0001f600" + ("x" * 4097 + "\n") * 1_000 + "x"
    document = f"<annotation><filename>{text}</filename></annotation>"
    (folder / "a.xml").write_text(document, encoding="utf-8")
    (found,) = parse(AnnotationFile(as_location(folder / "a.xml"), "a.xml"))
    assert found.file_name == text


@case
def quotes_in_csv_that_nothing_closes(folder: Path) -> None:
    from recordsmith.sources import Table
    from recordsmith.support.errors import SourceError

    (folder / "a.csv").write_text("a,b\n" + 'x""","\n' * 100_000)
    with pytest.raises(SourceError):
        Table(folder / "a.csv").list_samples()


@case
def hidden_files_next_to_others(_: Path) -> None:
    from recordsmith.sources.files.account import Account, Reason

    account = Account()
    for number in range(50_000):
        account.leave(Reason.HIDDEN, [f"._{number}.jpg"], "hidden file")
    account.finish([("", 100_000, [f"{number}.dat" for number in range(50_000)])])
    assert (account.file_count, account.counted(Reason.HIDDEN)) == (100_000, 50_000)


@case
def classes_that_are_unknown(_: Path) -> None:
    from recordsmith.sources import Classes

    classes = Classes({f"class number {number}": number for number in range(5_000)}, "the data")
    for number in range(50_000):
        classes.unknown(f"{number} is no class")


@case
def classes_without_labels(_: Path) -> None:
    from recordsmith.exporting.boxes import LabelNames

    classes = LabelNames.known(None)
    labels = [classes.of(None, f"{number}", print)[0] for number in range(150_000)]
    assert labels == list(range(1, len(labels) + 1))


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    CASES[sys.argv[1]](Path(sys.argv[2]))
