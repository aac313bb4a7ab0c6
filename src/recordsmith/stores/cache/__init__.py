"""A store that keeps what it reads over a network in a local folder."""

from recordsmith.stores.cache.folder import CacheReport, inspect_cache
from recordsmith.stores.cache.store import CachedStore

__all__ = ["CacheReport", "CachedStore", "inspect_cache"]
