"""`ListedFolder`: a folder and what lies directly in it, listed at most once."""

from __future__ import annotations

from recordsmith.stores import FolderEntry, Location, ObjectInfo


class ListedFolder:
    """A folder and the names in its listing. It is listed on first use."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._entries: dict[str, FolderEntry] | None = None

    @property
    def entries(self) -> dict[str, FolderEntry]:
        """Everything directly in the folder, by name, in the order of names."""
        if self._entries is None:
            self._entries = {entry.name: entry for entry in self.location.list_entries()}
        return self._entries

    @property
    def objects(self) -> list[FolderEntry]:
        return [entry for entry in self.entries.values() if entry.kind == "object"]

    @property
    def folders(self) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.kind == "folder"]

    def has(self, name: str) -> bool:
        """Return whether there is an object; its name may lead into a folder."""
        first, slash, _ = name.partition("/")
        entry = self.entries.get(first)
        if entry is None:
            return False
        return (self.location / name).exists() if slash else entry.kind == "object"

    def info_of(self, name: str, location: Location) -> ObjectInfo | None:
        """Return size and version of an object at its location; None if it is not listed.

        The version is empty if it is unknown.
        """
        entry = self.entries.get(name)
        if entry is None or entry.kind != "object":
            return None
        return ObjectInfo(location.key, entry.size_bytes, entry.version)
