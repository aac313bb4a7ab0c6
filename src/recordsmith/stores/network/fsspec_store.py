"""`FsspecStore`: reads the files of a file system of fsspec, such as HDFS or SFTP."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import Any, NoReturn

from recordsmith.stores.checks import check_key, check_range, check_version, missing_error
from recordsmith.stores.network.object_store import forked_error
from recordsmith.stores.network.store_options import PassedOptions, split_url
from recordsmith.stores.store import FolderEntry, ObjectInfo, Store
from recordsmith.support.errors import (
    FileAccessError,
    ForbiddenFileError,
    MissingExtraError,
    OptionError,
    RecordsmithError,
)

_ATTEMPTS = 4
_TIMEOUT_SECONDS = 60.0
_CAUSES_SHOWN = 10
_CONDITIONS: Mapping[type[BaseException], str] = {
    socket.gaierror: "the name of the server is unknown",
    ConnectionRefusedError: "the server refused the connection",
    ConnectionError: "the connection broke",
    TimeoutError: "the server did not respond in time",
}
_REMEDIES = {
    "hdfs": "Install Java and Hadoop with its library libhdfs, and set JAVA_HOME, HADOOP_HOME, "
    "ARROW_LIBHDFS_DIR and CLASSPATH.",
}
_VERSIONS = ("ETag", "etag", "e_tag", "generation", "blob_id", "xet_hash", "mtime", "LastModified",
             "last_modified", "modificationTime", "modified", "modify", "created",
             "updated")  # fmt: skip
"""What file systems name the version or the time of a file, the most reliable first."""


class FsspecStore(Store):
    """The files below a folder of a file system of fsspec.

    It is read-only: these file systems have no conditional writes, so jobs could not keep other
    ones from their folder.

    Args:
        filesystem: of fsspec.
        folder: a folder in it.
    """

    concurrency = 8
    is_writable = False

    def __init__(self, filesystem: Any, folder: str = "") -> None:
        self._filesystem = _with_deadline(filesystem)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._folder = folder.rstrip("/") or folder[:1]
        self._head = self._folder if self._folder in ("", "/") else f"{self._folder}/"
        self._url: tuple[str, PassedOptions] | None = None

    @classmethod
    def from_url(cls, url: str, passed: PassedOptions) -> tuple[FsspecStore, str]:
        try:
            import fsspec.core
        except ImportError:
            raise MissingExtraError("remote", "fsspec") from None
        scheme = split_url(url).scheme
        try:
            files, path = fsspec.core.url_to_fs(url, **passed.complete())
        except ImportError as error:
            raise OptionError(
                f"URLs that begin with {scheme}:// need a package that is not installed: {error}",
                remedy="Install it.",
            ) from None
        except Exception as error:  # noqa: BLE001 - each file system has its own
            if isinstance(error, ValueError) and "not known" in str(error):
                raise OptionError(
                    f"the scheme of {url} is unknown",
                    value=scheme,
                    expected="a path, or a URL with s3, gs, az, https, or a scheme of fsspec",
                ) from None
            raise OptionError(
                f"{url} cannot be opened: {_reason(error)}",
                value=scheme,
                remedy=_REMEDIES.get(scheme, ""),
            ) from None
        for mark in "?#":  # some file systems cut the path there
            if mark in url and mark not in path:
                raise OptionError(
                    f"the URL {url} contains {mark!r}",
                    value=url,
                    expected=f"a {scheme} URL without it",
                    remedy="Use * in patterns.",
                )
        store = cls(files, path[: path.startswith("/")])
        store._url = url, passed
        return store, path.strip("/")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FsspecStore):
            return NotImplemented
        return (self._filesystem, self._folder) == (other._filesystem, other._folder)

    def __hash__(self) -> int:
        return hash(self._folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the options of this process: another one has its own."""
        if self._url is not None:
            return _reopened, self._url
        return FsspecStore, (self._filesystem, self._folder)

    @property
    def _files(self) -> Any:
        if self._process != os.getpid():
            raise forked_error()
        return self._filesystem

    def _in_turn(self) -> AbstractContextManager[object]:
        """Lock out other threads, where their responses would be mixed up, as with SFTP."""
        files = self._files
        is_parallel = files.async_impl or _is_arrow(files) or "memory" in files.protocol
        return nullcontext() if is_parallel else self._lock

    def name_of(self, key: str) -> str:
        return self._files.unstrip_protocol(self._path(key))  # type: ignore[no-any-return]

    def identity(self, key: str) -> str:
        """As `Store.identity`; the names of some file systems do not have the host."""
        options = getattr(self._files, "storage_options", None) or {}
        hosts = [str(options[name]) for name in ("host", "port", "username") if options.get(name)]
        return "/".join([*hosts, self.name_of(key)])

    def has_identity(self, version: str) -> bool:
        return not version.startswith("-")  # without a time

    def _path(self, key: str) -> str:
        return self._head + key if key else self._folder

    # -- reading -----------------------------------------------------------------------------------

    # what was listed is dropped as a whole: given a path, some file systems keep the listings of
    # its folder, and most those of the folders below it

    def info(self, key: str) -> ObjectInfo:
        path = self._path(check_key(key))
        with self._translating(key):
            self._files.invalidate_cache()
            details = self._files.info(path)
        if details["type"] != "file":
            raise FileAccessError(errno.EISDIR, "it is a folder", self.name_of(key))
        return object_info(key, details)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        check_range(start, stop)
        for _ in range(_ATTEMPTS):
            with self._in_turn():
                data = self._read(key, start, stop, version)
            if data is not None:
                return data
        raise FileAccessError(errno.EIO, "it changed while it was read", self.name_of(key))

    def _read(self, key: str, start: int, stop: int | None, version: str | None) -> bytes | None:
        """Return bytes of one version; None if the object changed meanwhile."""
        expected = self.info(key).version if version is None else version
        data, error = b"", None
        try:
            with self._translating(check_key(key)):
                if start != stop:
                    path = self._path(key)
                    options = {"seekable": True} if _is_arrow(self._files) else {}
                    data = bytes(self._files.cat_file(path, start=start, end=stop, **options))
        except FileAccessError as raised:
            error = raised
        info = self.info(key)  # afterwards: what was read is of this version
        check_version(self.name_of(key), info.version, version)
        end = info.size_bytes if stop is None else min(stop, info.size_bytes)
        if info.version == expected and len(data) == max(0, end - start):
            return data
        if error is not None and start < end:
            raise error
        return None

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0]
        path = self._path(folder)
        with self._translating(folder):
            self._files.invalidate_cache()
            try:
                files = self._files.find(path, detail=True)
            except FileNotFoundError:
                return
        head = self._head.lstrip("/")  # file systems differ in the first slash
        for path, info in files.items():
            key = path.lstrip("/").removeprefix(head)
            if key.startswith(prefix):
                yield object_info(key, info)

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        path = self._path(key)
        with self._translating(key):
            self._files.invalidate_cache()
            try:
                listed = self._files.ls(path, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                listed = []
        entries = []
        for info in listed:
            if info["type"] == "file" and info["name"].strip("/") == path.strip("/"):
                continue  # a file, which some list as if it were in itself
            name = info["name"].rstrip("/").rpartition("/")[2]
            if info["type"] == "directory":
                entries.append(FolderEntry(name, "folder"))
            else:
                entries.append(self._entry(*object_info(name, info)))
        return iter(sorted(entry for entry in entries if entry.name not in ("", ".", "..")))

    def is_folder(self, key: str) -> bool:
        if not key:
            return True
        path = self._path(key)
        with self._translating(key):
            self._files.invalidate_cache()
            is_folder = self._files.isdir(path)  # perhaps one without files
            return is_folder and any(names for *_, names in self._files.walk(path))

    # -- writing -----------------------------------------------------------------------------------

    def open_write(self, key: str, *_: object, **__: object) -> NoReturn:
        self.check_writable(self.name_of(check_key(key)))
        raise AssertionError

    put_if_absent = put_if_match = delete = open_write

    @contextmanager
    def _translating(self, key: str) -> Iterator[None]:
        try:
            with self._in_turn():
                yield
        except RecordsmithError:
            raise
        except FileNotFoundError:
            raise missing_error(self.name_of(key)) from None
        except PermissionError:
            raise ForbiddenFileError(errno.EACCES, "access was denied", self.name_of(key)) from None
        except Exception as error:  # noqa: BLE001 - each file system has its own
            number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
            raise FileAccessError(number, _reason(error), self.name_of(key)) from None


def _reason(error: BaseException) -> str:
    """Describe what failed, by the first cause that has a name of its own.

    The text of an error can have what was passed as an option, so it is not shown.
    """
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and len(chain) < _CAUSES_SHOWN:
        chain.append(cause)
    for link in reversed(chain):
        for kind, reason in _CONDITIONS.items():
            if isinstance(link, kind):
                return f"{reason} ({type(link).__name__})"
    names = dict.fromkeys(type(link).__name__ for link in chain)
    return f"the file system failed ({', '.join(names)})"


def _with_deadline(files: Any) -> Any:
    """Set a deadline for the responses of SFTP, which has none."""
    connection: Any = getattr(files, "ftp", None)
    if hasattr(connection, "get_channel"):
        connection.get_channel().settimeout(_TIMEOUT_SECONDS)
    return files


def _is_arrow(files: Any) -> bool:
    return type(files).__module__ == "fsspec.implementations.arrow"


def object_info(key: str, details: Mapping[str, Any]) -> ObjectInfo:
    """Return size and version from the details of a file."""
    version = next((details[name] for name in _VERSIONS if details.get(name) is not None), "")
    if isinstance(version, datetime):  # some have this here and a number there
        version = version.timestamp()
    size = details.get("size")
    if not isinstance(size, int) or size < 0:
        raise FileAccessError(errno.EIO, "the file system states no size", key)
    return ObjectInfo(key, size, f"{version}-{size}")


def _reopened(url: str, passed: PassedOptions) -> FsspecStore:
    return FsspecStore.from_url(url, passed)[0]
