"""Files: the only place that calls the operating system for data."""

from recordsmith.stores.local.store import LocalStore, read_file

__all__ = ["LocalStore", "read_file"]
