"""Files: the only place that calls the operating system for data."""

from recordsmith.stores.local.store import LocalStore

__all__ = ["LocalStore"]
