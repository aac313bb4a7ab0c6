"""The judge of the layouts finds each sort of mistake: a right folder, and wrong expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .boxes import voc_2007_detection
from .class_folders import class_folders_train_valid_test
from .files import Folder
from .layout import LOUD, RIGHT, WRONG, Builder, Layout, Reading, Record, judge, one
from .pairs import splits_below_images_and_masks
from .tables import imagefolder_metadata_jsonl, only_a_table


def _judge(build: Builder, work: Path) -> str:
    return judge(Layout("x", build, frozenset({RIGHT, LOUD}), ()), work).kind


def _with_first(reading: Any, **changes: Any) -> Reading:
    """The reading with another first record of its first split."""
    name, (first, *rest) = next(iter(reading.splits.items()))
    return replace(reading, splits={**reading.splits, name: [replace(first, **changes), *rest]})


def _moved_box(reading: Any) -> Reading:
    ((name, left, *corners), *rest) = next(iter(reading.splits.values()))[0].boxes
    return _with_first(reading, boxes=((name, left + 2, *corners), *rest))


def _other_mask(reading: Any) -> Reading:
    mask = next(iter(reading.splits.values()))[0].mask.copy()
    mask[0, 0] += 1
    return _with_first(reading, mask=mask)


_CHANGES: dict[str, tuple[Any, Callable[[Any], Reading]]] = {
    "label": (class_folders_train_valid_test, lambda r: _with_first(r, label="dogs")),
    "one split": (
        class_folders_train_valid_test,
        lambda r: one(record for records in r.splits.values() for record in records),
    ),
    "class names": (class_folders_train_valid_test, lambda r: replace(r, class_names=("cats",))),
    "image": (class_folders_train_valid_test, lambda r: _with_first(r, image="another")),
    "mention": (class_folders_train_valid_test, lambda r: r.mentioning("mous", count=77)),
    "mask": (splits_below_images_and_masks, _other_mask),
    "no mask": (splits_below_images_and_masks, lambda r: _with_first(r, mask=None)),
    "mixed values": (
        splits_below_images_and_masks,
        lambda r: replace(_other_mask(r), renamed_values=True),
    ),
    "box": (voc_2007_detection, _moved_box),
    "no boxes": (voc_2007_detection, lambda r: _with_first(r, boxes=None)),
    "value": (
        imagefolder_metadata_jsonl,
        lambda r: _with_first(r, values={"image/caption": "other"}),
    ),
    "row": (only_a_table, lambda r: _with_first(r, values={"species": "setosa"})),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_difference_is_wrong(name: str, tmp_path: Path) -> None:
    build, change = _CHANGES[name]
    assert _judge(build, tmp_path / "right") == RIGHT
    assert _judge(lambda root: change(build(root)), tmp_path / "wrong") == WRONG


def test_a_mask_as_an_image_is_wrong(tmp_path: Path) -> None:
    def masks_as_classes(root: Folder) -> Reading:
        records = []
        for name in ("a", "b"):
            for number in range(3):
                root.mask(f"{name}/{number}{name}.png")
        records += [Record(digest, file[0]) for digest, file in root.masks.items()]
        return one(records)

    assert _judge(masks_as_classes, tmp_path) == WRONG


@pytest.mark.parametrize(("words", "kind"), [((), LOUD), (("film",), WRONG)])
def test_an_error_must_mention_what_was_found(
    words: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    def text(root: Folder) -> None:
        root.text("reviews/1.text", "x")

    assert judge(Layout("x", text, frozenset({LOUD}), words), tmp_path).kind == kind
