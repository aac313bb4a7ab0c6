from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs


def test_remove_and_replace(run, packed: Path, tmp_path: Path) -> None:
    count = len(rs.open(packed))
    outcome = run(
        "edit", packed, "--in-place", "--without", "0-1", "--reason", "asked for", "--time"
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(f"removed 2 records in {packed}")
    assert len(rs.open(packed)) == count - 2
    assert run("verify", packed, "--deep").code == 0
    assert run("reshard", packed, tmp_path / "new", "--at", "3").code == 0
    replacing = ("--in-place", "--replace", tmp_path / "new", "--on", "image/filename", "--json")
    outcome = run("edit", packed, *replacing)
    assert outcome.code == 0, outcome.err
    document = outcome.document
    assert (document["replaced"], document["is_new"]) == (0, False)  # the same record
    changes = run("history", packed, "--json").document["changes"]
    assert [change["command"] for change in changes] == ["pack", "edit --in-place"]
    assert changes[1]["removed"] == 2
    assert changes[1]["time"]
    assert "asked for" in run("history", packed).out
    assert run("recover", packed, "--json").document["outcome"] == "nothing"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--in-place", "--drop", "x"), "--drop"),
        (("new", "--without", "1"), "--without"),
        (("new", "--in-place", "--without", "1"), "--in-place"),
        (("--in-place",), "--without"),
        (("--in-place", "--without", "9999"), "--without"),
        ((), "missing argument OUT"),
    ],
)
def test_options_that_do_not_fit(
    run, packed: Path, arguments: tuple[str, ...], option: str
) -> None:
    outcome = run("edit", packed, *arguments)
    assert outcome.code == 2
    assert option in outcome.err
