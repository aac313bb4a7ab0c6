"""Label, OneHot and MultiHot: classes as numbers, and rows of zeros and ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

NAMES = ("cat", "dog", "naïve bird", "fish")
WHICH = [3, 0, 2, 2, 1]
TEXTS = [NAMES[number] for number in WHICH]
EYE = np.eye(4, dtype=np.int64)


def dataset_of(folder: Path, values: Sequence[Any], names: Any = NAMES) -> Any:
    """A record for each value, which is in `k` unless it is None."""
    folder.mkdir(exist_ok=True)
    if names is not None:
        names = names if isinstance(names, dict) else dict(enumerate(names))
        lines = "".join(f"{number}:{name}\n" for number, name in names.items())
        (folder / "labels.txt").write_text(lines, encoding="utf-8")
    return written(folder, ({} if value is None else {"k": value} for value in values))


def loaded(dataset: Any, feature: Any, **options: Any) -> Any:
    """What a feature makes of all records, or the first ones."""
    return next(iter(rs.Loader(dataset, {"x": feature}, **{"batch_size": 64, **options})))["x"]


CASES: list[tuple[Any, list[Any], Any]] = [
    # a feature, values of records, and the entry of the batch
    (rs.Label("k"), TEXTS, WHICH),
    (rs.Label("k"), WHICH, WHICH),
    (rs.Label("k"), [np.float32(number) for number in WHICH], WHICH),
    (rs.Label("k", dtype="int16"), TEXTS, np.array(WHICH, np.int16)),
    (rs.Label("k", class_names=["fish", None, "cat"]), ["cat", "fish"], [2, 0]),
    (rs.Label("k", (2,)), [["dog", "fish"], ["cat", "cat"]], [[1, 3], [0, 0]]),
    (rs.Label("k", default=-100), [None, "dog", ""], [-100, 1, -100]),
    (rs.Label("k", class_names=["", "a"], default=-1), [None, "", "a"], [-1, 0, 1]),
    (rs.Label("k", default=-1), [None, 2, -1], [-1, 2, -1]),
    (rs.Label("k", (2,), default=0), [None, ["dog", "dog"]], [[0, 0], [1, 1]]),
    (rs.OneHot("k"), TEXTS, EYE[WHICH].astype(np.float32)),
    (rs.OneHot("k", 6, dtype="bool"), WHICH, np.eye(6, dtype=bool)[WHICH]),
    (rs.OneHot("k", shape=(2,), dtype="int64"), [[1, 3], [0, 0]], EYE[[[1, 3], [0, 0]]]),
    (rs.OneHot("k", 4, dtype="int64", default=-1), [None, 3, -1], [[0] * 4, EYE[3], [0] * 4]),
    (rs.OneHot("k", 4, dtype="int64", default=1), ["cat", None], EYE[[0, 1]]),
    (rs.OneHot("k", 4, stored="vector", dtype="uint8"), [*EYE], EYE.astype(np.uint8)),
    (rs.OneHot("k", 4, (2,), stored="vector"), [EYE[:2].ravel() / 1], EYE[np.newaxis, :2] / 1),
    (rs.OneHot("k", 4, stored="vector", default=1, dtype="int64"), [None, EYE[2]], EYE[[1, 2]]),
    (rs.OneHot("k", 4, stored="vector", default=-1, dtype="int64"), [None, [0] * 4, EYE[2]],
     [[0] * 4, [0] * 4, EYE[2]]),
    (rs.MultiHot("k", dtype="int64"), [["fish", "dog"], [], None, ["dog", "dog"]],
     [[0, 1, 0, 1], [0] * 4, [0] * 4, EYE[1]]),
    (rs.MultiHot("k", 5, dtype="bool"), [[4, 0], [1], None, [1, 0, 0, 0, 2]],
     np.array([[1, 0, 0, 0, 1], [*EYE[1].tolist(), 0], [0] * 5, [1, 1, 1, 0, 0]], bool)),
    (rs.MultiHot("k", 4, stored="numbers", dtype="int64"), [[0, 1, 1, 0], [1, 1, 1, 1]],
     [[1, 1, 0, 0], EYE[1]]),
    (rs.MultiHot("k", 4, stored="vector", dtype="int64"), [[0, 1, 1, 0], None, [1.0] * 4][:2],
     [[0, 1, 1, 0], [0] * 4]),
]  # fmt: skip


@pytest.mark.parametrize(("feature", "values", "expected"), CASES)
def test_entries(tmp_path: Path, feature: Any, values: list[Any], expected: Any) -> None:
    entry = loaded(dataset_of(tmp_path, values), feature)
    expected = np.array(expected)
    assert entry.dtype == (expected.dtype if expected.dtype != np.float64 else np.float32)
    np.testing.assert_array_equal(entry, expected)
    assert loaded(dataset_of(tmp_path / "one", values), feature, batch_size=1).shape[0] == 1


def test_ragged_labels(tmp_path: Path) -> None:
    entry = loaded(dataset_of(tmp_path, [["dog", "cat"], None, ["fish"]]), rs.Label("k", "ragged"))
    assert isinstance(entry, rs.RaggedArray)
    assert entry.tolist() == [[1, 0], [], [3]]


BAD: list[tuple[Any, list[Any], str]] = [
    # of the records, the third cannot be read
    (rs.Label("k"), ["cat", "cat", "dgo"], "'dog'"),
    (rs.Label("k"), ["cat", "cat", b"\xff"], "available: cat, dog"),
    (rs.Label("k"), ["cat", "cat", "x" * 10**6], "available"),
    (rs.Label("k"), [0, 1, 4, 9], "found 4, expected 0 to 3"),
    (rs.Label("k"), [0, 1, -1], "found -1"),
    (rs.Label("k", default=-1), [0, 1, -2], "found -2"),
    (rs.Label("k"), [np.float32(n) for n in (0, 1, 0.5)], "0.5"),
    (rs.Label("k", "ragged"), [["cat"], [], ["dog", "emu"]], "emu"),
    (rs.OneHot("k", 3), ["cat", "dog", "fish"], "fish"),
    (rs.OneHot("k", 3), [0, 2, 2**62], "0 to 2"),
    (rs.OneHot("k", 2, stored="vector"), [[0, 1], [1, 0], [0, 2]], "0 or 1"),
    (rs.OneHot("k", 2, stored="vector"), [[0, 1], [1, 0], [1, 1]], "2 ones"),
    (rs.OneHot("k", 2, stored="vector"), [[0, 1], [1, 0], [0, 0]], "0 ones"),
    (rs.MultiHot("k", 3), [[0], [2, 1], [1, 0, 1]], "stored='vector'"),
    (rs.MultiHot("k", 3), [[0], [2, 1], [3]], "0 to 2"),
    (rs.MultiHot("k", 3, stored="vector"), [[1, 1, 1], [], [1]], "3 or none"),
    (rs.MultiHot("k", 2, stored="vector"), [[1.0, 0.0], [], [float("nan")] * 2],
     "nan"),
]  # fmt: skip


@pytest.mark.parametrize(("feature", "values", "words"), BAD)
def test_a_record_that_does_not_fit(
    tmp_path: Path, feature: Any, values: list[Any], words: str
) -> None:
    dataset = dataset_of(tmp_path, values)
    fields = {"defect": Defect.FEATURE_VALUE, "record": 2, "feature": "k"}
    with raises(CorruptDataError, match=words, **fields) as caught:
        loaded(dataset, feature)
    assert len(str(caught.value)) < 900
    assert len(loaded(dataset, feature, skip_errors=2)) == 2


def test_what_the_datasets_show(tmp_path: Path) -> None:
    """Before anything is loaded: missing or different class names, and the lengths of lists."""
    texts, numbers = dataset_of(tmp_path / "t", TEXTS), dataset_of(tmp_path / "n", WHICH)
    other_texts = dataset_of(tmp_path / "ot", TEXTS, NAMES[::-1])
    other_numbers = dataset_of(tmp_path / "on", WHICH, NAMES[::-1])
    unnamed = dataset_of(tmp_path / "un", TEXTS, None)
    twice = dataset_of(tmp_path / "tw", TEXTS, ["cat", "cat"])
    many = dataset_of(tmp_path / "ma", TEXTS, {0: "cat", 10**6: "dog"})
    vectors = dataset_of(tmp_path / "ve", [*EYE])
    given = rs.Label("k", class_names=NAMES)
    both, other = rs.Mix([(texts, 1), (other_texts, 1)]), rs.Mix([(numbers, 1), (other_numbers, 1)])
    some = rs.Mix([(texts, 1), (unnamed, 1)])
    for source, feature, option in (
        *((source, rs.Label("k"), "class_names") for source in (unnamed, twice, both, other, some)),
        *((source, rs.OneHot("k", 4), "class_names") for source in (unnamed, other)),
        (other, given, "class_names"),
        (many, rs.OneHot("k"), "classes"), (many, rs.MultiHot("k"), "classes"),
        (vectors, rs.MultiHot("k", 4), "stored"),
        (vectors, rs.MultiHot("k", 5, stored="vector"), "stored"),
        (vectors, rs.OneHot("k", 5, stored="vector"), "shape"),
        (texts, rs.OneHot("k", 4, stored="vector"), "features"),
    ):  # fmt: skip
        with raises(OptionError, option=option):
            rs.Loader(source, {"x": feature}, batch_size=4)
    for source in (unnamed, both, rs.Mix([(numbers, 1)])):
        assert {*loaded(source, given, batch_size=10).tolist()} == {*WHICH}
