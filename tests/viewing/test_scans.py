"""Views and facets: from columns that are kept, and of records that differ from each other."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import Shard
from recordsmith.viewing.lru_cache import LruCache

from .conftest import write

COUNT, LARGE = 90, 2**60 + 1
KEPT = ("label", "kind", "score", "size")


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "label": n * 7 % 5,
            "kind": ["rose", "tulip", "fern"][n % 3],
            "score": ((n * 37) % 100) / 8,
            "size": n * 11 % 83,
            "note": f"note {n % 4}",
        }
        for n in range(COUNT)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset of three shards with the columns of all features but `note`."""
    source = rs.Rows(_rows())
    rs.pack(source, tmp_path / "out", shards=3, shuffle=False, numbers_of=KEPT)
    return tmp_path / "out"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of shards whose records are read in order."""
    names: list[str] = []
    blocks = Shard.blocks

    def noted(shard: Shard, *args: Any, **options: Any) -> Iterator[Any]:
        names.append(shard.location.name)
        return blocks(shard, *args, **options)

    monkeypatch.setattr(Shard, "blocks", noted)
    return names


QUERIES: list[dict[str, str]] = [
    {"sort": "score"},
    {"sort": "-size"},
    {"sort": "kind"},
    {"where": 'kind == "rose" and label > 1'},
    {"where": "score < 3.5", "sort": "-kind"},
    {"where": "not has(kind)"},
]


def _expected(query: dict[str, str]) -> list[int]:
    rows = _rows()
    tests: dict[str, Any] = {
        "": bool,
        QUERIES[3]["where"]: lambda row: row["kind"] == "rose" and row["label"] > 1,
        QUERIES[4]["where"]: lambda row: row["score"] < 3.5,
        QUERIES[5]["where"]: operator.not_,
    }
    chosen = [n for n in range(COUNT) if tests[query.get("where", "")](rows[n])]
    if "sort" in query:
        key = query["sort"].removeprefix("-")
        ranks = sorted({row[key] for row in rows}, reverse=query["sort"].startswith("-"))
        chosen.sort(key=lambda n: ranks.index(rows[n][key]))
    return chosen


@pytest.mark.parametrize("query", QUERIES)
def test_views_of_kept_columns_read_no_record(
    open_viewer: Any, folder: Path, reads: list[str], query: dict[str, str]
) -> None:
    client = open_viewer(folder)
    view = client.poll("/api/view", **query)
    expected = _expected(query)
    assert (view["count"], view["scanned"], view["error"]) == (len(expected), COUNT, None)
    assert reads == []
    tiles = client.tiles(count=COUNT, **query)
    assert [tile["position"] for tile in tiles] == expected


def test_views_of_other_features_read_the_records(
    open_viewer: Any, folder: Path, reads: list[str]
) -> None:
    client = open_viewer(folder)
    view = client.poll("/api/view", where='note == "note 1" and label >= 0')
    assert (view["count"], len(reads)) == (len(range(1, COUNT, 4)), 3)


def test_columns_of_other_records_are_not_used(
    open_viewer: Any, folder: Path, reads: list[str]
) -> None:
    (folder / "dataset.json").unlink()
    _, second, _ = sorted(folder.glob("*.tfrecord"))
    records = list(rs.open(second).records())
    second.unlink()
    write(second, records[::-1])
    client = open_viewer(folder)
    per_shard = len(records)
    client.poll("/api/view", sort="size")
    tiles = client.tiles(count=COUNT, sort="size")
    sizes = [row["size"] for row in _rows()]
    sizes[per_shard : 2 * per_shard] = sizes[per_shard : 2 * per_shard][::-1]
    assert [tile["position"] for tile in tiles] == np.argsort(sizes, kind="stable").tolist()
    assert {*reads} == {second.name}


def test_facets_of_kept_columns_come_first(
    open_viewer: Any, folder: Path, tmp_path: Path, reads: list[str]
) -> None:
    bare = write(tmp_path / "bare.tfrecord", [*rs.open(folder).records()])
    expected = open_viewer(bare).poll("/api/facets")
    assert {facet["key"] for facet in expected["facets"]} == {*KEPT, "note"}
    reads.clear()
    client = open_viewer(folder)
    assert client.poll("/api/facets") == expected
    assert len(reads) == 3  # for the notes
    reads.clear()
    some = client.poll("/api/facets", where="label == 3")
    counts = {f["key"]: f.get("values") for f in some["facets"]}
    assert counts["label"] == [{"literal": "3", "text": "3", "count": COUNT // 5}]


def test_kept_columns_are_counted_before_records_are_read(
    open_viewer: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read, blocks = threading.Event(), Shard.blocks

    def waiting(shard: Shard, *args: Any, **options: Any) -> Iterator[Any]:
        assert may_read.wait(60)
        yield from blocks(shard, *args, **options)

    monkeypatch.setattr(Shard, "blocks", waiting)
    client = open_viewer(folder)
    for _ in range(100):
        answer = client.json("/api/facets", where="label == 3")
        if len(answer["facets"]) == len(KEPT):
            break
    assert {f["key"]: f["is_complete"] for f in answer["facets"]} == dict.fromkeys(KEPT, True)
    assert (answer["scanned"], answer["is_complete"]) == (0, False)
    may_read.set()
    answer = client.poll("/api/facets", where="label == 3")
    assert (answer["scanned"], len(answer["facets"])) == (COUNT, len(KEPT) + 1)


def test_only_some_positions_of_kept_columns(
    open_viewer: Any, folder: Path, reads: list[str]
) -> None:
    client = open_viewer(folder, at=[40, 3, 77])
    assert client.poll("/api/view", sort="size")["count"] == 3
    ordered = sorted([3, 40, 77], key=lambda n: _rows()[n]["size"])
    assert [tile["position"] for tile in client.tiles(count=9, sort="size")] == ordered
    assert reads == []


def test_a_feature_of_several_kinds_is_read_from_each_record(
    open_viewer: Any, tmp_path: Path
) -> None:
    values: list[Any] = [3, "b", 1, 2.5, None, "a", 2]
    examples: list[Any] = [{} if value is None else {"x": value} for value in values]
    broken = rs.encode_example({"x": 7})[:-1]
    client = open_viewer(write(tmp_path / "a.tfrecord", [*examples, broken]))
    assert client.poll("/api/view", sort="x")["count"] == 8
    tiles = client.tiles(count=9, sort="x")
    assert [tile["position"] for tile in tiles] == [2, 6, 3, 0, 5, 1, 4, 7]  # as text


def test_large_integers_are_exact_in_conditions(open_viewer: Any, tmp_path: Path) -> None:
    examples = [{"label": LARGE + n % 2} for n in range(10)]
    client = open_viewer(write(tmp_path / "a.tfrecord", examples))
    (facet,) = client.poll("/api/facets")["facets"]
    literals = [value["literal"] for value in facet["values"]]
    assert literals == [str(LARGE), str(LARGE + 1)]
    view = client.poll("/api/view", where=f"label == {literals[1]}")
    assert (view["count"], view["error"]) == (5, None)
    text = f"label == {LARGE}"
    answer = client.json("/api/complete", text=text, cursor=len(text))
    assert [each["text"] for each in answer["completions"]] == [str(LARGE)]


def test_contexts_of_sequences(open_viewer: Any, tmp_path: Path) -> None:
    payloads: list[Any] = [
        rs.encode_sequence_example({"size": [n]}, {"x": [[n]]}) for n in (5, 3, 4)
    ]
    client = open_viewer(write(tmp_path / "a.tfrecord", [*payloads, {"size": 1}, b"text"]))
    assert client.poll("/api/view", sort="size")["count"] == 5
    assert [t["position"] for t in client.tiles(count=9, sort="size")] == [3, 1, 2, 0, 4]
    assert client.poll("/api/view", where="size >= 4")["count"] == 2


def test_a_cache_keeps_what_was_used_last() -> None:
    dropped: list[str] = []
    cache = LruCache[int, str](5, size_of=len, drop=dropped.append)
    for key, value in enumerate(["aa", "bb", "c"]):
        assert cache.get_or_make(key, lambda value=value: value) == value
    assert cache.get_or_make(0, lambda: "new") == "aa"
    assert cache.get_or_make(3, lambda: "dd") == "dd"
    assert ([cache.get(key) for key in range(4)], dropped) == (["aa", None, "c", "dd"], ["bb"])
    assert cache.get_or_make(4, lambda: "too long") == "too long"
    assert (cache.get(4), dropped) == ("too long", ["bb", "aa", "c", "dd"])
    cache.clear()
    assert (cache.get(4), dropped[-1]) == (None, "too long")
