"""`recordsmith view`: what other users of the machine see of it."""

from __future__ import annotations

import os
import stat
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import recordsmith as rs

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
httpx = pytest.importorskip("httpx")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(rs.encode_example({"id": 1}))
    return tmp_path / "a.tfrecord"


@pytest.mark.parametrize("browser", [True, False])
def test_a_browser_gets_a_private_file_instead_of_the_token(
    path: Path, run: Any, monkeypatch: pytest.MonkeyPatch, browser: bool
) -> None:
    opened: list[str] = []
    files: list[Path] = []
    answers: list[Any] = []

    def open_browser(address: str) -> None:
        opened.append(address)
        file = Path(unquote(urlsplit(address).path))
        files.append(file)
        if os.name == "posix":
            modes = [stat.S_IMODE(part.stat().st_mode) for part in (file, file.parent)]
            assert modes == [0o600, 0o700]
        target = file.read_text().partition("url=")[2].partition('"')[0]
        answers.append(httpx.get(target))

    monkeypatch.setattr(webbrowser, "open", open_browser)
    monkeypatch.setattr("recordsmith.viewing.server.Viewer.wait", lambda _: None)
    options = [] if browser else ["--no-browser"]
    outcome = run("view", path, *options)
    assert (outcome.code, len(opened)) == (0, int(browser))
    token = outcome.out.strip().partition("token=")[2]
    assert len(token) == 32
    for address in opened:
        assert token not in address
        assert urlsplit(address).scheme == "file"
        assert token in answers[0].headers["set-cookie"]
    assert not any(file.parent.exists() for file in files)


def test_no_option_of_the_command_has_the_token(path: Path, run: Any) -> None:
    outcome = run("view", path, "--token", "a" * 16)
    assert outcome.code == 2
    outcome = run("view", path, "--host", "0.0.0.0", "--no-browser")
    assert outcome.code != 0
    assert "--token-file" in " ".join(outcome.err.split())
