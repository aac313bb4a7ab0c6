"""Statistics of datasets: against plain counting over decoded records."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.checking.statistics import record_builder
from recordsmith.checking.statistics.feature_stats import FeatureStats
from recordsmith.image import probe_image

from ...raising import raises

small = st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=4)
floats = st.lists(st.floats(width=32), max_size=4)
texts = st.lists(st.binary(max_size=3) | st.sampled_from([b"a", b"\xff"]), max_size=4)
keys = st.sampled_from(["a", "b/ä", "", "x" * 300, "n\x00\x1b"])
examples = st.dictionaries(keys, small.map(np.int64) | floats.map(np.float32) | texts)


def as_int64s(values: Any) -> Any:
    return np.array(values, np.int64)


@settings(max_examples=30)
@given(st.lists(examples, min_size=1, max_size=12))
def test_counts_match_decoded_records(
    write, tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("stats")
    write(folder / "a.tfrecord", records[:5])
    write(folder / "b.tfrecord", records[5:])
    found = rs.stats([folder / "a.tfrecord", folder / "b.tfrecord"])
    json.dumps(found.to_json(), allow_nan=False)
    lists: dict[str, list[Any]] = defaultdict(list)
    payloads: list[bytes] = []
    for name in ("a", "b"):
        dataset = rs.open(folder / f"{name}.tfrecord") if records[5:] or name == "a" else []
        for example in dataset:
            for key, values in example.items():
                lists[key].append(values)
        payloads += [bytes(record) for record in dataset.records()] if dataset else []
    assert found.record_count == len(records)
    assert found.sizes.sample is not None
    assert found.sizes.sample.top == tuple(
        sorted(Counter(map(len, payloads)).items(), key=lambda item: (-item[1], item[0]))[:10]
    )
    assert found.features.keys() == lists.keys()
    for key, values in lists.items():
        check_feature(found.features[key], values, len(records))


def check_feature(found: FeatureStats, lists: list[Any], record_count: int) -> None:
    assert (found.present, found.missing) == (len(lists), record_count - len(lists))
    lengths = [len(values) for values in lists]
    assert (found.lengths.min, found.lengths.max) == (min(lengths), max(lengths))
    assert found.lengths.sample is not None
    assert dict(found.lengths.sample.top) == Counter(lengths)
    by_kind: dict[str, list[Any]] = defaultdict(list)
    for values in lists:
        kind = "bytes" if isinstance(values, list) else str(values.dtype).replace("32", "")
        by_kind[kind] += list(values)
    for kind, values in by_kind.items():
        if not values:
            continue
        numbers: Any = found.values[kind]  # type: ignore[index]
        assert numbers.count == len(values)
        if kind == "bytes":
            counts = Counter(values)
            assert numbers.sample.distinct == len(counts)
            top = {value.begins: value.count for value in numbers.sample.top}
            assert top.items() <= counts.items()
            assert [v.count for v in numbers.sample.top] == sorted(counts.values(), reverse=True)[
                :10
            ]
            assert numbers.sizes.mean == sum(map(len, values)) / len(values)
        else:
            finite = [value.item() for value in values if math.isfinite(value)]
            distinct = 0 if numbers.sample is None else numbers.sample.distinct
            assert distinct == len(set(finite))
            assert numbers.min == min(finite, default=None)
            assert numbers.max == max(finite, default=None)


@pytest.fixture
def shards(write, tmp_path: Path) -> list[Path]:
    """Three shards, one of them large enough to be read alone."""
    rng = np.random.default_rng(0)
    return [
        write(
            tmp_path / f"train-{number:05}-of-00003.tfrecord",
            (
                {"id": at, "score": rng.normal(size=3), "name": f"n {rng.integers(20_000)}"}
                for at in range(count)
            ),
        )
        for number, count in enumerate((300, 6000, 30))
    ]


def test_threads_do_not_change_the_result(
    shards: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = "recordsmith.checking.statistics"
    monkeypatch.setattr(f"{home}.stats_report._READ_TOGETHER_BYTES", 1000)
    monkeypatch.setattr(f"{home}.sampling.SAMPLE_SIZE", 50)
    documents = [rs.stats(shards[0].parent, threads=threads).to_json() for threads in (1, 3, None)]
    assert documents[0] == documents[1] == documents[2]
    names = documents[0]["features"]["name"]["values"]["bytes"]
    scores = documents[0]["features"]["score"]["values"]["float"]
    assert [found["sample"]["size"] for found in (names, scores)] == [50, 50]
    assert (names["count"], scores["count"]) == (6330, 3 * 6330)


def test_shards_and_splits(shards: list[Path]) -> None:
    found = rs.stats(shards[0].parent)
    assert [shard.record_count for shard in found.shards] == [300, 6000, 30]
    assert {split: len(members) for split, members in found.splits.items()} == {"train": 3}
    assert found.size_bytes == sum(path.stat().st_size for path in shards)
    with raises(rs.OptionError, option="split"):
        rs.stats(shards[0].parent, "test")
    with raises(rs.OptionError, option="threads"):
        rs.stats(shards[0].parent, threads=0)


def test_progress_is_of_bytes(shards: list[Path]) -> None:
    calls: list[tuple[int, int]] = []
    rs.stats(shards[0].parent, threads=2, progress=lambda *call: calls.append(call))
    assert calls[-1] == (sum(path.stat().st_size for path in shards),) * 2
    assert calls == sorted(calls)


@pytest.mark.parametrize("threads", [1, 2])
def test_damage_is_raised(shards: list[Path], threads: int) -> None:
    data = bytearray(shards[2].read_bytes())
    data[-1] ^= 1
    shards[2].write_bytes(data)
    with pytest.raises(rs.CorruptDataError) as caught:
        rs.stats(shards[0].parent, threads=threads)
    error = caught.value
    assert (error.defect, error.path, error.record) == (
        rs.Defect.PAYLOAD_CRC, str(shards[2]), 29,
    )  # fmt: skip


def test_a_malformed_payload_is_located(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise rs.CorruptDataError(rs.Defect.MALFORMED_EXAMPLE, "broken", record=1)

    monkeypatch.setattr(record_builder, "example_blocks", fail)
    path = write(tmp_path / "a.tfrecord", [b"\x01other", {"a": 1}, b"\x01other", {"a": 2}])
    with raises(rs.CorruptDataError, path=path, record=3):
        rs.stats(path)


def test_a_feature_of_several_kinds(write, tmp_path: Path) -> None:
    records = [{"a": as_int64s([1, 2]), "b": 1.5}, {"a": [0.5], "b": 2.5}, {"a": [b"x"]}, {"a": 7}]
    found = rs.stats(write(tmp_path / "a.tfrecord", records))
    feature = found.features["a"]
    assert feature.kind == "mixed"
    assert feature.numbers is feature.bytes is None
    assert feature.records == {"bytes": 1, "float": 1, "int64": 2}
    values: Any = feature.values
    assert (values["int64"].min, values["int64"].max, values["int64"].count) == (1, 7, 3)
    assert (values["float"].min, values["bytes"].sample.top[0].text) == (0.5, "x")
    assert found.features["b"].numbers is not None
    assert [finding.kind for finding in found.findings] == ["mixed-kinds"]
    for words in ("bytes in 1", "float in 1", "int64 in 2"):
        assert words in found.findings[0].text


def test_sequence_examples(write, tmp_path: Path) -> None:
    payloads = [
        rs.encode_sequence_example({"id": 5}, {"words": [["a"], ["b", "c"]], "x": [[1.5]]}),
        rs.encode_sequence_example({"id": 6}, {"words": [["a"], [], ["c", "a", "a"]]}),
        rs.encode_sequence_example({"id": 9}, {}),
    ]
    found = rs.stats(write(tmp_path / "a.tfrecord", payloads))
    assert found.sections.keys() == {"context", "feature_lists"}
    ids = found.sections["context"]["id"]
    assert (ids.present, ids.steps, ids.numbers and ids.numbers.max) == (3, None, 9)
    words = found.sections["feature_lists"]["words"]
    assert (words.present, words.missing) == (2, 1)
    assert words.steps is not None
    assert (words.steps.min, words.steps.max) == (2, 3)
    assert words.lengths.sample is not None
    assert dict(words.lengths.sample.top) == {0: 1, 1: 2, 2: 1, 3: 1}
    assert words.bytes is not None
    assert {value.text: value.count for value in words.bytes.sample.top} == {"a": 4, "b": 1, "c": 2}
    assert found.to_json()["features"] == {}


def test_other_payloads_are_counted(write, tmp_path: Path) -> None:
    ranking = b"\n" + bytes([len(example := rs.encode_example({"b": 1}))]) + example
    payloads = [b"\x01plain words", b"", rs.encode_example({"a": 1}), b"\x01plain words", ranking]
    found = rs.stats(write(tmp_path / "a.tfrecord", payloads))
    assert found.payloads == {"Example": 2, "other": 2, "ELWC": 1}
    assert found.features.keys() == {"a"}
    assert "3 records are not Examples" in found.content().notes[0]
    assert found.features["a"].missing == 1
    assert (found.sizes.min, found.sizes.max) == (0, max(map(len, payloads)))


def test_empty_shards_and_no_features(write, tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [])
    write(tmp_path / "b.tfrecord", [{}])
    found = rs.stats(tmp_path)
    assert (found.record_count, found.features) == (1, {})


def test_the_zoo(zoo: Path, zoo_rows: list[dict[str, Any]]) -> None:
    """Statistics of real files agree with their schema."""
    seen = 0
    for row in zoo_rows:
        path = zoo / row["file"]
        if row["tf_error"] is not None:
            with pytest.raises(rs.CorruptDataError):
                rs.stats(path)
            continue
        found = rs.stats(path)
        json.dumps(found.to_json(), allow_nan=False)
        assert found.record_count == row["records"]
        for section, features in found.sections.items():
            assert {
                key: {
                    "kind": feature.kind,
                    "min": feature.lengths.min or 0,
                    "max": feature.lengths.max or 0,
                    "present": feature.present,
                }
                for key, feature in features.items()
            } == {
                key: {name: expected[name] for name in ("kind", "min", "max", "present")}
                for key, expected in row.get(section, {}).items()
            }
            seen += len(features)
    assert seen > 50


def test_images(write, tmp_path: Path, images: ModuleType) -> None:
    known = ("jpeg", "png", "gif", "webp", "bmp", "tiff")
    every = [data for data in images.odd().values() if probe_image(data).format in known]
    assert len(every) > 20
    infos = [probe_image(data) for data in every]
    records: list[Any] = [{"image/encoded": data} for data in every]
    records.append({"image/encoded": images.jpeg(3, 30, 20)})
    records.append({"image/encoded": b"\xff\xd8\xff" + bytes(30)})
    records.append({"image/encoded": b"words"})
    found = rs.stats(write(tmp_path / "a.tfrecord", records))
    feature = found.features["image/encoded"].bytes
    assert feature is not None
    assert (feature.image_count, feature.text) == (len(every) + 2, 1)
    found_images = feature.images
    assert found_images is not None
    assert (found_images.count, found_images.unreadable) == (len(every) + 1, 1)
    assert found_images.formats == Counter(info.format for info in infos) + Counter(["jpeg"])
    assert found_images.channels == Counter(info.channels for info in infos) + Counter([3])
    assert (found_images.widths.min, found_images.widths.max, found_images.heights.max) == (
        13,
        30,
        20,
    )
    assert found_images.sizes == ((13, 9, len(every)), (30, 20, 1))
    assert "unreadable-images" in {finding.kind for finding in found.findings}


def test_what_is_sampled_is_called_so(
    write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordsmith.checking.statistics.sampling.SAMPLE_SIZE", 20)
    records = [{"id": n, "label": n % 3, "same": 7, "text": "x", "some": f"{n}"} for n in range(99)]
    found = rs.stats(write(tmp_path / "a.tfrecord", records))
    features, numbers, texts, *_ = found.content().tables[1:]
    column = features.heads.index("distinct")
    distinct = {row[0]: row[column] for row in features.rows}
    assert distinct == {
        "id": "20 or more", "label": "3 or more", "same": "1 or more", "text": "1 or more",
        "some": "20 or more",
    }  # fmt: skip
    assert "20 values" in numbers.note
    assert "20 values" in texts.note
    assert [finding.feature for finding in found.findings] == ["same"]
    assert len(found.classes["label"].splits["a"]) == 3
