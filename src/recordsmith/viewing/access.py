"""Secrets of the viewer, which no other user of this machine may read: its token and its path.

Other users can read the arguments of processes. So the token comes from a file or a variable, and a
browser is started with the name of a private file that redirects it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from recordsmith.stores import PRIVATE_MODE, check_private, make_private_folder, user_cache_folder
from recordsmith.support.errors import FileAccessError, OptionError, accessing, option

TOKEN_VARIABLE = "RECORDSMITH_VIEW_TOKEN"  # noqa: S105 - the name of a variable
_LEAST_TOKEN = 16  # characters
_MAX_TOKEN_FILE = 4096  # bytes
_PATH_NAME = "viewer-path"
_PATH = re.compile(r"[0-9a-f]{32}")
HOW_TO_PASS = (
    f"Set {TOKEN_VARIABLE}, or pass {option('token_file')}, "
    f"with at least {_LEAST_TOKEN} letters and digits."
)


def find_token(token: str | None, token_file: str | os.PathLike[str] | None) -> str | None:
    """Return the token that the user chose: the argument, a file, or the variable.

    Raises:
        OptionError: it is too short, or has other characters.
        FileAccessError: the file cannot be read, or other users may read it.
    """
    if token is None and token_file is not None:
        token = _read_token(os.fspath(token_file))
    if token is None:
        token = os.environ.get(TOKEN_VARIABLE)
    if token is not None and not re.fullmatch(f"[A-Za-z0-9]{{{_LEAST_TOKEN},}}", token):
        raise OptionError(
            "the token is too short, or has other characters than letters and digits",
            option="token",
            expected=f"at least {_LEAST_TOKEN} letters and digits",
            remedy=HOW_TO_PASS,
        )
    return token


def _read_token(path: str) -> str:
    with accessing(path, "read"), open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        data = file.read(_MAX_TOKEN_FILE)
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise FileAccessError(
            errno.EPERM,
            "other users may read it",
            path,
            operation="use as a token",
            remedy=f"Run `chmod go= {path}`, and choose a new token if someone else could read it.",
        )
    return data.decode("utf-8", "replace").strip()


def user_path() -> str:
    """Return the path below which a viewer of this user is, so that bookmarks work.

    It is random, and in a file that only the user can read: browsers send a cookie to all servers
    of this machine, but only for its path.
    """
    made = secrets.token_hex(16)
    with suppress(FileAccessError, OSError):
        folder = user_cache_folder()
        make_private_folder(folder)
        path = os.path.join(folder, _PATH_NAME)
        kept = _read_path(path)
        if kept is not None:
            return kept
        opened, temporary = tempfile.mkstemp(dir=folder, prefix=f".{_PATH_NAME}-")  # mode 0600
        with open(opened, "w", encoding="ascii") as file:
            file.write(made)
        os.replace(temporary, path)
    return made


def _read_path(path: str) -> str | None:
    """Return the kept path; None if there is none, or if others may know or change it."""
    with suppress(FileAccessError, OSError, UnicodeDecodeError):
        check_private(path)
        if os.name != "posix" or not os.stat(path).st_mode & ~PRIVATE_MODE & 0o777:
            kept = Path(path).read_text("ascii")
            return kept if _PATH.fullmatch(kept) else None
    return None


@contextmanager
def redirecting_file(url: str) -> Iterator[str]:
    """Yield the address of a private file that redirects a browser to `url`; remove it after."""
    with tempfile.TemporaryDirectory(
        prefix="recordsmith-view-", ignore_cleanup_errors=True
    ) as folder:
        path = Path(folder, "open.html")
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
        with open(opened, "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html><meta charset="utf-8"><title>recordsmith</title>'
                f'<meta http-equiv="refresh" content="0;url={escape(url, quote=True)}">'
            )
        yield path.as_uri()
