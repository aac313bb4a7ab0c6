"""Names whose modules are imported on first use: tables of a room, and names of a package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class LazyTable(MutableMapping[str, Value], Generic[Value]):
    """Values by name, each imported on first use.

    Example:
        LazyTable("recordsmith.stores", {"memory": "memory.MemoryStore"})
    """

    def __init__(self, package: str, homes: Mapping[str, str | Value]) -> None:
        """`homes`: module and name of each value, below the package; or the value."""
        self._package = package
        self._homes = dict(homes)

    def __getitem__(self, name: str) -> Value:
        home = self._homes[name]
        if isinstance(home, str):
            module, _, attribute = home.rpartition(".")
            home = self._homes[name] = getattr(
                import_module(f"{self._package}.{module}"), attribute
            )
        return home

    def __setitem__(self, name: str, value: Value) -> None:
        self._homes[name] = value

    def __delitem__(self, name: str) -> None:
        del self._homes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def __contains__(self, name: object) -> bool:
        return name in self._homes


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package that imports its names on use.

    `__init__.pyi` has the same names for type checkers.

    Args:
        homes: the names of each module, with spaces between them.
    """
    table = LazyTable[Any](
        package,
        {name: f"{module}.{name}" for module, names in homes.items() for name in names.split()},
    )

    def get(name: str) -> Any:
        if name not in table:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        value = table[name]
        setattr(import_module(package), name, value)
        return value

    names = sorted(table)
    return get, lambda: names, names
