"""Files: the only place that calls the operating system for data."""

from recordsmith.stores.local.store import LocalStore, matching_files, read_file, scratch_file

__all__ = ["LocalStore", "matching_files", "read_file", "scratch_file"]
