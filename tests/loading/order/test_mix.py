"""A mix draws from each dataset in proportion, exactly, and from all of its records alike."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.loading.order.mix import _interleaved, _weight, shared_out


@pytest.fixture(scope="module")
def datasets(small: Any, tmp_path_factory: pytest.TempPathFactory) -> list[rs.Dataset]:
    """Of 13, 5 and 1 records, whose ids begin with 0, 100 and 200."""
    folder = tmp_path_factory.mktemp("mix")
    return [
        small.write_shards(folder / "a", [6, 0, 7], lengths=(3, 0, 8)),
        small.write_shards(folder / "b", [5], first_id=100, lengths=(1, 20)),
        small.write_shards(folder / "c", [1], first_id=200),
    ]


@pytest.fixture(scope="module")
def mix(datasets: list[rs.Dataset]) -> rs.Mix:
    return rs.Mix(list(zip(datasets, (0.5, 0.3, 0.2), strict=True)))


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6), st.integers(1, 10_000))
def test_draws_are_shared_out_by_weight(weights: list[float], count: int) -> None:
    shares = shared_out(count, [_weight(0, weight) for weight in weights])
    assert sum(shares) == count
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - count * weight / sum(weights)) < 1 + 1e-6


def test_the_largest_remainders_get_what_is_left(datasets: list[rs.Dataset]) -> None:
    a, b, c = datasets
    assert rs.Mix([(a, 0.7), (b, 0.3)]).draw_counts == (13, 5)  # 12.6 and 5.4
    assert rs.Mix([(a, 7), (b, 3)], length=1000).draw_counts == (700, 300)
    assert rs.Mix([(a, 1), (b, 1), (c, 1)], length=5).draw_counts == (2, 2, 1)
    assert len(rs.Mix([(a, 1), (b, 1)])) == 18


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6))
def test_draws_are_spread_evenly(counts: list[int]) -> None:
    draws = _interleaved(np.arange(sum(counts)), counts)
    assert sorted(draws.tolist()) == list(range(sum(counts)))
    first = 0
    for count in counts:
        is_own = (draws >= first) & (draws < first + count)
        assert draws[is_own].tolist() == list(range(first, first + count)), "not in order"
        even = np.arange(1, len(draws) + 1) * count / len(draws)
        assert abs(np.cumsum(is_own) - even).max() < len(counts)
        first += count


@given(st.lists(st.integers(0, 18), max_size=9))
def test_positions_are_those_of_one_dataset_after_the_other(
    mix: rs.Mix, datasets: list[rs.Dataset], positions: list[int]
) -> None:
    payloads = [payload for dataset in datasets for payload in dataset.records()]
    asked = np.array(positions, np.int64)
    records = mix.records.read_records(asked)
    assert records.tolist() == [payloads[position] for position in positions]
    assert mix.records.record_sizes(asked).tolist() == [
        len(payloads[position]) for position in positions
    ]


def test_a_state_of_other_proportions_is_refused(
    small: Any, datasets: list[rs.Dataset], mix: rs.Mix
) -> None:
    a, b, c = datasets
    state = json.loads(json.dumps(small.loader(mix, batch_size=2).state_dict()))
    same = rs.Mix([(a, 5), (b, 3), (c, 2)])
    small.loader(same, batch_size=2).load_state_dict(state)
    for other in ([(a, 5), (b, 2), (c, 3)], [(b, 3), (a, 5), (c, 2)]):
        with pytest.raises(rs.OptionError) as caught:
            small.loader(rs.Mix(other), batch_size=2).load_state_dict(state)
        assert caught.value.option == "state"
        assert "mix" in caught.value.problem


def test_features_must_be_in_all_datasets(tmp_path: Any, datasets: list[rs.Dataset]) -> None:
    mix = rs.Mix([(datasets[0], 1), (written(tmp_path, [{"id": 1.5, "other": 3}]), 1)])

    def load(feature: Any) -> Any:
        return list(rs.Loader(mix, {"x": feature}, batch_size=2, threads=0))

    with raises(rs.OptionError, option="features"):
        load(rs.Scalar("other"))
    with raises(rs.OptionError, option="features"):
        load(rs.Scalar("id"))
    numbers = np.concatenate([batch["x"] for batch in load(rs.Scalar("other", default=7))])
    assert Counter(numbers.tolist()) == {7: 7, 3: 7}


def test_weights_by_epoch(datasets: list[rs.Dataset]) -> None:
    a, b, c = datasets
    mix = rs.Mix([(a, [3, 1, 0]), (b, 1), (c, (0, 0, 1, 0))], length=24)
    assert mix.draws_by_epoch == ((18, 6, 0), (12, 12, 0), (0, 12, 12), (0, 24, 0))


def test_weights_of_an_epoch_must_not_all_be_0(datasets: list[rs.Dataset]) -> None:
    for parts in ([(datasets[0], [1, 0])], [(datasets[0], [])], [(datasets[0], [1, -1])]):
        with raises(rs.OptionError, option="parts"):
            rs.Mix(parts)


def test_renamed_features(tmp_path: Any) -> None:
    """Also where two features swap their names, or one gets the name of another."""
    alike = [{"id": at, "number": [at / 2] * (at % 3), "data": b"x" * at} for at in range(12)]
    alike[9]["data"] = b"y" * 3_000_000  # more than is renamed at once
    swapped = [
        {"number": row["id"], "id": np.array(row["number"], np.float32), "data": row["data"]}
        for row in alike[7:]
    ]
    own, other = written(tmp_path, alike[:7]), written(tmp_path, swapped)
    mix = rs.Mix([(own, 1), (other, 1)], length=36, rename=[None, {"number": "id", "id": "number"}])
    features = {"id": "id", "number": rs.Ragged("number"), "data": "data", "at": rs.Position()}
    read = 0
    for batch in rs.Loader(mix, features, batch_size=5, shuffle=True, threads=0):
        for row in range(len(batch["at"])):
            found = {key: batch[key][row] for key in ("id", "number", "data")}
            np.testing.assert_equal(found, alike[batch["at"][row]])
            read += 1
    assert read == 36
    replaced = rs.Loader(rs.Mix([(other, 1)], rename=[{"number": "id"}]), batch_size=5)
    assert [batch["id"].tolist() for batch in replaced] == [[7, 8, 9, 10, 11]]
    assert sorted(replaced.spec()) == ["data", "id"]


def test_renamed_features_that_few_records_have(tmp_path: Any) -> None:
    rows: list[Any] = [{"x": at} for at in range(80)] + [{"x": 80, "rare": 7}]
    mix = rs.Mix([(written(tmp_path, rows), 1)], rename=[{"rare": "y"}])
    (batch,) = rs.Loader(mix, {"y": rs.Scalar("y", default=0, dtype="int64")}, batch_size=81)
    assert sorted(batch["y"].tolist()) == [0] * 80 + [7]


def test_damaged_records_with_renamed_features(tmp_path: Any) -> None:
    rows: list[Any] = [{"x": at} for at in range(6)]
    rows[3] = b"no Example"
    mix = rs.Mix([(written(tmp_path, rows), 1)], rename=[{"x": "y"}])
    loader = rs.Loader(mix, {"y": rs.Scalar("y")}, batch_size=6, skip_errors=1, threads=0)
    assert [batch["y"].tolist() for batch in loader] == [[0, 1, 2, 4, 5]]
    assert [error.record for error in loader.skipped] == [3]


@pytest.mark.parametrize(("rename", "features", "fields"), [
    ({"x": "y"}, ["id"], {"option": "rename"}),  # a dict for all
    ([{"other": "y"}], ["id"], {"option": "rename"}),
    ([None, {"other": 3}], ["id"], {"option": "rename"}),
    ([None, {"other": "id", "corner": "id"}], ["id"], {"option": "rename"}),
    ([None, {"ather": "id"}], ["id"], {"option": "rename", "match": "dataset 1 .*'other'"}),
    ([None, {"score": "id"}], {"id": rs.Scalar("id")},
     {"option": "features", "match": "int64 in dataset 0 of the mix, but float in dataset 1"}),
    ([None, {"corner": "id"}], {"id": rs.Scalar("id")},
     {"option": "shape", "match": "dataset 1 of the mix"}),
])  # fmt: skip
def test_bad_names(
    tmp_path: Any, datasets: list[rs.Dataset], rename: Any, features: Any, fields: Any
) -> None:
    other = written(tmp_path, [{"other": at, "score": 0.5, "corner": [1, 2]} for at in range(3)])
    with raises(rs.OptionError, **fields):
        rs.Loader(rs.Mix([(datasets[0], 1), (other, 1)], rename=rename), features, batch_size=2)
