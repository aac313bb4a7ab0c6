"""Every planted fault is found, by its check and file, and nothing else; clean twins have none."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import recordsmith as rs
from recordsmith.checking import LintReport, lint_listing
from recordsmith.checking.linting.lint_report import all_checks
from recordsmith.image import encode_mask
from recordsmith.sources import Check, Flaw, Listing, Sample, Severity
from recordsmith.sources.problems import Fault
from recordsmith.support.work import WorkerPool

from ...raising import raises
from .planted import (
    FRUIT_FAULTS,
    LAYOUTS,
    digit,
    encoded,
    fruit_folders,
    photo,
    save,
    voc_pets,
    write_xml,
)

ALSO_FOUND = {
    "folders": {  # the copies that make the planted class names
        ("conflicting-labels", "val/bananas/1.jpg"),
        ("conflicting-labels", "val/cherry/01.jpg"),
        ("identical-images", "val/bananas/1.jpg"),
        ("identical-images", "val/cherry/01.jpg"),
        ("identical-images", "train/cherry/other.jpg"),
        ("missing-class", "'bananas'"),
    }
}
FILES = Path(__file__).parents[2] / "conformance" / "files"
LAYOUT = pytest.mark.parametrize("layout", LAYOUTS)


def _quoted(text: str, number: int) -> str:
    parts = text.split("'")
    return f"'{parts[number]}'" if len(parts) > 1 else text


def found_by(report: LintReport, *severities: Severity) -> set[tuple[str, str]]:
    """(check, file) of each place; (check, class) of findings about classes."""
    return {
        (
            str(found.check),
            example.file or _quoted(example.found, -2 if found.check == "missing-class" else 1),
        )
        for found in report.findings
        if found.severity in severities
        for example in found.examples
    }


@LAYOUT
def test_the_clean_twin_is_clean(layout: str, tmp_path: Path) -> None:
    report = rs.lint(LAYOUTS[layout].make(tmp_path))
    assert report.is_clean, report.findings
    assert report.findings == []
    assert report.image_count == report.sample_count


@LAYOUT
def test_planted_faults_are_found_and_nothing_else(layout: str, tmp_path: Path) -> None:
    source = LAYOUTS[layout].make(tmp_path)
    faults = LAYOUTS[layout].faults
    for fault in faults:
        fault.plant(tmp_path)
    report = rs.lint(source)
    notes = {(fault.check, fault.file) for fault in faults if fault.severity == "note"}
    assert notes <= found_by(report, Severity.NOTE)
    assert found_by(report, Severity.ERROR, Severity.WARNING) == ALSO_FOUND.get(layout, set()) | {
        (fault.check, fault.file) for fault in faults if fault.severity is None
    }


@LAYOUT
def test_the_number_of_threads_does_not_matter(layout: str, tmp_path: Path) -> None:
    source = LAYOUTS[layout].make(tmp_path)
    for fault in LAYOUTS[layout].faults:
        fault.plant(tmp_path)
    assert rs.lint(source, threads=1).to_json() == rs.lint(source, threads=4).to_json()


def test_the_boxes_at_fault_are_known(tmp_path: Path) -> None:
    source = voc_pets(tmp_path)
    write_xml(tmp_path, "00", [("cat", 24, 16, 120, 48), ("dog", 48, 8, 24, 32)])
    (outside, inverted) = rs.lint(source).findings[:2]
    assert [outside.check, inverted.check] == [Check.BOX_OUTSIDE, Check.BOX_INVERTED]
    assert outside.examples[0].box == (0.25, 0.25, 0.75, 1.25)
    assert inverted.examples[0].box == (0.125, 0.5, 0.5, 0.25)
    assert outside.examples[0].place == "Annotations/00.xml, line 1 (cat)"


def test_fixed_and_dropped_boxes_are_notes(tmp_path: Path) -> None:
    voc_pets(tmp_path)
    write_xml(tmp_path, "00", [("cat", 24, 16, 120, 48)])
    report = rs.lint(rs.Voc(tmp_path, boxes="clip"))
    assert report.is_clean
    assert found_by(report, Severity.NOTE) >= {("box-outside", "JPEGImages/00.jpg")}
    cures = (f.cure() for f in report.findings if f.check is Check.BOX_OUTSIDE)
    assert [*cures] == ["Fix the annotation."]


def test_counts_are_exact_and_examples_limited(tmp_path: Path) -> None:
    for number in range(150):
        save(tmp_path / "a" / f"{number:03d}.jpg", photo(7, (16, 12)))
    (found,) = rs.lint(rs.ImageFolder(tmp_path)).findings
    assert (found.check, found.count, len(found.examples)) == ("identical-images", 149, 100)


def _alike(share: float, seed: int, size: tuple[int, int] = (96, 64)) -> Image.Image:
    """An image of a set whose images share a template, such as X-rays."""
    return Image.blend(photo(0, size), photo(seed, size), share)


def test_images_with_few_details_are_similar_by_chance(tmp_path: Path) -> None:
    for number in range(1000):
        save(tmp_path / "a" / f"{number:04d}.png", digit(number), "PNG")
    (note,) = rs.lint(rs.ImageFolder(tmp_path)).findings
    assert (note.check, note.severity, note.count) == ("alike-images", Severity.NOTE, 1)
    assert int(note.examples[0].found.split()[0]) > 100  # reported if the distance is not limited
    for number in range(100):
        save(tmp_path / "a" / f"{number:04d} again.jpg", digit(number), quality=70)
    found, note = rs.lint(rs.ImageFolder(tmp_path)).findings
    assert (found.check, note.check) == ("similar-images", "alike-images")
    assert 95 <= found.count <= 105
    true = [e for e in found.examples if e.file[:6] == e.other[:6]]
    assert len(true) >= 0.95 * len(found.examples)


def test_images_that_share_a_template_are_no_copies(tmp_path: Path) -> None:
    for number in range(1, 101):
        save(tmp_path / "a" / f"{number:03d}.jpg", _alike(0.25, number))
    assert rs.lint(rs.ImageFolder(tmp_path)).is_clean
    for number in range(1, 11):
        save(tmp_path / "a" / f"{number:03d} again.jpg", _alike(0.25, number), quality=70)
        save(tmp_path / "a" / f"{number:03d} small.jpg", _alike(0.25, number).resize((72, 48)))
    found, note = rs.lint(rs.ImageFolder(tmp_path)).findings
    assert (found.check, found.count, note.check) == ("similar-images", 20, "alike-images")


def test_copies_have_the_same_pixels(tmp_path: Path) -> None:
    shown = photo(1)
    save(tmp_path / "a/0.png", shown, "PNG")
    save(tmp_path / "b/0.png", shown, "PNG", compress_level=1)  # other bytes
    save(tmp_path / "b/1.jpg", shown, quality=80)  # other pixels
    report = rs.lint(rs.ImageFolder(tmp_path))
    assert found_by(report, Severity.ERROR, Severity.WARNING) == {
        ("identical-images", "b/0.png"),
        ("conflicting-labels", "b/0.png"),
        ("similar-images", "b/1.jpg"),
    }


def test_checks_are_selected_by_name(tmp_path: Path) -> None:
    source = fruit_folders(tmp_path)
    for fault in FRUIT_FAULTS:
        fault.plant(tmp_path)
    everything = rs.lint(source)
    checks = {str(found.check) for found in everything.findings}
    ignored = rs.lint(source, ignore=["cmyk", "similar-images"])
    assert {str(f.check) for f in ignored.findings} == checks - {"cmyk", "similar-images"}
    for names in (["cmyk"], ["similar-images"], ["conflicting-labels", "alpha"]):
        found = rs.lint(source, only=names).findings
        assert found == [f for f in everything.findings if f.check in names]
    headers = rs.lint(source, only=["exif-orientation"])
    assert [str(f.check) for f in headers.findings] == ["exif-orientation"]
    assert headers.image_count == 0
    assert rs.lint(source, only=["cmyk"], ignore=["cmyk"]).findings == []
    for option in ("ignore", "only"):
        with raises(rs.OptionError, option=option, value="cmik") as caught:
            rs.lint(source, **{option: ["cmik"]})
        assert {*caught.value.expected.removeprefix("one of ").split(", ")} == {
            *map(str, all_checks())
        }


def test_places_in_tables_name_the_image_and_the_line(tmp_path: Path) -> None:
    names = ["0.jpg", "1.jpg", "2.jpg", "0.jpg"]
    for number, name in enumerate(names[:3]):
        save(tmp_path / "images" / name, photo(number % 2))
    rows = [f"images/{name},{label}\n" for label, name in enumerate(names)]
    (tmp_path / "labels.csv").write_text("".join(["path,label\n", *rows]))
    source = rs.Table(tmp_path, image_column="path", label_column="label")
    (found,) = rs.lint(source, only=["conflicting-labels"]).findings
    assert [(e.file, e.place, e.found) for e in found.examples] == [
        (
            "images/2.jpg",
            "labels.csv, line 4",
            "other labels than the same image images/0.jpg (labels.csv, line 2)",
        ),
        (
            "images/0.jpg",
            "labels.csv, line 5",
            "other labels than the same image images/0.jpg (labels.csv, line 2)",
        ),
    ]


def test_mask_values_beyond_known_classes_are_errors() -> None:
    mask = np.zeros((12, 16), np.uint8)
    mask[0, :3], mask[1] = 9, 255
    rows = [{"image/encoded": _jpeg(n), "image/segmentation/class/encoded": encode_mask(mask)}
            for n in range(2)]  # fmt: skip
    report = lint_listing(_listing(rows, ("background", "cat")), WorkerPool(1, None), deep=True)
    (found,) = report.findings
    assert (found.check, found.severity, found.count) == ("mask-values", "error", 2)
    assert "9" in found.examples[0].found


@pytest.mark.parametrize(
    ("key", "values", "is_found"),
    [
        ("image/segmentation/class/encoded", (0, 255), True),
        ("image/segmentation/class/encoded", (255, 255), True),
        ("image/segmentation/class/encoded", (0, 1, 255), False),
        ("image/segmentation/class/encoded", (0, 1), False),
        ("my_mask", (0, 255), True),
        ("image/object/mask", (0, 255), False),
    ],
)
def test_masks_of_0_and_255_are_found_as_stats_finds_them(
    tmp_path: Path, key: str, values: tuple[int, ...], is_found: bool
) -> None:
    path = tmp_path / "x.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(40):  # of several tasks
            mask = np.full((6, 8), values[number % len(values)], np.uint8)
            writer.write_example({"image/encoded": _jpeg(number), key: encode_mask(mask)})
    found = [finding for finding in rs.lint(path).findings if str(finding.check) == "mask-0-255"]
    assert [finding.count for finding in found] == [1] * is_found
    kinds = {finding.kind for finding in rs.stats(path).findings}
    assert ("mask-0-255" in kinds) == is_found


@pytest.mark.parametrize(
    ("train", "val", "count"),
    [([0] * 40 + [1, 1], [0, 1], 1), ([0, 1] * 9, [0] * 40 + [1], 0), ([], [0] * 40 + [1], 1)],
)
def test_class_imbalance_is_that_of_the_training_data(
    tmp_path: Path, train: list[int], val: list[int], count: int
) -> None:
    for split, labels in {"train": train, "val": val}.items():
        if labels:
            with rs.ShardWriter(tmp_path / f"{split}-00000-of-00001.tfrecord") as writer:
                for label in labels:
                    writer.write_example({"image/class/label": label})
    (tmp_path / "labels.txt").write_text("0:a\n1:b\n")
    found = [str(finding.check) for finding in rs.lint(tmp_path).findings]
    assert found.count("class-imbalance") == count
    kinds = [finding.kind for finding in rs.stats(tmp_path).findings]
    assert kinds.count("imbalance") == count


def test_one_hot_labels_are_classes_of_their_ones() -> None:
    rows = [{"image/class/label": [0, 1, 0]}, {"image/class/label": [0, 0, 1]}]
    work = WorkerPool(1, None)
    report = lint_listing(_listing(rows, ("a", "b", "c")), work, deep=True)
    assert report.classes == {"": {"b": 1, "c": 1}}


def test_tables_and_records_are_checked_by_the_same_rules(tmp_path: Path) -> None:
    good, bad = _jpeg(1), _jpeg(2)[:400]
    source = rs.Rows(
        [{"picture": good, "n": 1}, {"picture": bad, "n": 2}, {"picture": good, "n": 3}]
    )
    report = rs.lint(source)
    found = {(str(f.check), f.count) for f in report.findings if f.severity != "note"}
    assert found == {("unreadable-image", 1), ("identical-images", 1)}
    rs.pack(source, tmp_path / "packed")
    packed = rs.lint(rs.Shards(tmp_path / "packed"))
    assert {(str(f.check), f.count) for f in packed.findings if f.severity != "note"} == found


@pytest.mark.parametrize("path", sorted(FILES.iterdir()), ids=lambda path: path.name)
def test_hostile_records_are_findings_or_errors(path: Path) -> None:
    try:
        report = rs.lint(rs.Shards(path))
    except (rs.CorruptDataError, rs.SourceError):
        return
    assert report.sample_count >= report.image_count


@dataclasses.dataclass
class _Reader:
    """Reads given rows, or fails with given errors."""

    rows: list[Any]

    def read(self, sample: Sample, _: Any = None) -> Any:
        row = self.rows[int(sample.name)]
        if isinstance(row, Exception):
            raise row
        return row

    def kinds(self) -> dict[str, Any]:
        return {}

    def to_json(self) -> dict[str, Any]:
        return {}


def _listing(rows: list[Any], class_names: Any = None, **options: Any) -> Listing:
    samples = tuple(Sample(str(number), 1) for number in range(len(rows)))
    return Listing(samples, _Reader(rows), class_names, **options)


def _jpeg(seed: int) -> bytes:
    return encoded(photo(seed, (16, 12)))


def test_errors_of_any_source_are_findings() -> None:
    errors = [
        rs.SourceError("no such row"),
        rs.SourceError("two", [Flaw("bad", Check.BOX_EMPTY, place="x, line 3"), "worse"]),
        rs.FileAccessError(5, "the device reported a read error", "a/b"),
        rs.CorruptDataError(rs.Defect.UNREADABLE_IMAGE, "cut", path="a/c"),
    ]
    report = lint_listing(_listing(errors), WorkerPool(2, None), deep=True)
    assert {(str(f.check), f.examples[0].file, f.examples[0].place) for f in report.findings} == {
        ("unreadable-sample", "0", ""),
        ("box-empty", "1", "x, line 3"),
        ("unreadable-file", "2", "a/b"),
        ("unreadable-image", "3", "a/c"),
    }
    assert report.error_count == 5


def test_cheap_checks_read_no_sample(tmp_path: Path) -> None:
    listing = _listing(
        [AssertionError("read")] * 5,
        ("cat", "cats"),
        notices=[Flaw("2 lost", Check.ANNOTATION_WITHOUT_IMAGE, files=["a", "b"], item_count=2)],
    )
    report = lint_listing(listing, WorkerPool(1, None), deep=False)
    assert not report.is_deep
    assert [(str(f.check), f.count) for f in report.findings] == [
        ("annotation-without-image", 2),
        ("similar-class-names", 1),
    ]


@pytest.mark.parametrize(
    ("one", "other", "is_similar"),
    [
        ("cat", "Cat", True),
        ("traffic-light", "TrafficLight", True),
        ("dog", "dogs", True),
        ("cat", "bat", False),
        ("class1", "class2", False),
        ("B", "b", False),
        ("glass", "glas", False),
        ("", " ", False),
    ],
)
def test_similar_class_names(one: str, other: str, is_similar: bool) -> None:
    report = lint_listing(_listing([], (one, other)), WorkerPool(1, None), deep=False)
    found = [str(finding.check) for finding in report.findings]
    assert found == ["similar-class-names"] * is_similar


def test_cheap_checks_of_folders(tmp_path: Path) -> None:
    source = fruit_folders(tmp_path)
    assert rs.lint(source, deep=False).is_clean
    save(tmp_path / "train/Cherry/0.jpg", photo(1))
    assert found_by(rs.lint(source, deep=False), Severity.ERROR, Severity.WARNING) == {
        ("similar-class-names", "'Cherry'"),
        ("missing-class", "'Cherry'"),
    }


def test_flaws_travel_between_processes() -> None:
    flaw = Flaw("it is empty", Check.BOX_EMPTY, place="a.xml, line 3", box=(0, 1, 2, 3))
    error = pickle.loads(pickle.dumps(rs.SourceError(flaw, [flaw])))
    for text in (error.problem, error.problems[0]):
        assert text == "a.xml, line 3: it is empty"
        assert (text.check, text.found, text.place, text.box) == (
            Check.BOX_EMPTY, "it is empty", "a.xml, line 3", (0, 1, 2, 3),
        )  # fmt: skip
    fault = Fault("image not found", "a.xml", check=Check.ANNOTATION_WITHOUT_IMAGE)
    restored = Fault.from_json(json.loads(json.dumps(fault.to_json())))
    assert restored == fault
    assert restored.error().problem.check is Check.ANNOTATION_WITHOUT_IMAGE  # type: ignore[attr-defined]


def test_invalid_arguments() -> None:
    with raises(rs.OptionError, option="source", value=5):
        rs.lint(5)  # type: ignore[arg-type]
    with raises(rs.OptionError, option="threads", value=0):
        rs.lint(rs.ImageFolder("flowers"), threads=0)
