"""The secrets of the viewer: where its token comes from, its path, and who can read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import user_cache_folder
from recordsmith.viewing.access import TOKEN_VARIABLE, user_path

from .conftest import Client, write

TOKEN = "0123456789abcdefXYZ"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "a.tfrecord", [{"id": 1}])


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("ending", ["", "\n", " \r\n"])
def test_the_token_comes_from_a_file_or_a_variable(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_viewer: Any, ending: str
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert open_viewer(path).token == TOKEN
    file = private(tmp_path / "token", f"{TOKEN[::-1]}{ending}")
    assert open_viewer(path, token_file=file).token == TOKEN[::-1]
    assert open_viewer(path, token_file=file, token="a" * 16).token == "a" * 16


@pytest.mark.parametrize("text", ["", "short", "with a space and more than 16", "\xff" * 20])
def test_invalid_tokens(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with pytest.raises(rs.OptionError) as caught:
        rs.view(path, token_file=private(tmp_path / "token", text))
    assert (caught.value.option, TOKEN_VARIABLE in caught.value.remedy) == ("token", True)
    monkeypatch.setenv(TOKEN_VARIABLE, text)
    with pytest.raises(rs.OptionError):
        rs.view(path)


@pytest.mark.posix
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o602])
def test_a_token_file_that_others_may_open_is_refused(
    path: Path, tmp_path: Path, mode: int
) -> None:
    file = private(tmp_path / "token", TOKEN)
    file.chmod(mode)
    with pytest.raises(rs.FileAccessError) as caught:
        rs.view(path, token_file=file)
    assert (caught.value.path, "chmod" in caught.value.remedy) == (str(file), True)
    with pytest.raises(rs.FileAccessError):
        rs.view(path, token_file=tmp_path / "nothing")


def test_bookmarks_work_over_restarts(path: Path, open_viewer: Any) -> None:
    first, second = open_viewer(path), open_viewer(path)
    assert first.path == second.path
    assert first.token != second.token
    assert first.token not in first.address


@pytest.mark.posix
def test_the_path_is_private() -> None:
    kept, file = user_path(), Path(user_cache_folder(), "viewer-path")
    assert user_path() == kept
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(file.parent) == ["viewer-path"]


@pytest.mark.posix
@pytest.mark.parametrize("fault", ["readable", "damaged", "link", "empty"])
def test_a_path_that_others_may_know_is_not_used(tmp_path: Path, fault: str) -> None:
    kept, file = user_path(), Path(user_cache_folder(), "viewer-path")
    if fault == "readable":
        file.chmod(0o644)
    elif fault == "link":
        private(tmp_path / "other", kept)
        file.unlink()
        file.symlink_to(tmp_path / "other")
    else:
        private(file, {"damaged": "../" + kept, "empty": ""}[fault])
    made = user_path()
    assert (made != kept, len(made), user_path()) == (True, 32, made)
    assert not file.is_symlink()


def test_without_a_folder_for_caches_the_path_is_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert user_path() != user_path()


def test_two_viewers_keep_their_cookies(path: Path, open_viewer: Any) -> None:
    first, second = open_viewer(path), open_viewer(path)
    both: Client = first
    both.http.get(second.viewer.url)
    names = {name for client in (first, second) for name in dict(client.http.cookies)}
    assert len(names) == 2
    assert first.json("/api/dataset")["record_count"] == 1
