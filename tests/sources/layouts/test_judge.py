"""The judge of the layouts finds each sort of mistake: a right folder, and wrong expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .boxes import coco_2017_all_annotations
from .class_folders import class_folders_train_valid_test, empty_class
from .files import Folder
from .layout import LOUD, RIGHT, WRONG, Builder, Layout, Reading, Record, judge, one
from .pairs import splits_below_images_and_masks, unet_imgs_masks
from .tables import imagefolder_metadata_jsonl, only_a_table


def _judge(build: Builder, work: Path) -> str:
    return judge(Layout("x", build, frozenset({RIGHT, LOUD}), ()), work).kind


def _with_first(reading: Any, **changes: Any) -> Reading:
    """The reading with another first record of its first split."""
    name, (first, *rest) = next(iter(reading.splits.items()))
    return replace(reading, splits={**reading.splits, name: [replace(first, **changes), *rest]})


def _other_box(reading: Any) -> Reading:
    ((_, *corners), *rest) = next(iter(reading.splits.values()))[0].boxes
    return _with_first(reading, boxes=(("dog", *corners), *rest))


def _moved_box(reading: Any) -> Reading:
    ((name, left, *corners), *rest) = next(iter(reading.splits.values()))[0].boxes
    return _with_first(reading, boxes=((name, left + 0.1, *corners), *rest))


def _other_mask(reading: Any) -> Reading:
    mask = next(iter(reading.splits.values()))[0].mask.copy()
    mask[0, 0] += 1
    return _with_first(reading, mask=mask)


def _without_last(reading: Any) -> Reading:
    splits = {name: records[:-1] for name, records in reading.splits.items()}
    return replace(reading, splits=splits)


def _mixed_splits(reading: Any) -> Reading:
    first, second, *_ = reading.splits
    (a, *others), (b, *rest) = reading.splits[first], reading.splits[second]
    return replace(reading, splits={**reading.splits, first: [b, *others], second: [a, *rest]})


_CHANGES: dict[str, tuple[Any, Callable[[Any], Reading]]] = {
    "label": (class_folders_train_valid_test, lambda r: _with_first(r, label="dogs")),
    "no label": (class_folders_train_valid_test, lambda r: _with_first(r, label=None)),
    "split": (class_folders_train_valid_test, _mixed_splits),
    "one split": (
        class_folders_train_valid_test,
        lambda r: one(record for records in r.splits.values() for record in records),
    ),
    "class names": (class_folders_train_valid_test, lambda r: replace(r, class_names=("cats",))),
    "count": (empty_class, _without_last),
    "image": (empty_class, lambda r: _with_first(r, image="another")),
    "mention": (empty_class, lambda r: r.mentioning("mous", count=7)),
    "mask": (unet_imgs_masks, _other_mask),
    "no mask": (unet_imgs_masks, lambda r: _with_first(r, mask=None)),
    "mixed values": (unet_imgs_masks, lambda r: replace(_other_mask(r), renamed_values=True)),
    "mask in splits": (splits_below_images_and_masks, _other_mask),
    "box": (coco_2017_all_annotations, _moved_box),
    "class of a box": (coco_2017_all_annotations, _other_box),
    "missing box": (coco_2017_all_annotations, lambda r: _with_first(r, boxes=())),
    "no boxes": (coco_2017_all_annotations, lambda r: _with_first(r, boxes=None)),
    "value": (imagefolder_metadata_jsonl, lambda r: _with_first(r, values={"text": "other"})),
    "row": (only_a_table, lambda r: _with_first(r, values={"species": "setosa"})),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_difference_is_wrong(name: str, tmp_path: Path) -> None:
    build, change = _CHANGES[name]
    assert _judge(build, tmp_path / "right") == RIGHT
    assert _judge(lambda root: change(build(root)), tmp_path / "wrong") == WRONG


def test_values_of_masks_may_have_other_names(tmp_path: Path) -> None:
    def doubled(root: Folder) -> Reading:
        (records,) = unet_imgs_masks(root).splits.values()  # type: ignore[union-attr]
        masks = [np.asarray(record.mask) * 255 for record in records]
        changed = [replace(r, mask=mask) for r, mask in zip(records, masks, strict=True)]
        return one(changed, renamed_values=True)

    assert _judge(doubled, tmp_path) == RIGHT


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
