"""`--engine`: the output of each command is that of threads."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "{data}", "--deep", "--json"),
        ("stats", "{data}", "--json"),
        ("diff", "{data}", "{data}", "--json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_equal_output(run, packed: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    typed = [one.format(data=packed, out=tmp_path / "new") for one in arguments]
    outcomes = []
    for options in ([], ["--engine", "processes:2"]):
        outcome = run(*typed, *options)
        outcomes.append((outcome.code, outcome.out, outcome.err))
        for path in packed.glob("*.idx"):
            path.unlink()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == 0


@pytest.mark.parametrize("command", ["verify", "stats", "diff"])
def test_unknown_engines(run, packed: Path, tmp_path: Path, command: str) -> None:
    out = [tmp_path / "new"] if command == "diff" else []
    outcome = run(command, packed, *out, "--engine", "abacus")
    assert outcome.code == 2
    assert "--engine must be " in outcome.err
