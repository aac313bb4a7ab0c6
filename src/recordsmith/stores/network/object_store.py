"""`ObjectStore`: the objects of a bucket, by obstore."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import TimeoutError as NotDoneError
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote

from recordsmith.stores.checks import check_key, check_range, check_version, missing_error
from recordsmith.stores.network.credentials import with_credentials
from recordsmith.stores.network.multipart import PART_BYTES, PARTS_AT_ONCE, MultipartWriter
from recordsmith.stores.network.request_errors import (
    BrokenRequestError,
    ConditionError,
    NoRangesError,
    RangeError,
    request_error,
)
from recordsmith.stores.network.store_options import (
    PassedOptions,
    check_endpoint,
    check_groups,
    split_url,
    store_options_error,
)
from recordsmith.stores.object_writer import Data, ObjectWriter, pieces_of
from recordsmith.stores.store import FolderEntry, ObjectInfo, Store
from recordsmith.support.errors import (
    FileAccessError,
    ForbiddenFileError,
    MissingExtraError,
    MissingFileError,
    OptionError,
    RecordsmithError,
)
from recordsmith.support.threads import can_stop, submit_request, wait_for

Result = TypeVar("Result")

_GOOGLE = ("gs://", "gcs://")
_AZURE = ("az://", "azure://", "adl://", "abfs://", "abfss://")
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_VALID_TAG = re.compile(
    r"[!-~]{1,1024}"
)  # a server can say anything, and a version goes into requests
_UNKNOWN_TIME = "time:0.000000-"  # of a web server that states no time
_TIME = "time:"
_THREADS = "TOKIO_WORKER_THREADS"
_CLIENT = {"timeout": "120s", "read_timeout": "30s", "connect_timeout": "10s"}
_RETRIES = {"max_retries": 8, "retry_timeout": timedelta(minutes=3)}
_NO_RETRIES = {"max_retries": 0, "retry_timeout": timedelta(0)}
_ATTEMPTS = 4
"""How often a read is begun that breaks in the middle, beyond what the library retries."""

_REPEATED_SECONDS = 60.0
"""How long after the first attempt another one begins: one can take `retry_timeout`, so that all
together take at most about four minutes."""

_WRITE_ATTEMPTS = 9
"""How often a conditional write is tried, which the library must not repeat."""

_FIRST_PAUSE_SECONDS = 0.1
_random = random.Random()  # noqa: S311 - of its own, as a thread may use it after its job
_LISTING_SECONDS = 600.0
_MAX_LISTED = 10_000_000
_PIECE_BYTES = 8 << 20
_COPIED_BYTES = 64 << 10
"""So much is copied at once to memory that is there: each piece is memory, too."""

_MAX_BYTES = (1 << 63) - 1
_ENDPOINTS = re.compile(
    r"(aws_)?endpoint(_url(_s3)?)?|(azure_(storage_)?)?(endpoint|account_name)|base_url"
)
_COPIED_AT_ONCE_BYTES = 5 << 30
"""The size up to which S3 copies an object in one request."""


class ObjectStore(Store):
    """The objects of a bucket, such as `s3://bucket`.

    Credentials come from where the tools of each cloud look for them, unless they are passed.

    Args:
        url: of the bucket.
        options: as in `obstore.store.from_url`, such as `region`, `endpoint` or `client_options`.
    """

    concurrency = 16

    _keeps_conditions = True
    """Whether a request with an ETag never returns another version: caches in the web do
    not all know that."""

    def __init__(self, url: str, /, **options: Any) -> None:
        self._url = url.rstrip("/")
        self._options = options
        self.passed: PassedOptions | None = None
        self._refused = "\\" if url.startswith(_AZURE) else ""  # it makes a slash of it
        config = options.get("config")
        known = {**os.environ, **options, **(config if isinstance(config, Mapping) else {})}
        self._endpoints = sorted(
            str(at) for name, at in known.items() if at and _ENDPOINTS.fullmatch(name.lower())
        )
        _import_obstore()  # reports at once that it is missing
        self._clients: dict[bool, Any] = {}
        self._is_anonymous = False

    @classmethod
    def from_url(cls, url: str, passed: PassedOptions) -> tuple[Store, str]:
        parts = split_url(url)
        is_web = parts.scheme in ("http", "https")
        root = f"{parts.scheme}://{parts.netloc}"
        if not parts.netloc:
            shown = f"{root}{parts.path}"
            raise OptionError(f"{shown} names no {'host' if is_web else 'bucket'}", value=shown)
        key = (unquote(parts.path) if is_web else url[len(root) :]).strip("/")
        return _open(cls, root, passed), check_key(key) if key else ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectStore):
            return NotImplemented
        return (self._url, self._options) == (other._url, other._options)

    def __hash__(self) -> int:
        return hash(self._url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"  # options can have credentials

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the options of this process: another one has its own."""
        return _open, (type(self), self._url, self.passed or PassedOptions(self._options))

    def _open(self, options: Mapping[str, Any]) -> Any:
        options, self._is_anonymous = with_credentials(self._url, options)
        return get_obstore().store.from_url(self._url, **with_defaults(options, self._url))

    @property
    def _store(self) -> Any:
        return self._client(retries=True)

    def _client(self, *, retries: bool) -> Any:
        """Return obstore's store; `retries`: whether it repeats requests that fail."""
        obstore = get_obstore()
        client = self._clients.get(retries)
        if client is None:
            options = self._options if retries else {**self._options, "retry_config": _NO_RETRIES}
            try:
                client = self._clients[retries] = self._open(options)
            except RecordsmithError:
                raise
            except BaseException as error:
                known = obstore.exceptions.BaseError, ValueError, TypeError
                if not (isinstance(error, known) or _is_panic(error)):
                    raise
                raise store_options_error(self._url, self._options, error) from None
        return client

    def _check_key(self, key: str) -> str:
        """Return a valid key; raise OptionError for one that the store cannot have."""
        if (self._refused and self._refused in key) or _CONTROL.search(key):
            raise OptionError(f"{key!r:.200} is not a valid key in {self._url}", value=key)
        return check_key(key)

    def name_of(self, key: str) -> str:
        return f"{self._url}/{key}" if key else self._url

    def identity(self, key: str) -> str:
        return "/".join([*self._endpoints, self.name_of(key)])

    def has_identity(self, version: str) -> bool:
        return not version.startswith(_UNKNOWN_TIME)

    # -- reading -----------------------------------------------------------------------------------

    def info(self, key: str) -> ObjectInfo:
        return object_info(key, self._head(key))

    def _head(self, key: str) -> Mapping[str, Any]:
        self._check_key(key)
        response: Mapping[str, Any] = self._call(key, lambda: get_obstore().head(self._store, key))
        return response

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        return bytes(self.read_view(key, start, stop, version))

    def read_view(
        self,
        key: str,
        start: int = 0,
        stop: int | None = None,
        version: str | None = None,
        allocate: Callable[[], memoryview] | None = None,
    ) -> memoryview:
        check_range(start, stop)
        self._check_key(key)
        name = self.name_of(key)
        if start == stop:
            check_version(name, self.info(key).version, version)
            return memoryview(b"")
        options: dict[str, Any] = {}
        if stop is not None:
            options["range"] = start, stop
        elif start:
            options["range"] = {"offset": start}
        if version is not None and (tag := _tag(version)) is not None:
            options["if_match"] = tag

        def get() -> memoryview:
            response = get_obstore().get(self._store, key, options=options or None)
            if not (self._keeps_conditions and "if_match" in options):
                check_version(name, object_info(key, response.meta).version, version)
            begin, end = response.range
            is_short = stop is None or end < stop  # then it ends with the object
            if (
                begin != start
                or (stop is not None and end > stop)
                or (is_short and end != response.meta["size"])
            ):
                raise BrokenRequestError(
                    errno.EIO, "the server sent another range than requested", name
                )
            return _body(response, end - begin, name, allocate)

        try:
            return self._call(key, get)
        except RangeError as error:  # from the end of the object on
            info = self.info(key)
            check_version(name, info.version, version)
            if isinstance(error, NoRangesError) and info.size_bytes:
                raise
            return memoryview(b"")
        except ConditionError:
            check_version(name, "", version)
            raise

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder, slash, _ = prefix.rpartition("/")
        last: str | None = None
        pages: Any = None
        count = 0
        empty: ObjectInfo | None = None

        def next_page() -> Any:
            nonlocal pages
            pages = pages or get_obstore().list(
                self._store, folder + slash or None, offset=last, chunk_size=1000
            )
            try:
                return next(pages, None)
            except BaseException:
                pages = None  # it would end here without an error
                raise

        while page := self._list_call(prefix, next_page):
            count += len(page)
            if count > _MAX_LISTED:
                raise FileAccessError(
                    errno.EFBIG, f"it lists more than {_MAX_LISTED:,} objects",
                    self.name_of(folder),
                )  # fmt: skip
            if page[-1]["path"] == last:
                raise FileAccessError(
                    errno.EIO, "the list of the server repeats its objects", self.name_of(folder)
                )
            for response in page:
                last = response["path"]
                if empty is not None and not last.startswith(f"{empty.key}/"):
                    yield empty  # else it is that folder, which a tool has made as an object
                empty = None
                if last.startswith(prefix):
                    info = object_info(last, response)
                    if info.size_bytes:
                        yield info
                    else:
                        empty = info
        if empty is not None:
            yield empty

    def _list_call(self, key: str, function: Callable[[], Result]) -> Result:
        """Call a function that reads a list, which a server may never end."""
        request = submit_request(lambda: self._repeat(key, function, "read", _ATTEMPTS))
        try:
            return wait_for(request, _LISTING_SECONDS)
        except NotDoneError:
            raise FileAccessError(
                errno.ETIMEDOUT,
                f"listing it takes more than {_LISTING_SECONDS:.0f} seconds",
                self.name_of(key),
                remedy="Pass the names of the files.",
            ) from None

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        response = self._list_call(
            key, lambda: get_obstore().list_with_delimiter(self._store, prefix or None)
        )
        entries = {FolderEntry(path.removeprefix(prefix).strip("/"), "folder")
                   for path in response["common_prefixes"] if path.startswith(prefix)}  # fmt: skip
        for item in response["objects"]:
            name = item["path"].removeprefix(prefix)
            if name and item["path"].startswith(prefix):  # not the folder itself
                entries.add(self._entry(name, *object_info(item["path"], item)[1:]))
        return iter(sorted(entry for entry in entries if entry.name and "/" not in entry.name))

    # -- writing -----------------------------------------------------------------------------------

    def open_write(
        self,
        key: str,
        *,
        overwrite: bool = True,
        is_durable: bool = True,  # noqa: ARG002
    ) -> ObjectWriter:
        return MultipartWriter(self, key, lambda data: self._put(key, data), overwrite=overwrite)

    def begin_upload(self, key: str) -> Any:
        """Begin to write an object in parts."""
        self.check_writable(self.name_of(self._check_key(key)))
        return get_obstore().open_writer(
            self._store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
        )

    def _put(self, key: str, data: bytes, *, retries: bool = True, **options: Any) -> None:
        self.check_writable(self.name_of(self._check_key(key)))
        client = self._client(retries=retries)
        self.write_call(key, lambda: get_obstore().put(client, key, data, **options))

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self._put_if(key, data, "create")

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        self._check_key(key)
        condition = {"e_tag": _tag(version)}
        if self._url.startswith(_GOOGLE):  # compares its own number of the version
            try:
                head = self._head(key)
            except MissingFileError:
                return False
            if object_info(key, head).version != version:
                return False
            condition["version"] = head["version"]
        return self._put_if(key, data, condition)

    def _put_if(self, key: str, data: Data, mode: Any) -> bool:
        """Write an object under a condition.

        If the response to a request was lost, the next one may find what the first one has written,
        so the library repeats no request here.
        """
        whole = b"".join(pieces_of(data))
        is_perhaps_written = False
        for attempt in range(_WRITE_ATTEMPTS):
            try:
                self._put(key, whole, retries=False, mode=mode)
            except ConditionError:
                return is_perhaps_written and self._has(key, whole)
            except MissingFileError:
                if mode == "create":  # the bucket is missing
                    raise
                return False
            except BrokenRequestError:
                is_perhaps_written = True
                if attempt == _WRITE_ATTEMPTS - 1:
                    raise
                _pause(attempt)
            else:
                return True
        raise AssertionError

    def _has(self, key: str, data: bytes) -> bool:
        try:
            return self.read(key) == data
        except MissingFileError:
            return False

    def copy(self, old: str, new: str, check: Callable[[], bool] | None = None) -> None:
        if not PART_BYTES < self.size(old) <= _COPIED_AT_ONCE_BYTES:
            super().copy(old, new, check)
            return
        self.check_writable(self.name_of(self._check_key(new)))
        if check is not None:
            check()
        self.write_call(old, lambda: get_obstore().copy(self._store, old, new, overwrite=True))

    def delete(self, key: str) -> None:
        self.check_writable(self.name_of(self._check_key(key)))
        with suppress(MissingFileError):
            self.write_call(key, lambda: get_obstore().delete(self._store, key), "delete")

    # -- requests ----------------------------------------------------------------------------------

    def _call(
        self,
        key: str,
        function: Callable[[], Result],
        operation: str = "read",
        attempts: int = _ATTEMPTS,
    ) -> Result:
        """Call a function that makes requests, in another thread if this one may stop waiting."""
        if can_stop():
            return wait_for(
                submit_request(lambda: self._repeat(key, function, operation, attempts))
            )
        return self._repeat(key, function, operation, attempts)

    def write_call(
        self, key: str, function: Callable[[], Result], operation: str = "write"
    ) -> Result:
        """Call a function that changes an object, and translate its errors."""
        return self._call(key, function, operation, attempts=1)

    def _repeat(
        self, key: str, function: Callable[[], Result], operation: str, attempts: int
    ) -> Result:
        """Call obstore, again if the request breaks; translate its errors.

        They repeat what the server has sent, so none of them becomes the context of ours.
        """
        latest = time.monotonic() + _REPEATED_SECONDS
        for attempt in range(attempts):
            try:
                return function()
            except BaseException as error:  # noqa: BLE001 - a panic is no Exception
                is_ours = isinstance(error, RecordsmithError)
                failed = error if is_ours else self._failure(error, key, operation)
            is_last = attempt == attempts - 1 or time.monotonic() >= latest
            if is_last or not isinstance(failed, BrokenRequestError):
                raise failed
            _pause(attempt)
        raise AssertionError

    def _failure(self, error: BaseException, key: str, operation: str) -> BaseException:
        """Return our error for one of obstore; the same error if it is not obstore's."""
        exceptions, name = get_obstore().exceptions, self.name_of(key)
        if isinstance(error, FileNotFoundError):
            failed = request_error(str(error), name, operation=operation)
            return failed if isinstance(failed, MissingFileError) else missing_error(name)
        if isinstance(error, (exceptions.AlreadyExistsError, exceptions.PreconditionError)):
            return ConditionError(errno.ESTALE, "it was replaced", name, operation=operation)
        if isinstance(error, exceptions.InvalidPathError):
            return FileAccessError(
                errno.EIO, "it has an object whose name has an empty part, '.', '..' or a control "
                "character", name, operation=operation,
                remedy="Rename the object, or pass another folder.",
            )  # fmt: skip
        if isinstance(error, ValueError):
            if "parse path" in str(error):
                return OptionError(f"{key!r:.200} is not a valid key here", value=key)
            return FileAccessError(
                errno.EIO, "the response of the server is invalid", name, operation=operation
            )
        if not (isinstance(error, (exceptions.BaseError, OSError)) or _is_panic(error)):
            return error
        failed = request_error(
            str(error), name, operation=operation, is_anonymous=self._is_anonymous
        )
        if isinstance(failed, ForbiddenFileError):
            self._clients.clear()  # the next request looks for credentials again
        return failed


