"""`ObjectStore`: the objects of a bucket, by obstore."""

from __future__ import annotations

import errno
import os
import random
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
from recordsmith.stores.remote.multipart import MultipartWriter
from recordsmith.stores.remote.request_errors import (
    BrokenRequestError,
    ConditionError,
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

_CLIENT = {"timeout": "120s", "read_timeout": "30s", "connect_timeout": "10s"}
_RETRIES = {"max_retries": 8, "retry_timeout": timedelta(minutes=3)}
_ATTEMPTS = 4
"""How often a read is begun that breaks in the middle, beyond what the library retries."""

_FIRST_PAUSE_SECONDS = 0.1


class ObjectStore(Store):
    """The objects of a bucket, such as `s3://bucket`.

    Credentials come from where the tools of each cloud look for them, unless they are passed.

    Args:
        url: of the bucket.
        options: as of `obstore.store.from_url`, such as `region`, `endpoint` or `client_options`.
    """

    concurrency = 16

    def __init__(self, url: str, **options: Any) -> None:
        self._url = url.rstrip("/")
        self._options = options
        obstore_here()
        self._client: Any = None
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

    def _open(self) -> Any:
        """Return obstore's store."""
        options, self._is_anonymous = with_credentials(self._url, self._options)
        return self._obstore.store.from_url(self._url, **with_defaults(options, self._url))

    @property
    def _obstore(self) -> Any:
        return obstore_here()

    @property
    def _store(self) -> Any:
        if self._client is None:
            try:
                self._client = self._open()
            except (self._obstore.exceptions.BaseError, ValueError, TypeError) as error:
                raise OptionError(
                    f"{self._url} cannot be opened with these options ({type(error).__name__})",
                    option="store_options",
                    value=sorted(self._options),
                    remedy="Check their names: they are those of obstore.store.from_url.",
                ) from None
        return self._client

    def name_of(self, key: str) -> str:
        return f"{self._url}/{key}" if key else self._url

    def identity(self, key: str) -> str:
        endpoint = self._options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL")
        return f"{endpoint}/{self.name_of(key)}" if endpoint else self.name_of(key)

    # -- reading -----------------------------------------------------------------------------------

    def info(self, key: str) -> ObjectInfo:
        check_key(key)
        return object_info(key, self._read_call(key, lambda: self._obstore.head(self._store, key)))

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        return bytes(self.read_view(key, start, stop, version))

    def read_view(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> memoryview:
        check_range(start, stop)
        check_key(key)
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
        if version is not None and _is_etag(version):
            options["if_match"] = version
        name = self.name_of(key)
        try:
            result = self._translated(
                key, lambda: self._obstore.get(self._store, key, options=options or None)
            )
        except RangeError:  # from the end of the object on
            check_version(name, self.info(key).version, version)
            return memoryview(b"")
        except ConditionError:
            check_version(name, "", version)
            raise
        check_version(name, object_info(key, result.meta).version, version)
        data = memoryview(self._translated(key, result.bytes))
        size = result.meta["size"]
        if len(data) != max(0, (size if stop is None else min(stop, size)) - start):
            raise BrokenRequestError(
                errno.EIO, "the server sent another range than requested", name
            )
        return data

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folder, slash, _ = prefix.rpartition("/")
        pages = self._read_call(
            prefix, lambda: self._obstore.list(self._store, folder + slash or None, chunk_size=1000)
        )
        while page := self._read_call(prefix, lambda: next(iter(pages), None)):
            for found in page:
                if found["path"].startswith(prefix):
                    yield object_info(found["path"], found)

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        found = self._read_call(
            key, lambda: self._obstore.list_with_delimiter(self._store, prefix or None)
        )
        entries = [FolderEntry(at.removeprefix(prefix).strip("/"), "folder")
                   for at in found["common_prefixes"]]  # fmt: skip
        for one in found["objects"]:
            if name := one["path"].removeprefix(prefix):
                number = self.version_number(object_info(name, one).version)
                entries.append(FolderEntry(name, "object", one["size"], number))
        return iter(sorted(entries))

    # -- writing -----------------------------------------------------------------------------------

    def open_write(
        self,
        key: str,
        *,
        overwrite: bool = True,
        is_durable: bool = True,  # noqa: ARG002
    ) -> ObjectWriter:
        return MultipartWriter(self, key, self._put, overwrite=overwrite)

    def _put(self, key: str, data: Any, **options: Any) -> None:
        check_writable(self, self.name_of(check_key(key)))
        self._translated(key, lambda: self._obstore.put(self._store, key, data, **options), "write")

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self._put_if(key, data, "create")

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        return self._put_if(key, data, {"e_tag": version})

    def _put_if(self, key: str, data: Data, mode: Any) -> bool:
        try:
            self._put(key, b"".join(pieces_of(data)), mode=mode)
        except (ConditionError, MissingFileError):
            return False
        return True

    def delete(self, key: str) -> None:
        check_writable(self, self.name_of(check_key(key)))
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
            time.sleep(_FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311
        raise AssertionError

    def _translated(
        self, key: str, function: Callable[[], Result], operation: str = "read"
    ) -> Result:
        """Call obstore and translate its errors.

        Raises:
            FileAccessError: the request failed.
        """
        exceptions, name = self._obstore.exceptions, self.name_of(key)
        try:
            return function()
        except RecordsmithError:
            raise
        except FileNotFoundError:
            raise missing_error(name) from None
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise ConditionError(
                errno.ESTALE, "it was replaced", name, operation=operation
            ) from None
        except ValueError:
            raise OptionError(f"{key!r:.200} is not a valid key here", value=key) from None
        except (exceptions.BaseError, OSError) as error:
            raise request_error(
                str(error), name, operation=operation, is_anonymous=self._is_anonymous
            ) from None


def object_info(key: str, found: Mapping[str, Any]) -> ObjectInfo:
    version = found["e_tag"] or f"{found['last_modified'].timestamp():.6f}-{found['size']}"
    return ObjectInfo(key, found["size"], version)


def _is_etag(version: str) -> bool:
    return version[-1:] == '"' and not version.startswith("W/")


def with_defaults(options: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Add what is not set: deadlines and retries, and that an endpoint may be without TLS."""
    endpoint = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL") or url
    client = {**_CLIENT, **options.get("client_options", {})}
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", True)
    retries = {**_RETRIES, **options.get("retry_config", {})}
    return {**options, "client_options": client, "retry_config": retries}


def _reopened(kind: type[ObjectStore], url: str, options: dict[str, Any]) -> ObjectStore:
    return kind(url, **options)
