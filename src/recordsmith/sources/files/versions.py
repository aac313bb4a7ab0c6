"""Version numbers of objects, without reading them. Those of local files are modification times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from recordsmith.errors import FileAccessError
from recordsmith.stores import Location


def size_and_version(location: Location) -> tuple[int, int]:
    """Size in bytes and version number of an object; 0 for a missing one, which fails when read."""
    try:
        info = location.info()
    except FileAccessError:
        return 0, 0
    return info.size_bytes, location.store.version_number(info.version)


def common_version(versions: Iterable[int]) -> int:
    """A number for the versions of several objects, in this order."""
    # not a CRC, which stays the same for some times to which the same seconds are added
    data = b"".join(version.to_bytes(16, "little", signed=True) for version in versions)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") >> 1


def files_version(locations: Iterable[Location]) -> int:
    """A number for objects that must exist."""
    return common_version(
        location.store.version_number(location.info().version) for location in locations
    )
