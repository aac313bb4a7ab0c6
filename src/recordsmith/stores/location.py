"""`Location`: an object, or a prefix of keys, in a store; small objects are read whole."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from recordsmith.stores.checks import check_key, exists_error
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.object_writer import Data
from recordsmith.stores.store import NO_OBJECT, Store
from recordsmith.support.errors import FileAccessError, OptionError
from recordsmith.support.lazy import LazyTable
from recordsmith.support.words import similar_name

PathLike: TypeAlias = str | os.PathLike[str]
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

STORES: LazyTable[type[Store]] = LazyTable(
    "recordsmith.stores",
    {
        "memory": "memory.MemoryStore",
        **dict.fromkeys(("http", "https"), "network.web_store.WebStore"),
        **dict.fromkeys(
            ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl"),
            "network.object_store.ObjectStore",
        ),
        "*": "network.fsspec_store.FsspecStore",
    },
)
"""By the schemes of their URLs; the last one has all others."""

DOCUMENT_BYTES = 1 << 26
"""The size limit of documents that users write: label maps, schemas, lists of names."""

NOTE_BYTES = 1 << 28
"""The size limit of files that recordsmith writes: twice the manifest of a million shards."""

_MAX_COMPARED = 1000
_ALMOST_URL = re.compile(r"(s3a?|gs|az|abfss?|https?|hdfs|sftp|hf):/(?!/)")


def _on_key(
    method: Callable[Concatenate[Any, str, _Arguments], _Result],
) -> Callable[Concatenate[Location, _Arguments], _Result]:
    """Return a method of a store as one of its locations."""
    name = method.__name__

    @wraps(method, updated=())  # not that it is abstract
    def call(self: Location, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        return getattr(self.store, name)(self.key, *args, **options)  # type: ignore[no-any-return]

    return call


@dataclass(frozen=True, slots=True)
class Location(os.PathLike[str]):
    """A key in a store. `str` shows it as users write it: a path or URL."""

    store: Store
    key: str

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    def __str__(self) -> str:
        return self.store.name_of(self.key)

    def __truediv__(self, key: str) -> Location:
        return Location(self.store, f"{self.key}/{check_key(key)}" if self.key else check_key(key))

    def __fspath__(self) -> str:
        """Return the path of a local file, for libraries that need one."""
        if not isinstance(self.store, LocalStore):
            raise OptionError(
                f"{self} is not on a local disk", value=str(self), expected="a local path"
            )
        return str(self)

    @property
    def name(self) -> str:
        """The last part of the key, or the name of the folder of the store."""
        return (self.key or self.absolute().key).rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of the name with its dot, or an empty text."""
        return os.path.splitext(self.name)[1]

    @property
    def parent(self) -> Location:
        """The folder of the object."""
        return Location(self.store, self.key.rpartition("/")[0])

    @property
    def identity(self) -> str:
        """A text that is the same for all names of an object or folder."""
        return self.store.identity(self.key)

    def with_name(self, name: str) -> Location:
        """Return the location with another name next to this one."""
        head, slash, _ = self.key.rpartition("/")
        return Location(self.store, check_key(f"{head}{slash}{name}"))

    def similar(self) -> Location | None:
        """Return the object or folder with the most similar name next to a missing one."""
        try:
            names = [entry.name for entry in islice(self.parent.list_entries(), _MAX_COMPARED)]
        except FileAccessError:
            return None
        similar = similar_name(self.name, names)
        return None if similar is None else self.with_name(similar)

    def without_links(self) -> Location:
        """Return the location in a store that follows no links that somebody else prepared."""
        return Location(self.store.without_links(), self.key)

    def absolute(self) -> Location:
        """Return the same object in the store that contains all places of its kind."""
        return Location(*self.store.absolute(self.key))

    def relative_to(self, folder: Location) -> str | None:
        """Return the key below a folder, without following links.

        Empty for the folder itself; None if this location does not lie below it.
        """
        mine, other = self.absolute(), folder.absolute()
        if mine.store != other.store:
            return None
        if mine.key == other.key:
            return ""
        head = f"{other.key}/" if other.key else ""
        return mine.key[len(head) :] if mine.key.startswith(head) else None

    def contains(self, other: Location) -> bool:
        """Return whether another location is this one or lies below it."""
        mine, others = self.identity, other.identity
        return mine == others or others.startswith(mine.rstrip("/") + "/")

    # -- the operations of the store on the key ----------------------------------------------------

    info = _on_key(Store.info)
    size = _on_key(Store.size)
    exists = _on_key(Store.exists)
    read = _on_key(Store.read)
    open_read = _on_key(Store.open_read)
    is_folder = _on_key(Store.is_folder)
    list_entries = _on_key(Store.list_entries)
    open_write = _on_key(Store.open_write)
    put = _on_key(Store.put)
    put_if_absent = _on_key(Store.put_if_absent)
    put_if_match = _on_key(Store.put_if_match)
    check_target = _on_key(Store.check_target)
    delete = _on_key(Store.delete)
    locked = _on_key(Store.locked)
    make_folder = _on_key(Store.make_folder)

    def glob(self) -> Sequence[Location]:
        """Return the objects that match this location as a pattern, sorted."""
        return [Location(*matching) for matching in self.store.glob(self.key)]

    def list(self) -> Iterator[Location]:
        """Yield the objects below this location, in any order."""
        for info in self.store.list(f"{self.key}/" if self.key else ""):
            yield Location(self.store, info.key)

    def move(self, new: Location) -> None:
        """Give the object another name in its store, and replace the object there."""
        self.store.move(self.key, new.key)


