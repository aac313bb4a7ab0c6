"""`ObjectStore`: the objects of a bucket, by obstore."""

from __future__ import annotations

import errno
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from recordsmith.errors import (
    MissingFileError,
    OptionError,
    RecordsmithError,
)
from recordsmith.stores.remote.credentials import with_credentials
from recordsmith.stores.remote.multipart import (
    PART_BYTES,
    PARTS_AT_ONCE,
    MultipartWriter,
    Upload,
)
from recordsmith.stores.remote.request_errors import (
    BrokenRequestError,
    ConditionError,
    NoRangesError,
    RangeError,
    request_error,
)
from recordsmith.stores.remote.runtime import obstore_here
from recordsmith.stores.store import (
    Data,
    FolderEntry,
    ObjectInfo,
    ObjectWriter,
    Store,
    check_key,
    check_range,
    check_version,
    check_writable,
    missing_error,
    pieces_of,
)

Result = TypeVar("Result")

_GOOGLE = ("gs://", "gcs://")
_AZURE = ("az://", "azure://", "adl://", "abfs://", "abfss://")
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_TIME = "time:"
_CLIENT = {"timeout": "120s", "read_timeout": "30s", "connect_timeout": "10s"}
_RETRIES = {"max_retries": 8, "retry_timeout": timedelta(minutes=3)}
_NO_RETRIES = {"max_retries": 0, "retry_timeout": timedelta(0)}
_ATTEMPTS = 4
"""How often a read is begun that breaks in the middle, beyond what the library retries."""

_WRITE_ATTEMPTS = 9
"""How often a conditional write is tried, which the library must not repeat."""

_FIRST_PAUSE_SECONDS = 0.1
_COPIED_AT_ONCE_BYTES = 5 << 30
"""The size up to which S3 copies an object in one request."""


