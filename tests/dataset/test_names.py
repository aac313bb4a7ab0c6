"""Shard names: formatting, parsing, and foreign names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.dataset import (
    RECORD_SUFFIXES,
    is_shard_name,
    parse_shard_name,
    shard_name,
    split_of,
)
from recordsmith.dataset.names import looks_like_shard
from recordsmith.format.wire import COMPRESSIONS
from recordsmith.support.errors import OptionError

from ..raising import raises

SPLITS = st.text(
    st.characters(blacklist_categories=("Cc", "Zl", "Zp"), blacklist_characters="/\\:*?[]"),
    min_size=1,
)


@given(SPLITS, st.integers(0, 10**7), st.integers(1, 10**7), st.sampled_from(COMPRESSIONS))
def test_names_read_back(split: str, number: int, count: int, compression: Any) -> None:
    name = shard_name(split, number, count, compression)
    assert parse_shard_name(name) == (split, number, count)
    assert split_of(name) == split


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train-00000-of-00002", ("train", 0, 2)),
        ("train.tfrecord-00001-of-00002", ("train", 1, 2)),
        ("train.tfrecords-00001-of-00002", ("train", 1, 2)),
        ("coco_val.record-00007-of-00010", ("coco_val", 7, 10)),
        ("mnist-test.tfrecord-00000-of-00001", ("mnist-test", 0, 1)),
        ("images-00001-of-00002.tfrec", ("images", 1, 2)),
        ("digits.array_record-00000-of-00002", ("digits.array_record", 0, 2)),
        ("a-00000-of-00001-00002-of-00003.tfrecord", ("a-00000-of-00001", 2, 3)),
        ("flowers_train_00000-of-00002.tfrecord", ("flowers_train", 0, 2)),
        ("x-123456-of-234567.tfrecord.gz", ("x", 123456, 234567)),
        ("train.tfrecord", None),
        ("train-0-of-2.tfrecord", None),
        ("-00000-of-00002", None),
        ("train-00000-of-00002.tfrecord.index/../x y", None),
        ("", None),
    ],
)
def test_foreign_names(name: str, expected: tuple[str, int, int] | None) -> None:
    assert parse_shard_name(name) == expected


@pytest.mark.parametrize("suffix", RECORD_SUFFIXES)
def test_every_usual_suffix_is_known(suffix: str) -> None:
    name = f"train-00003-of-00128{suffix}"
    assert shard_name("train", 3, 128, template=name) == name
    assert parse_shard_name(name) == ("train", 3, 128)
    assert parse_shard_name(f"train{suffix}-00003-of-00128") == ("train", 3, 128)
    assert is_shard_name(f"data{suffix}")
    assert looks_like_shard(f"data{suffix}.gz")


@pytest.mark.parametrize("field", ["{split:999999999}", "{split.__class__}", "{shard!r}", "{0}"])
def test_templates_have_plain_fields_only(field: str) -> None:
    with raises(OptionError, option="shard_names", match="template"):
        shard_name("train", 0, 1, template=field + "-{split}-{shard}-{shards}")
