"""Groups that stay whole, classes that stay balanced, folds, and splits by a table of names."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.sources import Listing, Sample, join_groups, with_groups
from recordsmith.sources.class_folders.image_folder import ImageReader
from recordsmith.stores import as_folder
from recordsmith.support.errors import OptionError, SourceError
from recordsmith.writing.packing.division import _parts_of_balanced_groups
from recordsmith.writing.packing.pack_options import PackOptions
from recordsmith.writing.packing.shard_assignment import ShardAssignment, assign_shards

from ...places import contents
from ...raising import raises


def _plan(samples: Sequence[Sample], names: tuple[str, ...], **options: Any) -> ShardAssignment:
    listing = Listing(tuple(samples), ImageReader(as_folder("nowhere")), names)
    return assign_shards(listing, PackOptions(**options), {"kind": "x"})


def _split_of(plan: ShardAssignment, samples: Sequence[Sample]) -> dict[str, str]:
    return {samples[n].name: split for split, order in plan.orders.items() for n in order}


# -- groups and classes ----------------------------------------------------------------------------


def _model(groups: list[int], labels: list[int], shares: list[float]) -> list[int]:
    """The rule, slow and simple: groups by spread, each where the classes deviate least."""
    _, classes, totals = np.unique(labels, return_inverse=True, return_counts=True)
    counts = {
        group: np.bincount(classes[np.array(groups) == group], minlength=len(totals))
        for group in {*groups}
    }
    placed = np.zeros((len(shares), len(totals)))
    found: dict[int, int] = {}
    for group in sorted(counts, key=lambda group: (-round(counts[group].std(), 9), group)):
        deviations = []
        for split in range(len(shares)):
            held = placed.copy()
            held[split] += counts[group]
            off = (held - np.outer(shares, held.sum(axis=0))) / totals
            deviations.append(off.std(axis=0)[counts[group] > 0].sum())  # others do not change
        least = min(deviations) * (1 + 1e-5)
        fullness = placed.sum(axis=1) / shares
        found[group] = min((fullness[n], n) for n, d in enumerate(deviations) if d <= least)[1]
        placed[found[group]] += counts[group]
    return [found[group] for group in groups]


def test_classes_are_as_even_as_by_the_rule() -> None:
    rng = random.Random(5)
    for case in range(60):
        shares = [[0.8, 0.1, 0.1], [0.5, 0.5], [0.2] * 5][case % 3]
        count, classes = rng.randint(15, 40), rng.randint(1, 6)
        groups = [rng.randrange(count) for _ in range(count * rng.randint(1, 5))]
        labels = [
            min(rng.randrange(classes), rng.randrange(classes), group % 3) for group in groups
        ]
        parts = _parts_of_balanced_groups(np.array(groups, np.uint64), np.array(labels), shares)
        assert parts.tolist() == _model(groups, labels, shares)


@settings(max_examples=40, deadline=None)
@given(
    members=st.lists(st.tuples(st.none() | st.integers(1, 16), st.integers(-1, 3)), min_size=30),
    parts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    seed=st.integers(0, 99),
    folds=st.none() | st.integers(2, 6),
    stratify=st.booleans(),
)
def test_groups_are_whole_in_splits_and_folds(
    members: list[tuple[int | None, int]],
    parts: list[int],
    seed: int,
    folds: int | None,
    stratify: bool,
) -> None:
    samples = [
        Sample(f"{n}.png", 1, None if label < 0 else label, group=group and f"g{group}")
        for n, (group, label) in enumerate(members)
    ]
    shares = {f"s{n}": part / sum(parts) for n, part in enumerate(parts)}
    options = {"splits": shares, "seed": seed, "folds": folds, "stratify": stratify}
    try:
        plan = _plan(samples, ("a", "b", "c", "d"), **options)
    except OptionError as error:
        if error.option not in ("splits", "folds"):  # which would be empty
            raise
        return
    split_of = _split_of(plan, samples)
    assert sorted(split_of) == sorted(sample.name for sample in samples)
    keys: defaultdict[str, set[Any]] = defaultdict(set)
    for number, sample in enumerate(samples):
        fold = None if plan.folds is None else int(plan.folds[number])
        keys[sample.group or sample.name].add((split_of[sample.name], fold))
    assert {len(found) for found in keys.values()} == {1}
    mixed = random.Random(seed).sample(range(len(samples)), len(samples))
    shuffled = [samples[n] for n in mixed]
    again = _plan(shuffled, ("a", "b", "c", "d"), **options)
    assert _split_of(again, shuffled) == split_of
    if plan.folds is not None and again.folds is not None:
        assert again.folds.tolist() == plan.folds[mixed].tolist()
    grouped = any(sample.group for sample in samples)
    labels = np.array([label for _, label in members])
    for split, found in plan.deviations.items():
        own = [n for n, sample in enumerate(samples) if split_of[sample.name] == split]
        if split in shares:
            for label, deviation in found.items():
                share = (labels[own] == label).sum() / (labels == label).sum()
                assert abs(share - shares[split] - deviation) < 1e-5
    assert bool(plan.deviations) == (stratify and grouped and bool((labels >= 0).any()))


def test_other_groups_are_another_plan_if_folds_change() -> None:
    """A rerun keeps shards only if their records have the same folds."""
    plans = [
        _plan([Sample(f"{n}", 1, group=f"{n // size}") for n in range(24)], (), folds=folds)
        for size in (1, 2, 3)
        for folds in (None, 3)
    ]
    assert len({plan.fingerprint for plan in plans}) == 4  # without folds, groups change nothing


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 7), min_size=12, max_size=90),
    folds=st.integers(2, 7),
    stratify=st.booleans(),
    shuffle=st.booleans(),
)
def test_folds_are_equal_parts_of_each_split_and_class(
    labels: list[int], folds: int, stratify: bool, shuffle: bool
) -> None:
    samples = [Sample(f"{n}", 1, label) for n, label in enumerate(labels)]
    splits = {"train": 0.75, "test": 0.25}
    names = tuple(map(str, range(8)))
    try:
        plain = _plan(samples, names, splits=splits, stratify=stratify, shuffle=shuffle)
    except OptionError:
        return
    plan = _plan(samples, names, splits=splits, stratify=stratify, shuffle=shuffle, folds=folds)
    assert {k: v.tolist() for k, v in plan.orders.items()} == {
        k: v.tolist() for k, v in plain.orders.items()
    }
    assert plan.fingerprint != plain.fingerprint
    assert plan.folds is not None
    sets = [range(len(samples)), *plan.orders.values()]
    if stratify:
        sets = [
            *sets[:1],
            *([n for n in order.tolist() if labels[n] == label]
              for label in {*labels} for order in plan.orders.values()),
        ]  # fmt: skip
    for members in sets:
        sizes = np.bincount(plan.folds[list(members)], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4), st.integers(-1, 3)), min_size=1))
def test_samples_that_share_any_group_are_in_one(rows: list[tuple[int, ...]]) -> None:
    codings = [
        ([f"{'zyx'[c]}{n}" for n in range(5)], np.array([row[c] for row in rows], np.int32))
        for c in range(3)
    ]
    names, joined = join_groups(codings)
    parents = list(range(len(rows)))
    for a in range(len(rows)):  # until nothing changes, which is slow and simple
        for b in range(len(rows)):
            if any(x == y >= 0 for x, y in zip(rows[a], rows[b], strict=True)):
                old, new = max(parents[a], parents[b]), min(parents[a], parents[b])
                parents = [new if parent == old else parent for parent in parents]
    for a, row in enumerate(rows):
        assert (joined[a] < 0) == (max(row) < 0)
        assert row[0] < 0 or names[joined[a]].startswith("z")
        for b in range(len(rows)):
            if max(row) >= 0 and max(rows[b]) >= 0:
                assert (names[joined[a]] == names[joined[b]]) == (parents[a] == parents[b])


# -- from folders to records -----------------------------------------------------------------------


@pytest.fixture
def scans(tmp_path: Path, images: ModuleType) -> Path:
    """Two classes, 12 patients with 3 scans each."""
    for patient in range(12):
        for scan in range(3):
            folder = tmp_path / "scans" / ("ill" if patient % 3 == 0 or scan == 2 else "well")
            folder.mkdir(parents=True, exist_ok=True)
            name = f"p{patient:02d}_{scan}.png"
            (folder / name).write_bytes(
                images.encode(images.noise(4, 4, seed=patient * 3 + scan), "PNG")
            )
    return tmp_path / "scans"


def _records(out: Path) -> list[tuple[str, str, int | None]]:
    """The name of the image, the split, and the fold of each record."""
    return [
        (record["image/filename"][0].decode(), split, next(iter(record.get("fold", [None]))))
        for split in rs.open(out).splits
        for record in rs.open(out, split=split)
    ]


def _patients(out: Path) -> set[tuple[str, str, int | None]]:
    """Each patient with the splits and folds of the scans."""
    return {(name.split("/")[1][:3], split, fold) for name, split, fold in _records(out)}


def _write(path: Path, *rows: Sequence[str]) -> str:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return str(path)


OPTIONS: dict[str, Any] = {
    "splits": {"train": 0.75, "test": 0.25},
    "folds": 3,
    "group_pattern": r"/(?P<other>.)?(?P<group>\d+)_",
    "stratify": True,
}


def test_patients_are_in_one_split_and_one_fold(scans: Path, tmp_path: Path) -> None:
    report = rs.pack(scans, tmp_path / "out", shards=2, **OPTIONS)
    found, places = _records(tmp_path / "out"), _patients(tmp_path / "out")
    assert (len(found), len(places)) == (36, 12)
    assert Counter(split for _, split, _ in places) == {"train": 9, "test": 3}
    assert Counter(fold for _, split, fold in places if split == "train") == {0: 3, 1: 3, 2: 3}
    ill = sum(name.startswith("ill") and split == "test" for name, split, _ in found)
    assert report.deviations["test"]["ill"] == pytest.approx(ill / 20 - 0.25)
    assert [*report.deviations] == ["train", "test", "fold 0", "fold 1", "fold 2"]
    assert json.loads(json.dumps(report.to_json()))["deviations"] == report.deviations
    assert rs.pack(scans, tmp_path / "out", shards=2, **OPTIONS).is_new is False
    plan = rs.plan(scans, tmp_path / "planned", shards=2, **OPTIONS)
    plan.save(tmp_path / "plan.jsonl")
    loaded = rs.PackPlan.load(tmp_path / "plan.jsonl")
    finished = rs.finish(loaded, [rs.run(task.to_json()) for task in loaded.tasks()])
    assert finished.deviations == report.deviations
    assert contents(tmp_path / "planned") == contents(tmp_path / "out")
    document = next(iter(loaded.tasks())).to_json()
    document["samples"][0][-1] = 3
    with raises(OptionError, option="task"):
        rs.run(document)


def test_folds_can_be_chosen_by_a_condition(scans: Path, tmp_path: Path) -> None:
    rs.pack(scans, tmp_path / "out", folds=4)
    for fold in range(4):
        for where, count in ((f"fold == {fold}", 9), (f"fold != {fold}", 27)):
            chosen = rs.open(tmp_path / "out").filter(where)
            loader = rs.Loader(chosen, {"fold": rs.Scalar("fold")}, batch_size=1)
            folds = [int(batch["fold"][0]) for batch in loader]
            assert len(folds) == count
            assert {n == fold for n in folds} == {where == f"fold == {fold}"}
    feature = rs.open(tmp_path / "out").schema.features["fold"]
    assert feature.kind == "int64"


def test_rows_get_a_fold(tmp_path: Path) -> None:
    rows = [{"id": number, "who": f"p{number % 5}"} for number in range(20)]
    rs.pack(rs.Rows(rows, group="who"), tmp_path / "rows", folds=5)
    folds: defaultdict[bytes, set[int]] = defaultdict(set)
    for record in rs.open(tmp_path / "rows"):
        folds[record["who"][0]].add(record["fold"][0])
    assert sorted(fold for of_group in folds.values() for fold in of_group) == [0, 1, 2, 3, 4]
    with raises(OptionError, option="folds", match="'fold'"):
        rs.pack(rs.Rows([{"fold": 1}] * 9), tmp_path / "twice", folds=2)


@pytest.mark.parametrize("by", ["groups", "together"])
def test_patients_of_one_group_are_joined(scans: Path, tmp_path: Path, by: str) -> None:
    """Patients 00 and 05 share a group in a table, or have the same image."""
    joined = ("p00", "p05")
    names = sorted(path.name for path in scans.rglob("*.png"))
    options: dict[str, Any] = {"group_pattern": "(p[0-9]+)_", by: str(tmp_path / "found")}
    if by == "groups":
        rows = [("f" if name[:3] in joined else name[:3], name) for name in names]
        _write(tmp_path / "found", ("group", "name"), *rows)
    else:
        (scans / "ill" / "p05_2.png").write_bytes((scans / "ill" / "p00_1.png").read_bytes())
        rs.lint(scans, findings=tmp_path / "found", only="identical-images")
    for seed in range(4):
        out = tmp_path / str(seed)
        rs.pack(scans, out, splits={"a": 0.5, "b": 0.5}, seed=seed, **options)
        assert len(_patients(out)) == 12
        assert len({split for patient, split, _ in _patients(out) if patient in joined}) == 1
    for alone in ("p01", "p00"):  # splits of a table are kept
        rows = [(name, "x" if name.startswith(alone) else "y") for name in names]
        table = _write(tmp_path / "s.csv", ("name", "split"), *rows)
        if alone == "p01":
            rs.pack(scans, tmp_path / "kept", splits=f"@{table}", **options)
            continue
        with raises(OptionError, option=by, match="1 group is in several"):
            rs.pack(scans, tmp_path / "refused", splits=f"@{table}", **options)


def test_splits_of_a_table(scans: Path, tmp_path: Path) -> None:
    paths = sorted(path.relative_to(scans).as_posix() for path in scans.rglob("*.png"))
    split_of = {path: ("test", "dev", "train")[n % 3] for n, path in enumerate(paths)}
    spellings: list[Callable[[str], str]] = [
        lambda path: path,
        lambda path: f"D:\\old\\{path}".replace("/", "\\"),
        lambda path: path.split("/")[1],
        lambda path: path.split("/")[1].removesuffix(".png"),
        lambda path: path.split("/")[1].replace(".png", ".jpg"),
    ]
    rows = [(spellings[n % 5](path), split_of[path]) for n, path in enumerate(paths)]
    table = _write(tmp_path / "s.csv", ("name", "split"), *rows, ("gone.png", "train"))
    report = rs.pack(scans, tmp_path / "out", splits=f"@{table}", folds=3)
    assert {name: split for name, split, _ in _records(tmp_path / "out")} == split_of
    assert tuple(rs.open(tmp_path / "out").splits) == ("train", "dev", "test")
    assert any("gone.png" in notice for notice in report.notices)


@pytest.mark.parametrize(
    ("text", "kind", "match"),
    [
        ("", SourceError, "columns name and split"),
        ("image,split\na.png,x\n", SourceError, "columns name and split"),
        ("name,split\na.png,\n", SourceError, "line 2 has no split"),
        ("name,split\n,x\n", SourceError, "line 2 has no name"),
        ("name,split\np00_0.png,x\n", SourceError, "35 of 36 images have no line"),
        ("name,split\nill/p00_0.png,x\np00_0.png,y\n", SourceError, "another split than in line 2"),
        ("name,split\np11_0.png,x\n", SourceError, "'p11_0.png' may be .*ill/p11_0.png"),
        ("name,split\nill/p00_0.png,x\r\n\0", SourceError, "not a table"),
        ('name,split\n"ill/p00_0.png\n' + "x" * 200_000, SourceError, "not CSV"),
        ("name;split\n" + "\n".join(f"p{n // 3:02d}_{n % 3};../x" for n in range(36)), SourceError,
         "cannot be part of a file name"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(
    scans: Path, tmp_path: Path, text: str, kind: type[Exception], match: str
) -> None:
    if "may be" in match:
        (scans / "ill" / "p11_0.png").write_bytes((scans / "ill" / "p00_0.png").read_bytes())
    (tmp_path / "s.csv").write_text(text)
    csv.field_size_limit(1 << 17)  # of the process: reading a table of rows raises it
    with pytest.raises(kind, match=match):
        rs.pack(scans, tmp_path / "out", splits=f"@{tmp_path / 's.csv'}")
    assert not (tmp_path / "out" / "dataset.json").exists()


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"group_pattern": "("}, OptionError, "regular expression"),
        ({"group_pattern": "(p0[0-9])_"}, SourceError, "6 of 36 images have no group"),
        ({"folds": 1}, OptionError, "from 2 to"),
        ({"folds": True}, OptionError, "from 2 to"),
        ({"folds": 13, "group_pattern": "(p[0-9]+)_"}, OptionError, "1 of 13 folds would be empty"),
        ({"folds": 37}, OptionError, "1 of 37 folds would be empty"),
        ({"splits": "@s.csv", "resplit": "train"}, OptionError, "resplit"),
    ],
)
def test_options_that_do_not_fit(
    scans: Path, tmp_path: Path, options: dict[str, Any], kind: type[Exception], match: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    paths = [path.name for path in scans.rglob("*.png")]
    _write(tmp_path / "s.csv", ("name", "split"), *((path, "train") for path in paths))
    with pytest.raises(kind, match=match):
        rs.pack(scans, tmp_path / "out", **options)


# -- leakage ---------------------------------------------------------------------------------------


def test_groups_in_two_splits_are_reported_and_refused(tmp_path: Path, images: ModuleType) -> None:
    folder, pattern = tmp_path / "scans", "(p.)[.]png"
    for split, patients in {"train": "1234", "val": "453", "test": "36"}.items():
        (folder / split / "x").mkdir(parents=True)
        for patient in patients:
            image = images.encode(images.noise(4, 4, seed=int(patient)), "PNG")
            (folder / split / "x" / f"p{patient}.png").write_bytes(image)
    for deep in (False, True):
        report = rs.lint(folder, deep=deep, group_pattern=pattern, only="group-across-splits")
        (finding,) = report.findings
        assert finding.count == 3
        assert [(e.file, e.other) for e in finding.examples] == [
            ("val/x/p3.png", "train/x/p3.png"),
            ("test/x/p3.png", "train/x/p3.png"),
            ("val/x/p4.png", "train/x/p4.png"),
        ]
    assert rs.lint(folder, deep=False, only="group-across-splits").findings == []
    with raises(OptionError, option="group_pattern", match="2 groups are in several"):
        rs.pack(folder, tmp_path / "out", group_pattern=pattern)
    options: Any = {"splits": {"a": 0.5, "b": 0.5}, "resplit": ["train", "val", "test"]}
    rs.pack(folder, tmp_path / "out", group_pattern=pattern, **options)
    assert len({(name[-6:], split) for name, split, _ in _records(tmp_path / "out")}) == 6


def test_records_have_the_groups_of_a_feature(scans: Path, tmp_path: Path) -> None:
    mixed, pattern = tmp_path / "mixed", "(p[0-9]+)_"
    rs.pack(scans, mixed, splits={"train": 0.5, "test": 0.5})
    counts = Counter(patient for patient, _, _ in _patients(mixed))
    divided = {patient for patient, count in counts.items() if count == 2}
    source = rs.Shards(mixed, group_column="image/filename")
    (finding,) = rs.lint(source, deep=False, group_pattern=pattern).findings
    assert finding.count == len(divided) > 2
    assert {example.found.split("'")[1] for example in finding.examples} == divided
    options: dict[str, Any] = {"splits": {"a": 0.5, "b": 0.5}, "resplit": ["train", "test"]}
    rs.pack(source, tmp_path / "whole", group_pattern=pattern, **options)
    assert len(_patients(tmp_path / "whole")) == 12
    rs.pack(rs.Shards(mixed, group_column="image/class/label"), tmp_path / "classes", **options)
    found = _records(tmp_path / "classes")
    assert len({(name.split("/")[0], split) for name, split, _ in found}) == 2
    for key in ("nothing", "image/object/bbox/xmin"):
        with raises(OptionError, option="group_column"):
            rs.Shards(mixed, group_column=key).list_samples()


def test_jobs_that_cannot_keep_groups_whole_say_so(scans: Path, tmp_path: Path) -> None:
    shares = {"a": 0.5, "b": 0.5}
    out, rows = tmp_path / "out", [{"id": n, "who": f"p{n % 5}"} for n in range(20)]
    rs.pack(scans, out, group_pattern="(p[0-9]+)_", splits=shares)
    rs.pack(scans, tmp_path / "new", like=out)
    rs.reshard(out, tmp_path / "copy", shards=2)
    rs.pack(rs.Rows(rows, group="who"), tmp_path / "rows")
    for name, match in {"out": "group_pattern", "copy": "group_pattern", "rows": "who"}.items():
        with raises(OptionError, option="splits", match=match):
            rs.reshard(tmp_path / name, tmp_path / "again", splits=shares)
    report = rs.append(tmp_path / "new", out, split="a")
    assert any("group_pattern" in notice for notice in report.notices)


def test_rows_have_no_names(tmp_path: Path) -> None:
    source = rs.Rows([{"id": 1}, {"id": 2}])
    for options in ({"group_pattern": "x"}, {"splits": "@t.csv"}, {"groups": "t.csv"}):
        with raises(OptionError, option=next(iter(options))):
            rs.pack(source, tmp_path / "out", **options)  # type: ignore[arg-type]
    listing = source.list_samples()
    assert with_groups(listing) is listing