class ObjectStore(Store):
    """The objects of a bucket, such as `s3://bucket`.

    Credentials come from where the tools of each cloud look for them, unless they are passed.

    Args:
        url: of the bucket.
        options: as of `obstore.store.from_url`, such as `region`, `endpoint` or `client_options`.
    """

    concurrency = 16

    _keeps_conditions = True
    """Whether a request with an ETag is never answered with another version: caches in the web do
    not all know that."""

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url.rstrip("/")
        self._options = options
        self._refused = "\\" if url.startswith(_AZURE) else ""  # it makes a slash of it
        obstore_here()
        self._clients: dict[tuple[int, bool], Any] = {}
        self._is_anonymous = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectStore):
            return NotImplemented
        return (self._url, self._options) == (other._url, other._options)

    def __hash__(self) -> int:
        return hash(self._url)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"  # options can have credentials

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (type(self), self._url, self._options)

    def _open(self, options: Mapping[str, Any]) -> Any:
        """Return obstore's store."""
        options, self._is_anonymous = with_credentials(self._url, options)
        return self._obstore.store.from_url(self._url, **with_defaults(options, self._url))

    @property
    def _obstore(self) -> Any:
        return obstore_here()

    @property
    def _store(self) -> Any:
        return self._client(retries=True)

    def _client(self, *, retries: bool) -> Any:
        """Return obstore's store; `retries`: whether it repeats requests that fail."""
        which = os.getpid(), retries
        if which not in self._clients:
            options = self._options if retries else {**self._options, "retry_config": _NO_RETRIES}
            try:
                self._clients[which] = self._open(options)
            except (self._obstore.exceptions.BaseError, ValueError, TypeError) as error:
                raise OptionError(
                    f"{self._url} cannot be opened with these options ({type(error).__name__})",
                    option="store_options",
                    value=sorted(self._options),
                    remedy="Check their names: they are those of obstore.store.from_url.",
                ) from None
        return self._clients[which]

    def _checked(self, key: str) -> str:
        """Return a valid key.

        Raises:
            OptionError: as `check_key`; or it has a character that the store cannot have.
        """
        if (self._refused and self._refused in key) or _CONTROL.search(key):
            raise OptionError(f"{key!r:.200} is not a valid key in {self._url}", value=key)
        return check_key(key)

    def name_of(self, key: str) -> str:
        return f"{self._url}/{key}" if key else self._url

    def identity(self, key: str) -> str:
        endpoint = self._options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL")
        return f"{endpoint}/{self.name_of(key)}" if endpoint else self.name_of(key)

    # -- reading -----------------------------------------------------------------------------------

    def info(self, key: str) -> ObjectInfo:
        self._checked(key)
        return object_info(key, self._head(key))

    def _head(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._read_call(
            key, lambda: self._obstore.head(self._store, key)
        )
        return found

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        return bytes(self.read_view(key, start, stop, version))

    def read_view(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> memoryview:
        check_range(start, stop)
        self._checked(key)
        if start == stop:
            check_version(self.name_of(key), self.info(key).version, version)
            return memoryview(b"")
        return self._read_call(key, lambda: self._get(key, start, stop, version))

    def _get(self, key: str, start: int, stop: int | None, version: str | None) -> memoryview:
        options: dict[str, Any] = {}
        if stop is not None:
            options["range"] = start, stop
        elif start:
            options["range"] = {"offset": start}
        if version is not None and (tag := _tag(version)) is not None:
            options["if_match"] = tag
        name = self.name_of(key)
        try:
            result = self._translated(
                key, lambda: self._obstore.get(self._store, key, options=options or None)
            )
        except RangeError as error:  # from the end of the object on
            info = self.info(key)
            check_version(name, info.version, version)
            if isinstance(error, NoRangesError) and info.size_bytes:
                raise
            return memoryview(b"")
        except ConditionError:
            check_version(name, "", version)
            raise
        if not (self._keeps_conditions and "if_match" in options):
            check_version(name, object_info(key, result.meta).version, version)
        begin, end = result.range
        is_short = stop is None or end < stop  # then it ends with the object
        if (
            begin != start
            or (stop is not None and end > stop)
            or (is_short and end != result.meta["size"])
        ):
            raise BrokenRequestError(
                errno.EIO, "the server sent another range than requested", name
            )
        data = memoryview(result.bytes())
        if len(data) != end - begin:
            raise BrokenRequestError(
                errno.EIO, "the connection broke in the middle of the data", name
            )
        return data

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder, slash, _ = prefix.rpartition("/")
        last: str | None = None
        pages: Any = None

        def next_page() -> Any:
            nonlocal pages
            pages = pages or self._obstore.list(
                self._store, folder + slash or None, offset=last, chunk_size=1000
            )
            try:
                return next(iter(pages), None)
            except BaseException:
                pages = None  # it would end here without an error
                raise

        while page := self._read_call(prefix, next_page):
            for found in page:
                last = found["path"]
                if last.startswith(prefix):
                    yield object_info(last, found)

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        found = self._read_call(
            key, lambda: self._obstore.list_with_delimiter(self._store, prefix or None)
        )
        entries = [FolderEntry(at.removeprefix(prefix).strip("/"), "folder")
                   for at in found["common_prefixes"]]  # fmt: skip
        for one in found["objects"]:
            if name := one["path"].removeprefix(prefix):
                version = object_info(name, one).version
                number = self.version_number(version)
                entries.append(FolderEntry(name, "object", one["size"], number, version=version))
        return iter(sorted(entries))

    # -- writing -----------------------------------------------------------------------------------

    def open_write(
        self,
        key: str,
        *,
        overwrite: bool = True,
        is_durable: bool = True,  # noqa: ARG002
    ) -> ObjectWriter:
        return MultipartWriter(
            self,
            key,
            lambda data: self._put(key, data),
            lambda: self._begin_upload(key),
            overwrite=overwrite,
        )

    def _begin_upload(self, key: str) -> Upload:
        check_writable(self, self.name_of(self._checked(key)))
        writer = self._obstore.open_writer(
            self._store, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
        )
        return Upload(
            writer, self.name_of(key), lambda function: self._translated(key, function, "write")
        )

    def _put(self, key: str, data: bytes, *, retries: bool = True, **options: Any) -> None:
        check_writable(self, self.name_of(self._checked(key)))
        client = self._client(retries=retries)
        self._translated(key, lambda: self._obstore.put(client, key, data, **options), "write")

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self._put_if(key, data, "create")

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        self._checked(key)
        condition = {"e_tag": _tag(version)}
        if self._url.startswith(_GOOGLE):  # compares its own number of the version
            try:
                found = self._head(key)
            except MissingFileError:
                return False
            if object_info(key, found).version != version:
                return False
            condition["version"] = found["version"]
        return self._put_if(key, data, condition)

    def _put_if(self, key: str, data: Data, mode: Any) -> bool:
        """Write an object under a condition.

        If the answer to a request was lost, the next one may find what the first one has written,
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
        """Return whether an object has this content."""
        try:
            return self.read(key) == data
        except MissingFileError:
            return False

    def copy(self, old: str, new: str, check: Callable[[], bool] | None = None) -> None:
        if not PART_BYTES < self.size(old) <= _COPIED_AT_ONCE_BYTES:
            super().copy(old, new, check)
            return
        check_writable(self, self.name_of(self._checked(new)))
        if check is not None:
            check()
        self._translated(
            old, lambda: self._obstore.copy(self._store, old, new, overwrite=True), "write"
        )

    def delete(self, key: str) -> None:
        check_writable(self, self.name_of(self._checked(key)))
        with suppress(MissingFileError):
            self._translated(key, lambda: self._obstore.delete(self._store, key), "delete")

    # -- requests ----------------------------------------------------------------------------------

    def _read_call(self, key: str, function: Callable[[], Result]) -> Result:
        """Call a function that reads, again if it breaks."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._translated(key, function)
            except BrokenRequestError:
                if attempt == _ATTEMPTS - 1:
                    raise
            _pause(attempt)
        raise AssertionError

    def _translated(
        self, key: str, function: Callable[[], Result], operation: str = "read"
    ) -> Result:
        """Call obstore and translate its errors.

        They repeat what the server has sent, so none of them becomes the context of ours.

        Raises:
            FileAccessError: the request failed.
        """
        failed: Exception
        try:
            return function()
        except RecordsmithError:
            raise
        except Exception as error:  # noqa: BLE001
            failed = self._failure(error, key, operation)
        raise failed

    def _failure(self, error: Exception, key: str, operation: str) -> Exception:
        """Return our error for one of obstore; the same error if it is not obstore's."""
        exceptions, name = self._obstore.exceptions, self.name_of(key)
        if isinstance(error, FileNotFoundError):
            found = request_error(str(error), name, operation=operation)
            return found if isinstance(found, MissingFileError) else missing_error(name)
        if isinstance(error, (exceptions.AlreadyExistsError, exceptions.PreconditionError)):
            return ConditionError(errno.ESTALE, "it was replaced", name, operation=operation)
        if isinstance(error, ValueError):
            return OptionError(f"{key!r:.200} is not a valid key here", value=key)
        if isinstance(error, (exceptions.BaseError, OSError)):
            return request_error(
                str(error), name, operation=operation, is_anonymous=self._is_anonymous
            )
        return error


def object_info(key: str, found: Mapping[str, Any]) -> ObjectInfo:
    """Return what an answer says; the version is the ETag, or time and size."""
    tag = found["e_tag"]
    version = f"{_TIME}{found['last_modified'].timestamp():.6f}-{found['size']}"
    return ObjectInfo(key, found["size"], tag.strip('"') if tag else version)


def _pause(attempt: int) -> None:
    """Wait before the next attempt."""
    time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311


def _tag(version: str) -> str | None:
    """Return the ETag for a condition; None if there is none that can be compared."""
    return None if version.startswith((_TIME, "W/")) else f'"{version}"'


def with_defaults(options: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Add what is not set: deadlines and retries, and that an endpoint may be without TLS."""
    endpoint = options.get("endpoint") or options.get("base_url")
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL") or url
    client = {**_CLIENT, **options.get("client_options", {})}
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", True)
    retries = {**_RETRIES, **options.get("retry_config", {})}
    return {**options, "client_options": client, "retry_config": retries}


def _reopened(kind: type[ObjectStore], url: str, options: dict[str, Any]) -> ObjectStore:
    return kind(url, **options)
