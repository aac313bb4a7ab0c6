"""Statistics of masks: against NumPy; samples against the rule by which masks are sampled."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import recordsmith as rs
from recordsmith.checking import hash_positions
from recordsmith.checking.statistics import mask_stats
from recordsmith.checking.statistics.mask_stats import MaskBuilder, MaskStats
from recordsmith.format.example import BytesArray
from recordsmith.format.example.keys import MASK, MASK_DTYPE, MASK_FORMAT, OBJECT_MASK


def png(values: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.asarray(values)).save(out, "PNG")
    return out.getvalue()


def drawn(seed: int, labels: Any = (0, 1, 7), dtype: Any = np.uint8) -> Any:
    rng = np.random.default_rng(seed)
    return rng.choice(np.array(labels, dtype), (int(rng.integers(1, 9)), int(rng.integers(1, 9))))


def counted(masks: list[Any]) -> dict[int, tuple[int, int]]:
    """The pixels of each label, and the masks that have it."""
    pixels: Counter[int] = Counter()
    often: Counter[int] = Counter()
    for mask in masks:
        labels, counts = np.unique(mask, return_counts=True)
        pixels.update(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
        often.update(labels.tolist())
    return {label: (pixels[label], often[label]) for label in sorted(pixels)}


def classes_of(found: MaskStats) -> dict[int, tuple[int, int]]:
    return {each.label: (each.pixels, each.masks) for each in found.classes}


@pytest.mark.parametrize("threads", [1, 3])
def test_few_masks_are_counted_exactly(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr("recordsmith.checking.statistics.stats_report._READ_TOGETHER_BYTES", 1)
    monkeypatch.setattr(mask_stats, "_STRIP", 5)
    masks = [drawn(seed % 9, [0, 1, 255]) for seed in range(20)]
    objects = [drawn(seed, [0, 1, 40_000], np.uint16) for seed in range(30)]
    for shard in range(4):
        write(
            tmp_path / f"train-{shard:05}-of-00004.tfrecord",
            [
                {MASK: png(masks[n]), OBJECT_MASK: [png(mask) for mask in objects[n : n + 3]]}
                for n in range(shard, 20, 4)
            ],
        )
    (tmp_path / "labels.txt").write_text("0:sky\n1:tree\n")
    found = rs.stats(tmp_path, threads=threads)
    assert found.masks.keys() == {MASK, OBJECT_MASK}
    of_images, of_objects = found.masks[MASK], found.masks[OBJECT_MASK]
    assert (of_images.count, of_images.sampled, of_images.unreadable) == (20, 20, 0)
    assert classes_of(of_images) == counted(masks)
    assert of_images.pixels == sum(mask.size for mask in masks)
    assert [each.name for each in of_images.classes] == ["sky", "tree", None]
    assert classes_of(of_objects) == counted([o for n in range(20) for o in objects[n : n + 3]])
    assert {each.name for each in of_objects.classes} == {None}


def test_palettes_few_bits_and_raw_values(write, tmp_path: Path) -> None:
    values = drawn(3, [0, 1])
    palette = Image.fromarray(values)
    palette.putpalette([9, 9, 9, 200, 0, 0])
    out = io.BytesIO()
    palette.save(out, "PNG", bits=1)
    write(tmp_path / "a.tfrecord", [{MASK: out.getvalue()}])
    assert classes_of(rs.stats(tmp_path / "a.tfrecord").masks[MASK]) == counted([values])
    wide = drawn(4, [0, 700], np.uint16)
    record = {MASK: wide.tobytes(), MASK_FORMAT: "raw", MASK_DTYPE: "uint16"}
    write(tmp_path / "raw.tfrecord", [record, record | {MASK: b"\1"}])
    found = rs.stats(tmp_path / "raw.tfrecord").masks[MASK]
    assert (found.count, found.unreadable) == (2, 1)
    assert classes_of(found) == counted([wide])


def test_colours_and_damage_are_unreadable(write, tmp_path: Path, images: ModuleType) -> None:
    good = drawn(1)
    colours = png(np.zeros((4, 4, 3), np.uint8))
    damaged = png(drawn(2))[:-30]
    write(tmp_path / "a.tfrecord", [{MASK: each} for each in (png(good), colours, damaged)])
    found = rs.stats(tmp_path / "a.tfrecord")
    masks = found.masks[MASK]
    assert (masks.count, masks.sampled, masks.unreadable) == (3, 3, 2)
    assert classes_of(masks) == counted([good])
    assert "unreadable-masks" in {finding.kind for finding in found.findings}


def test_values_that_are_not_masks(write, tmp_path: Path) -> None:
    records = [{MASK: b"\x89PNG\r\n\x1a\n" + bytes(40)}, {MASK: "words"}]
    found = rs.stats(write(tmp_path / "a.tfrecord", records))
    assert found.masks == {}
    assert "unreadable-images" in {finding.kind for finding in found.findings}


def test_only_colours(write, tmp_path: Path) -> None:
    colours = [png(np.full((4, 4, 3), n, np.uint8)) for n in range(3)]
    found = rs.stats(write(tmp_path / "a.tfrecord", [{MASK: each} for each in colours]))
    masks = found.masks[MASK]
    assert (masks.count, masks.unreadable, masks.pixels, masks.classes) == (3, 3, 0, ())
    rs.save_html(found, tmp_path / "page.html")


@pytest.mark.parametrize(
    ("labels", "is_found"), [([0, 255], True), ([255], True), ([0, 1], False), ([0, 1, 255], False)]
)
def test_masks_drawn_for_viewing(write, tmp_path: Path, labels: list[int], is_found: bool) -> None:
    masks = [np.array([labels, labels], np.uint8), np.array([labels], np.uint8)]
    write(tmp_path / "a.tfrecord", [{MASK: png(mask)} for mask in masks])
    found = rs.stats(tmp_path / "a.tfrecord").findings
    assert ("mask-0-255" in {finding.kind for finding in found}) == is_found


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=15), min_size=1, max_size=4),
    st.integers(1, 30),
    st.integers(1, 20_000),
)
def test_the_sample_has_the_smallest_hashes(
    parts: list[list[int]], max_masks: int, max_pixels: int
) -> None:
    """As many as the limits allow, but at least one, in any order of merging."""
    seeds = [seed for part in parts for seed in part]
    hashes = hash_positions(np.arange(len(seeds)))
    kept: list[int] = []
    size = 0
    for index in np.argsort(hashes).tolist():
        mask = drawn(seeds[index])
        size += mask.size + 256 * len(np.unique(mask))
        if kept and (len(kept) == max_masks or size > max_pixels):
            break
        kept.append(seeds[index])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mask_stats, "MAX_MASKS", max_masks)
        patch.setattr(mask_stats, "MAX_PIXELS", max_pixels)
        ends = np.cumsum([len(part) for part in parts])
        for order in (1, -1):
            whole = MaskBuilder()
            for part, end in list(zip(parts, ends, strict=True))[::order]:
                builder = MaskBuilder()
                builder.limit = whole.limit
                values = BytesArray.from_values([png(drawn(seed)) for seed in part])
                builder.add(values, hashes[end - len(part) : end])
                whole.merge(builder)
            found = whole.finish(None)
            assert (found.count, found.sampled) == (len(seeds), len(kept))
            assert classes_of(found) == counted([drawn(seed) for seed in kept])


def test_masks_outside_of_the_sample_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_stats, "MAX_MASKS", 20)
    decoded = 0

    def decode(_: memoryview) -> Any:
        nonlocal decoded
        decoded += 1
        return np.array([decoded % 7 == 0], np.uint8)

    builder = MaskBuilder()
    for start in range(0, 4000, 50):
        values = BytesArray.from_values([b"%d" % number for number in range(start, start + 50)])
        builder.add(values, hash_positions(np.arange(start, start + 50)), decode)
    found = builder.finish(None)
    assert (found.count, found.sampled) == (4000, 20)
    assert 20 < decoded < 400  # about 20 * (1 + ln(4000 / 20)) = 126
