"""Files of findings: what is written is read, what is chosen is what a plain model chooses."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import FindingsFile, FindingsWriter, chosen, read_findings

HEAD = {
    "format": "recordsmith-findings",
    "version": 1,
    "command": "lint",
    "dataset": None,
    "source": "0" * 32,
    "options": {},
}
PLACE = {
    "check": "cmyk",
    "severity": "warning",
    "group": None,
    "name": "a.jpg",
    "split": None,
    "position": None,
    "found": "x",
}


def write(path: Path, *places: dict[str, Any], **head: Any) -> FindingsFile:
    lines = [{**HEAD, **head}, *({**PLACE, **place} for place in places)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_findings(f"@{path}")


def removed(findings: FindingsFile, *args: Any) -> list[str]:
    return sorted({str(place.name) for _, place in chosen(findings, *args)})


def modelled(lines: list[dict[str, Any]], checks: list[str], keep: str) -> list[str]:
    """The names that the documentation says are removed."""
    if checks:
        lines = [line for line in lines if line["check"] in checks]
    else:
        lines = [line for line in lines if line["severity"] != "note" and line["name"] is not None]
    groups = defaultdict(list)
    for line in lines:
        groups[line["group"]].append(line)
    gone = {line["name"] for line in groups.pop(None, [])}
    ranks: dict[str, Any] = {
        "first": lambda _: 0,
        "largest": lambda line: -(line["pixels"] or 0),
        "train": lambda line: line["split"] != "train",
    }
    for members in groups.values():
        stays = [] if keep == "none" else [min(members, key=ranks[keep])]
        if stays and members[0]["check"].endswith("-across-splits"):
            stays = [line for line in members if line["split"] == stays[0]["split"]]
        gone |= {line["name"] for line in members} - {line["name"] for line in stays}
    return sorted(map(str, gone))


@pytest.mark.parametrize("keep", ["first", "largest", "train", "none"])
def test_chosen_are_those_of_the_model(tmp_path: Path, keep: str) -> None:
    draw = random.Random(keep)
    names = ["cmyk", "identical-images", "similar-across-splits", "rotated"]
    places = [*itertools.product(range(4), range(3), range(10))]
    for round_number in range(40):
        lines = [
            {
                **PLACE,
                "check": names[check],
                "severity": "note" if names[check] == "rotated" else "error",
                "group": 3 * check + group if check else None,
                "name": f"{name}.jpg" if check or name else None,
                "split": draw.choice(["train", "test", None]),
                "pixels": draw.choice([None, 1, 2, 3]),
            }
            for check, group, name in draw.sample(places, draw.randrange(40))
        ]
        findings = write(tmp_path / f"{round_number}.jsonl", *lines)
        known = sorted({line["check"] for line in lines})
        for checks in ([], known[:1], known):
            assert removed(findings, checks, keep) == modelled(lines, checks, keep)


def test_what_is_written_is_read_and_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    FindingsWriter(path, "lint", {}, overwrite=False).add("cmyk", "warning", "x")
    assert not [*tmp_path.iterdir()]
    names = ["a.jpg", "Bäume/é.png", "\udcff.jpg", 'quote"\n.png']
    for overwrite in (False, True):
        out = FindingsWriter(path, "lint", {"deep": True}, overwrite=overwrite, source="d")
        for name in names:
            group = out.new_group()
            out.add("cmyk", "warning", "x" * 500, name=name, group=group, pixels=6, place="")
        out.save()
    with pytest.raises(rs.OptionError, match="exists"):
        FindingsWriter(path, "lint", {}, overwrite=False)
    places = [*read_findings(path)]
    assert [(place.name, place.group, place.pixels) for place in places] == [
        (name, number, 6) for number, name in enumerate(names, 1)
    ]
    assert {(len(place.found), place.place, place.split) for place in places} == {(200, None, None)}
    path.read_bytes().decode()


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ([], 1, "empty"),
        (["{"], 1, "truncated JSON"),
        (["\xff"], 1, ""),
        (["0,5"], 1, "not JSON"),
        (["[" * 5000], 1, "nested too deeply|not JSON|truncated JSON"),
        (["x" * 100_000], 1, "too long"),
        ([json.dumps({**HEAD, "format": "other"})], 1, "format 'other' and version 1"),
        ([json.dumps({**HEAD, "version": 2})], 1, "version 2; expected .* and 1"),
        ([json.dumps(PLACE)], 1, "head"),
        ([json.dumps(HEAD), "null"], 2, "not a place"),
        ([json.dumps(HEAD), "", json.dumps(PLACE), '{"check": 1}'], 4, "not a place"),
        *(
            ([json.dumps(HEAD), json.dumps({**PLACE, **wrong})], 2, "not a place")
            for wrong in (
                {"position": -1},
                {"position": 1 << 70},
                {"position": 0.5},
                {"group": "a"},
                {"severity": "bad"},
                {"name": ["a"]},
                {"pixels": True},
            )
        ),
    ],
)
def test_broken_files_are_refused_with_their_line(
    tmp_path: Path, lines: list[str], line: int, what: str
) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes("".join(f"{text}\n" for text in lines).encode("latin-1"))
    with pytest.raises(rs.OptionError, match=f"line {line}.*({what})"):
        [*chosen(read_findings(path))]


def test_checks_and_rules_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    findings = write(tmp_path / "f.jsonl", {}, {"check": "alpha"})
    with pytest.raises(rs.OptionError, match=r"no places of 'alfa'.*one of cmyk, alpha"):
        [*chosen(findings, ["alfa"])]
    with pytest.raises(rs.OptionError, match="first, largest, train, none"):
        [*chosen(findings, keep="last")]
    assert not [*chosen(write(tmp_path / "none.jsonl"), "cmyk")]
