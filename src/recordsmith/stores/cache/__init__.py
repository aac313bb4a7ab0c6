"""A store that keeps what it reads over a network in a local folder."""

from recordsmith.stores.cache.store import CachedStore

__all__ = ["CachedStore"]