PlaceLike: TypeAlias = PathLike | Location
"""A path, a URL, or a location."""


def as_location(place: object) -> Location:
    """Convert a path or URL to the location of an object.

    The folder of a path becomes the root of the store, so links in it are the user's own.
    """
    if isinstance(place, Location):
        return place
    if isinstance(place, str) and is_url(place):
        location = remote(place)
        check_key(location.key)
        return location
    path = str(_as_path(place))
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise OptionError(f"{path} is a folder", value=path, expected="the name of a file")
    return Location(LocalStore(folder), name)


def as_folder(place: object) -> Location:
    """Convert a path or URL to the location of a folder, which need not exist.

    A path becomes the root of the store, so links in it are the user's own.
    """
    if isinstance(place, Location):
        return place
    if isinstance(place, str) and is_url(place):
        return remote(place)
    return Location(LocalStore(_as_path(place)), "")


def as_place(place: object) -> Location:
    """Convert a path or URL to the location of a folder if there is one, otherwise of an object."""
    folder = as_folder(place)
    if isinstance(place, Location) or not isinstance(folder.store, LocalStore):
        return folder  # a folder and an object of this name have the same location
    return folder if folder.is_folder() else as_location(place)


def _as_path(path: object) -> Path:
    """Convert a caller's argument to a Path."""
    if not isinstance(path, (str, os.PathLike)):
        raise OptionError(f"{path!r:.80} is a {type(path).__name__}", value=path, expected="a path")
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise OptionError(f"{name!r} is not a valid path", value=name)
    if is_url(name):
        raise OptionError(f"{name} is a URL in a {type(path).__name__}", expected="a str")
    if _ALMOST_URL.match(name) and not os.path.lexists(name):
        raise OptionError(
            f"{name} is not a URL",
            value=name,
            remedy=f"Did you mean {name.replace(':/', '://', 1)}?",
        )
    return path if isinstance(path, Path) else Path(path)