_started: int | None = None  # the process whose threads make requests


def get_obstore() -> Any:
    """Return the module obstore, ready for requests from this process.

    One thread takes in what arrives: it keeps up with a fast network, and several cost a third more
    CPU time for each request (measured).
    """
    global _started  # noqa: PLW0603 - its threads are global, too
    obstore = _import_obstore()
    if _started is None:
        given = os.environ.get(_THREADS)
        os.environ[_THREADS] = given or "1"
        try:
            obstore.put(obstore.store.MemoryStore(), "first", b"")
        finally:
            if given is None:
                os.environ.pop(_THREADS, None)
        _started = os.getpid()
    elif _started != os.getpid():
        raise forked_error()
    return obstore


def _open(kind: type[ObjectStore], root: str, passed: PassedOptions) -> ObjectStore:
    """Return the store of a bucket or server, which is opened once for equal options."""
    options = passed.complete()
    try:
        texts = json.dumps(options, sort_keys=True), json.dumps(passed, sort_keys=True)
    except TypeError:  # with objects that find credentials
        store = kind(root, **options)
    else:
        store = _opened(kind, root, *texts)
    store.passed = passed
    return store


@lru_cache(256)
def _opened(kind: type[ObjectStore], root: str, options: str, _: str) -> ObjectStore:
    """The store of a bucket, opened once: its connections stay open."""
    return kind(root, **json.loads(options))


