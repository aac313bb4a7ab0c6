"""`lint` writes all places to a file; `pack` leaves samples out, or keeps them together."""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import FindingsWriter, chosen, read_findings

from .planted import photo

SIDES = {"small": (64, 48), "large": (128, 96)}
COPIES = [f"train/a/copy {number:03d}.png" for number in range(150)]
SAME = {
    "identical-images": [
        COPIES,
        ["test/a/two.png", "test/b/two.png"],
        ["train/a/four.png", "train/b/four.png"],
        ["train/a/three.jpg", "train/b/three.jpg"],
    ],
    "identical-across-splits": [
        ["test/a/one.png", "train/b/one.png"],
        ["test/b/three.jpg", "train/a/three.jpg", "train/b/three.jpg"],
    ],
    "conflicting-labels": [
        ["test/a/one.png", "train/b/one.png"],
        ["test/a/two.png", "test/b/two.png"],
        ["test/b/three.jpg", "train/a/three.jpg", "train/b/three.jpg"],
        ["train/a/four.png", "train/b/four.png"],
    ],
    "similar-across-splits": [
        ["test/a/five.jpg", "train/a/five.png"],
        ["test/b/three.jpg", "train/a/three.jpg", "train/b/three.jpg", "train/b/three.png"],
    ],
    "similar-images": [
        ["train/a/four.jpg", "train/a/four.png", "train/b/four.png"],
        ["train/a/three.jpg", "train/b/three.jpg", "train/b/three.png"],
    ],
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two splits with copies within and across, the same and almost. Not to be changed."""
    root = tmp_path_factory.mktemp("copies") / "copies"

    def save(name: str, seed: int, size: str = "small") -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        photo(seed, SIDES["large"]).resize(SIDES[size]).save(root / name)

    save(COPIES[0], 0)
    for name in COPIES[1:]:
        shutil.copy(root / COPIES[0], root / name)
    for seed, name in enumerate(("one", "two", "three", "four", "five"), 1):
        for path in sorted({p for groups in SAME.values() for group in groups for p in group}):
            if path.rpartition("/")[2].startswith(name):
                save(path, seed, "large" if path.endswith("jpg") else "small")
    for seed in range(10, 14):
        save(f"train/b/{seed}.png", seed)
        save(f"test/a/{seed + 10}.png", seed + 10)
    (root / "train/b/cut.png").write_bytes((root / "train/b/10.png").read_bytes()[:900])
    return root


@pytest.fixture(scope="session")
def found(folder: Path) -> Path:
    path = folder.parent / "found.jsonl"
    rs.lint(folder, findings=path)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


def groups_of(path: Path) -> dict[str, list[list[str]]]:
    groups: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for line in lines_of(path):
        if line["group"] is not None:
            groups[line["check"], line["group"]].append(line["name"])
    assert len({number for _, number in groups}) == len(groups)
    by_check: dict[str, list[list[str]]] = {}
    for (check, _), members in groups.items():
        by_check.setdefault(check, []).append(members)
    return by_check


def names_in(out: Path) -> list[str]:
    return sorted(record["image/filename"][0].decode() for record in rs.open(out))


def test_all_places_are_written_in_their_groups(folder: Path, found: Path) -> None:
    by_check = {
        check: sorted(sorted(group) for group in groups)
        for check, groups in groups_of(found).items()
    }
    assert by_check == {check: sorted(groups) for check, groups in SAME.items()}
    order = [sample.name for sample in rs.ImageFolder(folder).list_samples().samples]
    for groups in groups_of(found).values():
        assert all(group == sorted(group, key=order.index) for group in groups)
    for line in lines_of(found):
        assert line["split"] == line["name"].partition("/")[0]
        assert line["position"] is None
        if line["group"] is not None:
            assert line["pixels"] == (128 * 96 if line["name"].endswith("jpg") else 64 * 48)
    assert [line["name"] for line in lines_of(found) if line["group"] is None] == [
        "train/b/cut.png"
    ]
    similar = {line["found"] for line in lines_of(found) if line["name"] == "train/b/three.png"}
    assert {text[:22] for text in similar} == {"almost the same image "}
    report = rs.lint(folder)
    counts = {str(finding.check): finding.count for finding in report.findings}
    for check, groups in by_check.items():
        assert counts[check] <= sum(len(group) for group in groups) - len(groups) + 1


def test_the_bytes_do_not_depend_on_threads(folder: Path, found: Path, tmp_path: Path) -> None:
    rs.lint(folder, findings=tmp_path / "f.jsonl", threads=1)
    assert (tmp_path / "f.jsonl").read_bytes() == found.read_bytes()
    with pytest.raises(rs.OptionError, match="exists"):
        rs.lint(folder, findings=tmp_path / "f.jsonl")
    rs.lint(folder, findings=tmp_path / "f.jsonl", only="cmyk", overwrite=True)
    assert not lines_of(tmp_path / "f.jsonl")


def test_groups_in_several_splits_are_written(folder: Path, tmp_path: Path) -> None:
    found = tmp_path / "f.jsonl"
    rs.lint(folder, only="group-across-splits", group_pattern=r"/(\w+)( |\.)", findings=found)
    by_stem: defaultdict[str, list[str]] = defaultdict(list)
    for sample in rs.ImageFolder(folder).list_samples().samples:
        by_stem[re.split(r"[ .]", sample.name.rpartition("/")[2])[0]].append(sample.name)
    divided = [names for names in by_stem.values() if len({n[:4] for n in names}) > 1]
    assert {"two", "four"}.isdisjoint(stem for stem, names in by_stem.items() if names in divided)
    assert sorted(groups_of(found)["group-across-splits"]) == sorted(divided)
    gone = {place.name for _, place in chosen(read_findings(found), keep="train")}
    assert gone == {name for names in divided for name in names if name.startswith("test")}


@pytest.mark.parametrize("keep", ["first", "largest", "train", "none"])
@pytest.mark.parametrize("checks", [(), "identical-images", ["similar-across-splits"]])
def test_pack_leaves_out_exactly_the_chosen_samples(
    folder: Path, found: Path, tmp_path: Path, keep: str, checks: Any
) -> None:
    detection = rs.detect(folder, leave_out=f"@{found}", checks=checks, keep=keep)
    gone = {place.name for _, place in chosen(read_findings(found), checks, keep)}
    listing = detection.source.list_samples()
    every = {sample.name for sample in rs.ImageFolder(folder).list_samples().samples}
    assert {sample.name for sample in listing.samples} == every - gone
    assert listing.account is not None
    (line,) = [line for line in listing.account.left_out if "@found.jsonl" in line.what]
    assert (line.file_count, listing.account.file_count) == (len(gone), len(every))
    if not checks:
        again = rs.lint(detection.source)
        has = {str(finding.check) for finding in again.findings if finding.severity != "note"}
        assert has.isdisjoint(SAME)
        report = rs.pack(detection.source, tmp_path / "out")
        assert names_in(tmp_path / "out") == sorted(every - gone)
        assert any(f"{len(gone)} images left out by @found.jsonl" in n for n in report.notices)


@pytest.mark.parametrize("seed", range(8))
def test_groups_stay_together(folder: Path, found: Path, tmp_path: Path, seed: int) -> None:
    checks = ["unreadable-image", "identical-images"]
    source = rs.detect(folder, leave_out=f"@{found}", checks=checks).source
    shares = {"a": 0.4, "b": 0.3, "c": 0.3}
    options: Any = {"splits": shares, "resplit": ["train", "test"], "seed": seed}
    rs.pack(source, tmp_path / "out", together=str(found), **options)
    split_of = {
        record["image/filename"][0].decode(): split
        for split, dataset in rs.open(tmp_path / "out").splits.items()
        for record in dataset
    }
    assert {*split_of.values()} == {*shares}
    for groups in groups_of(found).values():
        for group in groups:
            assert len({split_of[name] for name in group if name in split_of}) == 1


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_rows_of_a_table_are_left_out(tmp_path: Path, compression: str | None) -> None:
    table, found = tmp_path / "rows.csv", tmp_path / "f.jsonl"
    table.write_text("id,text\n" + "".join(f"{number},row {number}\n" for number in range(50)))
    rs.lint(table, findings=found)
    names = [sample.name for sample in rs.Table(table).list_samples().samples]
    out = FindingsWriter(found, "lint", {}, overwrite=True, source=read_findings(found).head.source)
    for number in (0, 7, 8, 49):
        out.add("unreadable-sample", "error", "", name=names[number])
    out.save()
    source = rs.detect(table, leave_out=f"@{found}").source
    report = rs.pack(source, tmp_path / "out", compression=compression, shards=3)
    rows = sorted((r["id"][0], r["text"][0].decode()) for r in rs.open(tmp_path / "out"))
    assert rows == [(k, f"row {k}") for k in range(50) if k not in (0, 7, 8, 49)]
    assert "4 samples left out by @f.jsonl" in report.notices


def test_files_that_do_not_fit_are_refused(folder: Path, found: Path, tmp_path: Path) -> None:
    with pytest.raises(rs.OptionError, match="3 groups are in several of the splits"):
        rs.pack(folder, tmp_path / "out", together=str(found))
    other = tmp_path / "other"
    for name in ("a/1.png", "a/2.png"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        photo(len(name), SIDES["small"]).save(other / name)
    message = "about another source.*digest .*expected digest .*same options of the source"
    for act in (
        rs.detect(other, leave_out=f"@{found}").source.list_samples,
        lambda: rs.pack(other, tmp_path / "out", together=str(found)),
    ):
        with pytest.raises(rs.OptionError, match=message):
            act()
    with pytest.raises(rs.OptionError, match=r"not about a dataset.*lint"):
        rs.pack(other, tmp_path / "packed")
        rs.reshard(tmp_path / "packed", tmp_path / "out", without=f"@{found}")
    with pytest.raises(rs.OptionError, match=r"checks.* needs a file of findings"):
        rs.detect(other, checks="cmyk")