def is_url(name: str) -> bool:
    """Return whether a name is a URL rather than a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", name) is not None


def remote(
    url: str,
    *,
    store_options: Mapping[str, Any] | None = None,
    cache: PathLike | None = None,
    cache_bytes: int | None = None,
) -> Location:
    """Return the location of an object or folder of a URL, for use instead of a path.

    A URL without options can be passed itself. Credentials come from where the tools of each cloud
    look for them. What is not given comes from the variables `RECORDSMITH_STORE_OPTIONS` (a JSON
    object), `RECORDSMITH_CACHE` and `RECORDSMITH_CACHE_BYTES`.

    Args:
        url: such as `s3://bucket/folder`, `gs://…`, `az://container/…`, `https://host/folder` or
            `memory://folder`; other schemes are those of fsspec, which are read-only.
        store_options: of the store, such as `{"region": "eu-west-1"}`: as of
            `obstore.store.from_url`, or of the file system of fsspec. Options below a URL apply to
            what begins with it: `{"s3://bucket": {"region": "eu-west-1"}}`.
        cache: a local folder that keeps what is read over a network, shared by processes and
            datasets.
        cache_bytes: the size limit of the folder; None means 10 GiB.

    Raises:
        OptionError: the URL or an option is invalid.
        MissingExtraError: the extra `remote` is not installed.

    Example:
        dataset = rs.open(rs.remote("s3://bucket/flowers", store_options={"region": "eu-west-1"}))
    """
    from recordsmith.stores.network.store_options import PassedOptions, read_settings

    settings = read_settings()
    if store_options is not None and not isinstance(store_options, Mapping):
        raise OptionError(  # without the value, which may be secret
            option="store_options", expected="a dict such as {'region': 'eu-west-1'}"
        )
    kind = STORES.get(url.partition("://")[0].lower()) or STORES["*"]
    store, key = kind.from_url(url, PassedOptions.of(url, store_options or {}))
    if cache_bytes is not None and (type(cache_bytes) is not int or cache_bytes < 1):
        raise OptionError(option="cache_bytes", value=cache_bytes, expected="a number of bytes")
    folder = settings.cache if cache is None else os.fspath(cache)
    if folder is not None and store.is_remote:
        from recordsmith.stores.cache.store import cached_store

        max_bytes = settings.cache_bytes if cache_bytes is None else cache_bytes
        store = cached_store(store, os.path.expanduser(folder), max_bytes)
    return Location(store, key)


# -- small objects: documents of users, and our own notes ------------------------------------------


def read_document(place: PlaceLike, most_bytes: int | None = None) -> bytes:
    """Read a small document, also from a pipe.

    Args:
        most_bytes: the size limit; None means DOCUMENT_BYTES.
    """
    most = DOCUMENT_BYTES if most_bytes is None else most_bytes
    location = as_location(place)
    data = location.read(0, most + 1)
    if len(data) > most:
        raise FileAccessError(
            errno.EFBIG,
            f"it is larger than {most / (1 << 20):,.3g} MiB, the limit for this kind of file",
            str(location),
            remedy="Check that it is the right file.",
        )
    return data


def read_existing(place: PlaceLike, most_bytes: int | None = None) -> bytes | None:
    """Read a small document in one request; None if it does not exist."""
    location = as_location(place)
    # a local one may be a pipe without a writer, which would block
    if not location.store.is_remote and not location.exists():
        return None
    try:
        return read_document(location, most_bytes)
    except FileAccessError as error:
        if error.errno not in NO_OBJECT:
            raise
        return None


def read_note(place: PlaceLike) -> bytes:
    """Read a file that recordsmith wrote: a regular file, not a symbolic link."""
    return read_document(as_location(place).without_links(), NOTE_BYTES)


def write_atomically(place: PlaceLike, data: Data, *, overwrite: bool = True) -> None:
    """Write an object from bytes or from pieces end to end; it appears whole or not at all.

    Safe when several processes write the same object at once: one of them wins.
    """
    location = as_location(place)
    location.store.check_writable(str(location))
    if overwrite:
        location.put(data)
    elif not location.put_if_absent(data):
        raise exists_error(str(location))


def write_document(place: PlaceLike, data: Data, *, overwrite: bool) -> None:
    """Write an object for users atomically, and remove what killed processes left of it."""
    location = as_location(place)
    folder = location.parent
    folder.store.remove_leftovers(folder.key, (location.name,))
    write_atomically(location, data, overwrite=overwrite)
