"""What a folder must become, and whether `recordsmith pack` makes that of it.

A layout is a function that fills a folder and returns the readings that an engineer would accept.
Packing it is RIGHT if the records equal one of them, LOUD if it fails with an error that explains
what was found and what to do, and WRONG otherwise.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import UnidentifiedImageError
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app

from .files import Folder, pixel_digest, pixel_values

Box: TypeAlias = tuple[str | None, float, float, float, float]
"""Class (None: not compared), xmin, ymin, xmax, ymax in pixels."""

RIGHT, LOUD, WRONG = "RIGHT", "LOUD", "WRONG"


@dataclass(frozen=True, eq=False)
class Record:
    """What a record must contain.

    image: digest of its pixels; None for rows without images.
    label: name of the class; None if the record must not have one.
    labels: names of all classes, of an image that may have several; None for those with `label`.
    mask: value of each pixel; None if the record must not have a mask.
    boxes: all objects; None if the record must not have any.
    values: features that it must have, in addition.
    """

    image: str | None
    label: str | None = None
    labels: tuple[str, ...] | None = None
    mask: NDArray[np.int64] | None = None
    boxes: tuple[Box, ...] | None = None
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Mention:
    """Something that the output must mention: one of these words, or this number."""

    words: tuple[str, ...]
    count: int | None = None


@dataclass(frozen=True, eq=False)
class Reading:
    """One acceptable result of packing a folder.

    splits: the records of each split; one split may have any name.
    class_names: all of them, in order; None if they are not compared.
    label_column: feature that may hold the label, if there is no `image/class/label`.
    renamed_values: whether masks may have other values, the same for the same ones.
    box_tolerance: in pixels.
    mentions: what the output must mention, such as files that are left out.
    """

    splits: Mapping[str, Sequence[Record]]
    class_names: tuple[str, ...] | None = None
    label_column: str | None = None
    renamed_values: bool = False
    box_tolerance: float = 0.02
    mentions: tuple[Mention, ...] = ()

    def without(self, *parts: str, words: Sequence[str]) -> Reading:
        """The same without labels, masks or boxes, if the output mentions that."""
        changes: Any = dict.fromkeys(parts)
        splits = {
            name: [replace(record, **changes) for record in records]
            for name, records in self.splits.items()
        }
        return replace(self, splits=splits).mentioning(*words)

    def mentioning(self, *words: str, count: int | None = None) -> Reading:
        """The same, if the output mentions one of these words or the number."""
        return replace(self, mentions=(*self.mentions, Mention(words, count)))


def one(records: Iterable[Record], **options: Any) -> Reading:
    """A reading without splits."""
    return Reading({"train": [*records]}, **options)


Builder: TypeAlias = Callable[[Folder], "Reading | Sequence[Reading] | None"]


@dataclass(frozen=True)
class Layout:
    """A folder layout: how to make it, and whether an error is acceptable.

    loud_words: one of them must be in the error; if empty, a name or suffix of the folder's files.
    """

    name: str
    build: Builder
    accepted: frozenset[str]
    loud_words: tuple[str, ...]


LAYOUTS: dict[str, Layout] = {}


def layout(
    *, loud_is_fine: bool = False, loud_is_right: bool = False, loud_words: Sequence[str] = ()
) -> Callable[[Builder], Builder]:
    """Register a layout under the name of the function that builds it.

    Args:
        loud_is_fine: an error is as good as one of the readings.
        loud_is_right: the folder must be refused.
        loud_words: one of them must be in the error; by default a name or suffix of its files.
    """

    def register(build: Builder) -> Builder:
        name = build.__name__
        assert name not in LAYOUTS, name
        accepted = {LOUD} if loud_is_right else {RIGHT, LOUD} if loud_is_fine else {RIGHT}
        LAYOUTS[name] = Layout(name, build, frozenset(accepted), tuple(loud_words))
        return build

    return register


@dataclass(frozen=True)
class Verdict:
    """RIGHT, LOUD or WRONG, and why."""

    kind: str
    detail: str = ""


def judge(layout: Layout, work: Path) -> Verdict:
    """Make the folder of a layout in `work`, pack it and compare."""
    folder = Folder(work / "somewhere" / "dataset")
    expected = layout.build(folder)
    readings = [] if expected is None else [expected] if isinstance(expected, Reading) else expected
    assert bool(readings) == (RIGHT in layout.accepted), "loud_is_right has no readings"
    out = work / "out"
    outcome = _run("pack", folder.path, out)
    text = outcome.output.replace(str(folder.path), "SOURCE").replace(str(out), "OUT")
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        return Verdict(WRONG, f"crash: {outcome.exception!r}")
    if outcome.exit_code != 0:
        return _judge_error(layout, folder, out)
    if not readings:
        return Verdict(WRONG, f"packed: {_summary(text)}")
    dataset = rs.open(str(out))
    differences = [_difference(reading, dataset, folder, text) for reading in readings]
    if None in differences:
        number = differences.index(None) + 1
        return Verdict(RIGHT, f"reading {number} of {len(readings)}" if len(readings) > 1 else "")
    reasons = " | ".join(dict.fromkeys(filter(None, differences)))
    return Verdict(WRONG, f"{reasons} ({_summary(text)})")


def _run(*arguments: object) -> Any:
    # a wide terminal, so that no name is split over two lines
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "1000"})


def _summary(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "; ".join(lines[:3])


def _judge_error(layout: Layout, folder: Folder, out: Path) -> Verdict:
    outcome = _run("pack", folder.path, out, "--json")
    document = _document(outcome.stdout)
    message = str(document.get("message", outcome.output)).replace(str(folder.path), "SOURCE")
    kind = getattr(rs, str(document.get("error")), None)
    if not (isinstance(kind, type) and issubclass(kind, rs.RecordsmithError)):
        return Verdict(WRONG, f"no error of recordsmith: {message}")
    if not any(word in message for word in layout.loud_words or _names_below(folder.path)):
        return Verdict(WRONG, f"the error does not mention what was found: {message}")
    if not {"remedy", "option", "expected"} & document.keys() and "expected" not in message:
        return Verdict(WRONG, f"the error does not mention what to do: {message}")
    return Verdict(LOUD, message)


def _document(text: str) -> dict[str, Any]:
    with suppress(ValueError):  # not JSON
        return dict(json.loads(text))
    return {}


def _names_below(folder: Path) -> set[str]:
    """Names and suffixes of all files and folders that are long enough to be meant."""
    paths = [*folder.rglob("*")]
    names = {name for path in paths for name in (path.name, path.stem, path.suffix)}
    return {name for name in names if len(name) > 2}


# ---- comparing ---------------------------------------------------------------------------------

_SPLITS = {
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "testing": "test",
    "test1": "test",
}


def _split_name(name: str) -> str:
    """One spelling for all names of a split, such as `valid` and `mnist_val`."""
    last = name.lower().rpartition("_")[2]
    return _SPLITS.get(last, last)


def _difference(reading: Reading, dataset: Any, folder: Folder, text: str) -> str | None:
    """What differs first, or None if the dataset is as expected."""
    found = {_split_name(name): [*part] for name, part in dataset.splits.items() if len(part)}
    expected = {name: [*records] for name, records in reading.splits.items()}
    if len(found) == len(expected) == 1:  # its name does not matter
        found = dict(zip(expected, found.values(), strict=True))
    for records in found.values():
        for record in records:
            name = folder.masks.get(_image_digest(record) or "")
            if name is not None:
                return f"the mask {name} is packed as an image"
    counts = {name: len(records) for name, records in sorted(found.items())}
    expected_counts = {name: len(records) for name, records in sorted(expected.items())}
    if counts != expected_counts:
        return f"records {counts}, expected {expected_counts}"
    if reading.class_names is not None and reading.class_names != dataset.class_names:
        return f"class names {dataset.class_names}, expected {reading.class_names}"
    values: dict[int, set[int]] = defaultdict(set)  # of masks: expected -> found
    for name, records in expected.items():
        difference = _records_differ(reading, dataset.class_names, records, found[name], values)
        if difference:
            return f"{name}: {difference}"
    if reading.renamed_values:
        renamed = [*values.values()]
        if any(len(names) > 1 for names in renamed) or len(set().union(*renamed)) < len(renamed):
            return f"values of masks are mixed: {dict(values)}"
    for mention in reading.mentions:
        if not _is_mentioned(mention, text):
            return f"the output mentions none of {[*mention.words, mention.count]}"
    return None


def _records_differ(
    reading: Reading,
    class_names: Sequence[str | None] | None,
    expected: Sequence[Record],
    found: Sequence[dict[str, Any]],
    values: dict[int, set[int]],
) -> str | None:
    if all(record.image is None for record in expected):
        rows = Counter(_row(record.values) for record in expected)
        columns = {key for record in expected for key in record.values}
        others = Counter(
            _row({k: _value(v) for k, v in record.items() if k in columns and len(v)})
            for record in found
        )
        return None if rows == others else f"rows {[*others][:2]}, expected {[*rows][:2]}"
    by_image = {record.image: record for record in expected}
    assert len(by_image) == len(expected), "images must be different"
    seen = set()
    for record in found:
        digest = _image_digest(record)
        if digest is None:
            return f"a record has no image: {sorted(record)}"
        if digest not in by_image:
            return "an image that should not be there"
        if digest in seen:
            return "an image is there twice"
        seen.add(digest)
        difference = _record_differs(reading, class_names, by_image[digest], record, values)
        if difference:
            return difference
    return None


def _record_differs(
    reading: Reading,
    class_names: Sequence[str | None] | None,
    expected: Record,
    found: dict[str, Any],
    values: dict[int, set[int]],
) -> str | None:
    label = expected.label
    if expected.labels is None:
        label = _label(reading, class_names, found)
    elif [class_names[n] for n in found.get("image/class/label", ())] != [*expected.labels]:  # type: ignore[index]
        return f"labels {found.get('image/class/text')!r}, expected {expected.labels!r}"
    if label != expected.label:
        return f"label {label!r}, expected {expected.label!r}"
    mask = _bytes(found, "image/segmentation/class/encoded")
    if (mask is None) != (expected.mask is None):
        return "no mask" if mask is None else "a mask that should not be there"
    if mask is not None and expected.mask is not None:
        difference = _masks_differ(reading, expected.mask, pixel_values(mask), values)
        if difference:
            return difference
    boxes = _boxes(found)
    if (boxes is None) != (expected.boxes is None):
        if not (boxes is None and expected.boxes == ()):
            return "no boxes" if boxes is None else "boxes that should not be there"
    elif boxes is not None and expected.boxes is not None:
        difference = _boxes_differ(expected.boxes, boxes, reading.box_tolerance)
        if difference:
            return difference
    for key, value in expected.values.items():
        if key not in found:
            return f"no feature {key!r}; there are {sorted(found)}"
        if not _are_equal(_value(found[key]), value):
            return f"{key} {_value(found[key])!r}, expected {value!r}"
    return None


def _label(
    reading: Reading, class_names: Sequence[str | None] | None, found: dict[str, Any]
) -> str | None:
    label = found.get("image/class/label")
    text = _bytes(found, "image/class/text")
    if label is not None and len(label) == 1:
        name = class_names[label[0]] if class_names and label[0] < len(class_names) else None
        if text is not None and name is not None and text.decode() != name:
            return f"{text.decode()} and {name}"  # they contradict each other
        return text.decode() if text is not None else name or str(label[0])
    if reading.label_column and reading.label_column in found:
        value = _value(found[reading.label_column])
        if isinstance(value, int) and class_names and value < len(class_names):
            return class_names[value]
        return str(value)
    return None


def _masks_differ(
    reading: Reading,
    expected: NDArray[np.int64],
    found: NDArray[np.int64],
    values: dict[int, set[int]],
) -> str | None:
    if expected.shape != found.shape:
        return f"a mask of {found.shape}, expected {expected.shape}"
    if reading.renamed_values:
        for value in np.unique(expected).tolist():
            values[value].update(np.unique(found[expected == value]).tolist())
        return None
    if np.array_equal(expected, found):
        return None
    return f"values of a mask {np.unique(found)[:9]}, expected {np.unique(expected)[:9]}"


def _boxes(found: dict[str, Any]) -> list[Box] | None:
    sides = [found.get(f"image/object/bbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
    if any(side is None for side in sides):
        return None
    width, height = found["image/width"][0], found["image/height"][0]
    scales = (width, height, width, height)
    columns = [np.asarray(s) * scale for s, scale in zip(sides, scales, strict=True)]
    names = [name.decode() for name in found.get("image/object/class/text", [])]
    names = names or [None] * len(columns[0])  # type: ignore[list-item]
    return [
        (name, *map(float, corners))  # type: ignore[misc]
        for name, *corners in zip(names, *columns, strict=True)
    ]


def _boxes_differ(expected: Sequence[Box], found: Sequence[Box], tolerance: float) -> str | None:
    rest = [*found]
    for box in expected:
        near = [
            other
            for other in rest
            if box[0] in {None, other[0]} and np.allclose(other[1:], box[1:], 0, tolerance)
        ]
        if not near:
            return f"no box {box}; there are {_rounded(rest)}"
        rest.remove(near[0])
    return f"more boxes: {_rounded(rest)}" if rest else None


def _rounded(boxes: Iterable[Box]) -> list[tuple[Any, ...]]:
    return [(name, *(round(side, 2) for side in sides)) for name, *sides in boxes]


def _image_digest(found: dict[str, Any]) -> str | None:
    data = _bytes(found, "image/encoded") or _bytes(found, "image")
    with suppress(UnidentifiedImageError):  # a path, for example
        return pixel_digest(data) if data else None
    return None


def _bytes(found: dict[str, Any], key: str) -> bytes | None:
    value = found.get(key)
    return value[0] if value is not None and len(value) and isinstance(value[0], bytes) else None


def _value(value: Any) -> Any:
    items = [item.decode() if isinstance(item, bytes) else item.item() for item in value]
    return items[0] if len(items) == 1 else items


def _are_equal(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return isinstance(found, (int, float)) and abs(found - expected) < 1e-5
    return bool(found == expected)


def _row(values: Mapping[str, Any]) -> str:
    return repr(sorted((k, round(v, 4) if isinstance(v, float) else v) for k, v in values.items()))


_SUMMARY_LINE = re.compile(r"^(packed |  \S+: [\d,]+ records|.* bytes in,|.* out$|  verified)")
"""Lines of the summary that have numbers of records, not of what is left out."""


def _is_mentioned(mention: Mention, text: str) -> bool:
    notices = "\n".join(line for line in text.splitlines() if not _SUMMARY_LINE.match(line))
    patterns = [_whole_word(word) for word in mention.words]
    if mention.count is not None:
        patterns.append(rf"\b{mention.count}\b")
    return any(re.search(pattern, notices, re.IGNORECASE) for pattern in patterns)


def _whole_word(word: str) -> str:
    """A pattern of a word, or of its plural: `val` is not in `values`."""
    start = "(?<![a-z])" if word[0].isalpha() else ""
    end = "(e?s)?(?![a-z])" if word[-1].isalpha() else ""
    return f"{start}{re.escape(word)}{end}"