def forked_error() -> OptionError:
    """Return the error for requests in a forked process."""
    return OptionError(
        "this process was forked from one that had read over the network, whose connections it "
        "cannot use",
        remedy="Start processes with forkserver or spawn, as with "
        "DataLoader(…, multiprocessing_context='forkserver').",
    )


def _import_obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise MissingExtraError("remote", "obstore") from None
    return obstore


def _is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of the library, which is not an `Exception`."""
    return type(error).__module__ == "pyo3_runtime"


def object_info(key: str, response: Mapping[str, Any]) -> ObjectInfo:
    """Return size and version from a response; the version is the ETag, or time and size."""
    tag, size = (response["e_tag"] or "").strip('"'), response["size"]
    if size > _MAX_BYTES:
        raise FileAccessError(errno.EIO, "the server states an impossible size", key)
    if not _VALID_TAG.fullmatch(tag):
        tag = f"{_TIME}{response['last_modified'].timestamp():.6f}-{size}"
    return ObjectInfo(key, size, tag)


def _body(
    response: Any, byte_count: int, name: str, allocate: Callable[[], memoryview] | None
) -> memoryview:
    """Return the bytes of a response, in the given memory if there is some.

    The library's own method takes as much memory as the server states, and all that it sends.
    """
    pieces: list[Any] = []
    memory: memoryview | None = None
    at, most = 0, min(byte_count, _PIECE_BYTES) + 1 if allocate is None else _COPIED_BYTES
    for piece in response.stream(min_chunk_size=most):
        begin, at = at, at + len(piece)
        if at > byte_count:
            break
        if allocate is None:
            pieces.append(piece)
        else:
            memory = allocate() if memory is None else memory
            memory[begin:at] = piece
        del piece  # before the next one is there
    if at != byte_count:
        raise BrokenRequestError(errno.EIO, "the connection broke in the middle of the data", name)
    if memory is not None:
        return memory[:at]
    return memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))


def _pause(attempt: int) -> None:
    time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt * _random.uniform(0.5, 1.5))


def _tag(version: str) -> str | None:
    """Return the ETag for a condition; None if there is none that can be compared."""
    return None if version.startswith((_TIME, "W/")) else f'"{version}"'


def with_defaults(options: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Add what is not set: deadlines and retries, and that an endpoint may be without TLS."""
    check_groups(options)
    client, retries = options.get("client_options", {}), options.get("retry_config", {})
    client = {**_CLIENT, **client}
    if check_endpoint(url, options).startswith("http://"):
        client.setdefault("allow_http", True)
    return {**options, "client_options": client, "retry_config": {**_RETRIES, **retries}}
