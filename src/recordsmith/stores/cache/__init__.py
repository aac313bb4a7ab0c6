"""A store that keeps what it reads over a network in a local folder."""

from recordsmith.stores.cache.folder import CacheReport, inspect_cache
from recordsmith.stores.cache.store import CachedStore, cached_store

__all__ = ["CacheReport", "CachedStore", "cached_store", "inspect_cache"]
