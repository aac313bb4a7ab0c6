"""Findings on masks and boxes."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.stats.box_stats import BoxStats
from recordsmith.examining.stats.findings.finding import Finding, have
from recordsmith.examining.stats.mask_stats import MaskStats
from recordsmith.example.keys import BOX
from recordsmith.words import count


def odd_masks(key: str, masks: MaskStats) -> Iterator[Finding]:
    """Yield masks that cannot be decoded to class numbers, and masks scaled to 255."""
    decoded = f" of {masks.sampled:,} decoded" if masks.sampled < masks.count else ""
    if masks.unreadable:
        yield Finding(
            "unreadable-masks",
            key,
            f"{count(masks.unreadable, 'mask')}{decoded} cannot be read as class numbers: "
            "damaged, or with colours instead of grey levels or palette indices. Run `recordsmith "
            "verify --deep` to list the records.",
        )
    if {found.label for found in masks.classes} in ({255}, {0, 255}):
        yield Finding(
            "mask-0-255",
            key,
            f"all masks{decoded} hold only 0 and 255, as if drawn for viewing: a loss with class "
            "numbers needs 0 and 1, and many programs ignore pixels with 255. Read them with "
            "`rs.Mask(values={255: 1})`, or replace 255 by 1 and pack them again.",
        )


def odd_boxes(boxes: BoxStats) -> Iterator[Finding]:
    """Yield boxes without area, outside of their image, or without one of their sides."""
    problems = []
    if boxes.degenerate:
        problems.append(f"{boxes.degenerate:,} {have(boxes.degenerate)} no area")
    if boxes.outside:
        reach = "reaches" if boxes.outside == 1 else "reach"
        problems.append(
            f"{boxes.outside:,} {reach} beyond the image (below 0 or above 1, as in pixels)"
        )
    if boxes.mismatched:
        problems.append(
            f"{count(boxes.mismatched, 'record')} {have(boxes.mismatched)} different numbers of "
            "ymin, xmin, ymax and xmax"
        )
    if problems:
        yield Finding(
            "invalid-boxes",
            BOX[0].rpartition("/")[0],
            f"of {count(boxes.count, 'box', 'boxes')}, {'; '.join(problems)}. First record: "
            f"{boxes.place}. Losses become NaN or wrong on such boxes: fix or drop them.",
            () if boxes.place is None else (boxes.place,),
        )
