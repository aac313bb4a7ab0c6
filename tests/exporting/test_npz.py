from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs


def arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def test_every_shape_a_feature_can_have(write: Any, tmp_path: Path) -> None:
    examples = [
        {"n": 5, "pair": [0.5, 0.25], "rag": [1, 2], "b": b"x\0\0", "bs": ["a", ""], "gap": 1.5},
        {"n": -7, "pair": [1.0, 2.0], "rag": [], "b": b"", "bs": ["b"]},
        {"n": 2**62, "pair": [3.0, 4.0], "rag": [3], "b": "ö", "bs": [], "gap": 2.5, "e": []},
    ]
    rs.export(write({"rag": "int64", "bs": "bytes"}, train=examples), tmp_path / "out", "npz")
    found = arrays(tmp_path / "out" / "train.npz")
    assert found["n"].dtype == np.int64
    assert found["n"].tolist() == [5, -7, 2**62]
    assert found["pair"].dtype == np.float32
    assert found["pair"].tolist() == [[0.5, 0.25], [1, 2], [3, 4]]
    assert found["rag.values"].tolist() == [1, 2, 3]
    assert found["rag.row_splits"].tolist() == [0, 2, 2, 3]
    assert found["b.buffer"].tobytes() == "x\0\0ö".encode()
    assert found["b.offsets"].tolist() == [0, 3, 3, 5]
    assert "b.row_splits" not in found
    assert found["bs.buffer"].tobytes() == b"ab"
    assert found["bs.offsets"].tolist() == [0, 1, 1, 2]
    assert found["bs.row_splits"].tolist() == [0, 2, 3, 3]
    assert found["gap.values"].tolist() == [1.5, 2.5]
    assert found["gap.row_splits"].tolist() == [0, 1, 1, 2]
    assert found["gap.present"].tolist() == [True, False, True]
    assert found["e.present"].tolist() == [False, False, True]
    assert found["e.row_splits"].tolist() == [0, 0, 0, 0]


def test_all_splits_have_the_same_arrays(write: Any, tmp_path: Path) -> None:
    source = write(
        train=[{"a": 1, "b": [1, 2], "d": 4}], val=[{"a": 2, "b": [1]}, {"b": [], "c": "x"}]
    )
    rs.export(source, tmp_path / "out", "npz")
    train, val = (arrays(tmp_path / "out" / f"{split}.npz") for split in ("train", "val"))
    assert train.keys() == val.keys()
    assert train["c.present"].tolist() == [False]
    assert train["c.offsets"].tolist() == [0]
    assert val["b.row_splits"].tolist() == [0, 1, 1]
    assert train["d.row_splits"].tolist() == [0, 1]  # one in each record here, none there
    assert val["d.row_splits"].tolist() == [0, 0, 0]


def test_values_only_in_the_first_of_several_blocks(write: Any, tmp_path: Path) -> None:
    rs.reshard(write(train=[{"x": 1, "y": b"a"}, {"x": 2}]), tmp_path / "in", shards=2)
    rs.export(tmp_path / "in", tmp_path / "out", "npz")
    arrays = np.load(tmp_path / "out" / "train.npz")
    assert arrays["x"].tolist() == [1, 2]
    assert arrays["y.row_splits"].tolist() == [0, 1, 1]
    assert (arrays["y.offsets"].tolist(), arrays["y.buffer"].tobytes()) == ([0, 1], b"a")


def test_images_are_kept_byte_for_byte(write: Any, image: Any, tmp_path: Path) -> None:
    examples = [image(f"{n}.jpg", seed=n) for n in range(3)]
    rs.export(write(train=examples), tmp_path / "out", "npz")
    found = arrays(tmp_path / "out" / "train.npz")
    starts = found["image/encoded.offsets"]
    pieces = [
        found["image/encoded.buffer"][start:stop].tobytes() for start, stop in pairwise(starts)
    ]
    assert pieces == [example["image/encoded"] for example in examples]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([{"x": 1}, {"x": 0.5}], "'x' has different kinds"),
        ([{"x.values": 1, "x": [1]}, {"x.values": 1, "x": []}], "'x.values'"),
    ],
)
def test_features_that_arrays_cannot_hold(
    write: Any, tmp_path: Path, examples: Any, message: str
) -> None:
    with pytest.raises(rs.OptionError, match=message):
        rs.export(
            write({"x": "int64"} if "x.values" in examples[0] else None, train=examples),
            tmp_path / "out",
            "npz",
        )


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "bytes": st.binary(max_size=3),
}
ROWS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(st.none() | st.lists(VALUES[kind], max_size=3), min_size=1),
    )
)


@given(ROWS)
def test_lists_round_trip(tmp_path_factory: Any, known: Any) -> None:
    kind, rows = known
    folder = tmp_path_factory.mktemp("npz")
    with rs.ShardWriter(folder / "train.tfrecord") as writer:
        for row in rows:
            writer.write_example({"one": 1} | ({} if row is None else {"x": row}), {"x": kind})
    rs.export(folder / "train.tfrecord", folder / "out", "npz")
    found = arrays(folder / "out" / "train.npz")
    assert found.pop("one").tolist() == [1] * len(rows)
    if all(row is None for row in rows):
        assert found == {}
        return
    assert unpacked(found, len(rows)) == rows


def unpacked(found: dict[str, Any], count: int) -> list[Any]:
    """What the docstring of the format promises, read by it."""
    if "x.buffer" in found:
        data, offsets = found["x.buffer"].tobytes(), found["x.offsets"]
        values = [data[a:b] for a, b in pairwise(offsets)]
    else:
        values = found.get("x.values", found.get("x")).tolist()  # type: ignore[union-attr]
    if "x.row_splits" in found:
        splits = found["x.row_splits"]
        rows = [values[a:b] for a, b in pairwise(splits)]
    else:
        rows = [value if isinstance(value, list) else [value] for value in values]
    present = found.get("x.present", np.ones(count, bool))
    return [row if there else None for row, there in zip(rows, present, strict=True)]
