"""Compares two datasets by content, independent of record order and shards."""
