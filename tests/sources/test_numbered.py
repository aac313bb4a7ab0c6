"""Samples by number: a sequence like a tuple of them, in little memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from recordsmith.format.example import BytesArray
from recordsmith.sources import Names, RowNames, Sample, SampleTable


def _samples(**changes: Any) -> SampleTable:
    options: dict[str, Any] = {
        "labels": np.array([0, -1, 2], np.int32),
        "splits": (["train", "test"], np.array([1, 0, 0], np.int32)),
        "groups": (["p"], np.array([-1, 0, 0], np.int32)),
    }
    names = RowNames({"a.csv": 2, "b/c.csv": 1})
    options["references"] = names.reference
    names = changes.pop("names", names)
    return SampleTable(names, np.array([10, 20, 2**40]), **options | changes)


def test_selected_samples_are_those_of_the_numbers() -> None:
    numbers = [2, 0, 2, 1]
    names = Names(BytesArray(np.frombuffer(b"ab\xff\xc3\xa9", np.uint8), np.array([0, 1, 3, 5])))
    for samples in (
        _samples(),
        _samples(names=names, version=np.array([7, 8, 9]), references=None, labels=None),
        _samples(splits=None, groups=None, version=3),
    ):
        selected = list(samples.select(numbers))
        assert selected == [samples[number] for number in numbers]
        assert [sample.version for sample in selected] == [samples[n].version for n in numbers]
    assert not [*_samples().select([])]


def test_it_is_a_sequence_of_samples() -> None:
    samples = _samples()
    listed = list(samples)
    assert [dataclasses.astuple(sample)[:5] for sample in listed] == [
        ("a.csv/0000000", 10, 0, "test", None),
        ("a.csv/0000001", 20, None, "train", "p"),
        ("b/c.csv/0000000", 2**40, 2, "train", "p"),
    ]
    assert all(isinstance(sample, Sample) for sample in listed)
    assert [samples[number] for number in range(3)] == listed
    assert samples[-1] == listed[2]
    assert samples[1:] == tuple(listed[1:])
    assert len(samples) == 3
    assert listed[1] in samples
    with pytest.raises(IndexError):
        samples[3]


def test_equal_means_equal_in_everything() -> None:
    assert _samples() == _samples()
    changes: list[dict[str, Any]] = [
        {"labels": None},
        {"labels": np.array([0, -1, 1], np.int32)},
        {"splits": None},
        {"splits": (["train", "val"], np.array([1, 0, 0], np.int32))},
        {"groups": (["p"], np.array([0, 0, 0], np.int32))},
    ]
    for change in changes:
        assert _samples(**change) != _samples()
    assert _samples() != [*_samples()]
    names = [RowNames({"a": 2, "b": 1}), RowNames({"a": 1, "b": 2})]
    sizes = np.array([1, 2, 3])
    assert SampleTable(names[0], sizes) != SampleTable(names[1], sizes)
    assert SampleTable(names[0], sizes) != SampleTable(names[0], sizes + 1)
